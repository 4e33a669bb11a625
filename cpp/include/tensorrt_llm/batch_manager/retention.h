// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file retention.h
//! How long a sequence wants its blocks kept, and the clock of those that are kept for a time only.
//!
//! A block belongs to the range that holds its first token; generated tokens have a priority of their own. A priority
//! with a duration falls back to the default when the block has lain unused for that long.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/evictionPolicy.h"
#include "tensorrt_llm/batch_manager/lazyArray.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! A priority, 0 (given up first) to 100, and the milliseconds after which it falls back, if it does.
struct BlockRetention
{
    std::int32_t priority{kDefaultPriority};
    std::optional<std::int64_t> durationMs;
};

struct TokenRangeRetention
{
    std::int64_t tokenStart{0};
    std::optional<std::int64_t> tokenEnd; //!< past the last token; none: to the end of the prompt
    BlockRetention retention;
};

struct RetentionConfig
{
    std::vector<TokenRangeRetention> ranges; //!< of the prompt, ordered and apart
    BlockRetention decode;                   //!< of blocks that begin with a generated token

    //! \throws InvalidArgumentError naming the range, with both numbers.
    void check() const;

    //! What a block whose first token is at \p position shall have.
    [[nodiscard]] BlockRetention of(std::int64_t position, std::int64_t promptLength) const;
};

//! When the priorities of unused blocks fall back. Time is what the caller says it is. O(log n) a timed block; blocks
//! without a duration cost nothing.
class RetentionClock
{
public:
    explicit RetentionClock(BlockId numBlocks)
        : mDurations{static_cast<std::size_t>(numBlocks)}
        , mExpiries{static_cast<std::size_t>(numBlocks)}
    {
    }

    //! Sets or, with nothing, drops the duration of a block in use.
    void setDuration(BlockId block, std::optional<std::int64_t> durationMs)
    {
        mAnyDuration |= durationMs.has_value();
        if (mAnyDuration)
        {
            mDurations[static_cast<std::size_t>(block)] = std::min(durationMs.value_or(0), kMaxMilliseconds);
        }
    }

    //! The block lies unused from now on, or goes on doing so.
    void start(BlockId block)
    {
        if (mAnyDuration && mDurations[static_cast<std::size_t>(block)] != 0
            && mExpiries[static_cast<std::size_t>(block)] == 0)
        {
            schedule(block);
        }
    }

    //! The block is in use again, or gone: it does not fall back.
    void stop(BlockId block)
    {
        if (mAnyDuration)
        {
            mExpiries[static_cast<std::size_t>(block)] = 0;
        }
    }

    //! Moves the clock, never backwards.
    void advance(std::int64_t nowMs)
    {
        mNow = std::max(mNow, nowMs);
    }

    //! A block whose time is over, each once, its duration dropped; kNoBlock if there is none.
    [[nodiscard]] BlockId popExpired();

private:
    //! Keeps sums with any clock far from overflow; about 146 million years.
    static constexpr std::int64_t kMaxMilliseconds = std::int64_t{1} << 62;

    struct Entry
    {
        std::int64_t expiry;
        BlockId block;
    };

    static bool later(Entry const& one, Entry const& other)
    {
        return one.expiry > other.expiry;
    }

    [[nodiscard]] bool isCurrent(Entry const& entry) const
    {
        return mExpiries[static_cast<std::size_t>(entry.block)] == entry.expiry;
    }

    void schedule(BlockId block);

    LazyArray<std::int64_t> mDurations; //!< milliseconds, 0 if none
    LazyArray<std::int64_t> mExpiries;  //!< 0 if not running
    std::vector<Entry> mEntries;        //!< a heap; entries that are not current are passed over
    std::int64_t mNow{0};
    bool mAnyDuration{false}; //!< whether a block ever had one; if not, the arrays are never touched
};

} // namespace tensorrt_llm::batch_manager
