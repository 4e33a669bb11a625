// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file evictionPolicy.h
//! Which block to hand out next.
//!
//! Every block that no sequence holds is on exactly one list; a held block is on none:
//!
//! | state  | content findable | list   | moved by                                  |
//! |--------|------------------|--------|-------------------------------------------|
//! | free   | no               | free   | releaseFree, from held; demote, from cached |
//! | cached | yes              | cached | releaseCached, from held                  |
//! | held   | either           | none   | claim, from free or cached                |
//!
//! Free blocks go first; then the cached block released longest ago. A caller that releases a chain from its deepest
//! block up keeps children ahead of parents on the cached list, so the victim is always a leaf. All calls are O(1).
//! One thread at a time. The policy knows neither keys nor reference counts.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorrt_llm::batch_manager
{

class LruEvictionPolicy
{
public:
    enum class State : std::uint8_t
    {
        kFree,
        kCached,
        kHeld,
    };

    //! All blocks start free, lowest id first.
    explicit LruEvictionPolicy(BlockId numBlocks);

    //! The block to take next, still on its list, or kNoBlock if all are held.
    [[nodiscard]] BlockId next() const;

    //! The cached block to give up next, or kNoBlock if none is cached.
    [[nodiscard]] BlockId nextCached() const;

    //! Takes a free or cached block off its list. \throws InternalStateError if it is held.
    void claim(BlockId block);

    //! A held block whose content nobody can find. It is handed out again before any that lies longer.
    //! \throws InternalStateError if it is not held.
    void releaseFree(BlockId block);

    //! A held block whose content stays findable, as the most recent. \throws InternalStateError if it is not held.
    void releaseCached(BlockId block);

    //! A cached block whose content is dropped without being handed out. \throws InternalStateError if it is not
    //! cached.
    void demote(BlockId block);

    [[nodiscard]] State state(BlockId block) const
    {
        return mStates[static_cast<std::size_t>(block)];
    }

    [[nodiscard]] BlockId numFree() const
    {
        return mNumFree;
    }

    [[nodiscard]] BlockId numCached() const
    {
        return mNumCached;
    }

    //! Cached blocks, oldest first. For checks: takes time and memory in proportion.
    [[nodiscard]] std::vector<BlockId> cachedBlocks() const;

    //! Walks both lists and recounts. \throws InternalStateError with what was found and what was expected.
    void checkIntegrity() const;

private:
    struct Link
    {
        BlockId previous;
        BlockId next;
    };

    [[nodiscard]] Link& link(BlockId block)
    {
        return mLinks[static_cast<std::size_t>(block)];
    }

    [[nodiscard]] Link const& link(BlockId block) const
    {
        return mLinks[static_cast<std::size_t>(block)];
    }

    void insertAfter(BlockId position, BlockId block);
    void unlink(BlockId block);
    void expect(BlockId block, State state) const;
    [[nodiscard]] std::vector<BlockId> walk(BlockId sentinel, State state) const;

    // One array of links serves both lists, so a block cannot be on two. The last two entries are the sentinels.
    std::vector<Link> mLinks;
    std::vector<State> mStates;
    BlockId mFreeList;
    BlockId mCachedList;
    BlockId mNumFree;
    BlockId mNumCached{0};
};

} // namespace tensorrt_llm::batch_manager
