// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file idleClock.h
//! How long cached blocks have lain unused. For statistics and explanations only: nothing is decided by it.
//!
//! Time is what the caller says it is, kept in steps of 10 ms in 4 bytes a block, so an age beyond 497 days is told
//! wrong. A clock that was never told the time finds every age 0. One thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/lazyArray.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorrt_llm::batch_manager
{

//! Durations by size. The last count is of those above all bounds.
struct DurationCounts
{
    static constexpr std::array<std::int64_t, 8> kBoundsMs{
        1000, 5000, 15'000, 60'000, 300'000, 1'800'000, 7'200'000, 86'400'000};

    std::array<std::int64_t, kBoundsMs.size() + 1> counts{};
    std::int64_t sumMs{0};

    void add(std::int64_t durationMs)
    {
        auto const bound = std::lower_bound(kBoundsMs.begin(), kBoundsMs.end(), durationMs);
        ++counts[static_cast<std::size_t>(bound - kBoundsMs.begin())];
        sumMs += durationMs;
    }
};

class IdleClock
{
public:
    //! A moment, 0 if there is none.
    using Stamp = std::uint32_t;

    explicit IdleClock(BlockId numBlocks)
        : mSince{static_cast<std::size_t>(numBlocks)}
    {
    }

    //! Moves the clock, never backwards.
    void advance(std::int64_t nowMs)
    {
        mNow = std::max(mNow, nowMs);
    }

    [[nodiscard]] Stamp now() const
    {
        return std::max(static_cast<Stamp>(mNow / kStepMs), Stamp{1});
    }

    //! Milliseconds since a moment that was.
    [[nodiscard]] std::int64_t since(Stamp stamp) const
    {
        return static_cast<std::int64_t>(static_cast<Stamp>(now() - stamp)) * kStepMs;
    }

    //! The block lies unused from now on, or goes on doing so.
    void start(BlockId block)
    {
        auto& since = mSince[static_cast<std::size_t>(block)];
        since = since == 0 ? now() : since;
    }

    //! The block is in use again, or gone.
    void stop(BlockId block)
    {
        mSince[static_cast<std::size_t>(block)] = 0;
    }

    [[nodiscard]] bool isIdle(BlockId block) const
    {
        return mSince[static_cast<std::size_t>(block)] != 0;
    }

    //! How long it has lain unused, 0 if it is in use.
    [[nodiscard]] std::int64_t idleMs(BlockId block) const
    {
        auto const stamp = mSince[static_cast<std::size_t>(block)];
        return stamp == 0 ? 0 : since(stamp);
    }

private:
    static constexpr std::int64_t kStepMs = 10;

    LazyArray<Stamp> mSince;
    std::int64_t mNow{0};
};

} // namespace tensorrt_llm::batch_manager
