// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file evictionPolicy.h
//! Which block to hand out next, in each of two tiers: the device pool and the host pool.
//!
//! Every block that nobody holds is on exactly one list of its tier; a held block is on none:
//!
//! | state  | content findable | list           | moved by                                    |
//! |--------|------------------|----------------|---------------------------------------------|
//! | free   | no               | free           | releaseFree, from held; demote, from cached |
//! | cached | yes              | of its level   | releaseCached, from held; relist            |
//! | held   | either           | none           | claim, from free or cached                  |
//!
//! Free blocks go first; then the cached block of the lowest level that was released longest ago. There is one list a
//! level, 0 to 100, and a bit says whether it has entries, so every call is O(1).
//!
//! The victim is always a leaf of its tier if the caller keeps two rules, and so it does: a chain is released from its
//! deepest block up, and a block's level is at least that of each child. Then a cached child stands on a lower level
//! than its parent or ahead of it on the same.
//!
//! One thread at a time. The policy writes state and links of the records and reads level and tier; it knows neither
//! keys nor holders.

#pragma once

#include "tensorrt_llm/batch_manager/blockStore.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/linkedList.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! The priority of a block that nobody gave another one, and the highest.
inline constexpr std::uint8_t kDefaultPriority = 35;
inline constexpr std::uint8_t kMaxPriority = 100;

enum class Tier : std::uint8_t
{
    kDevice,
    kHost,
};

class EvictionPolicy
{
public:
    //! All blocks of \p store start free, lowest id first, in the tier that their record says.
    explicit EvictionPolicy(BlockStore& store);

    //! The block to take next, still on its list, or kNoBlock if all of the tier are held.
    [[nodiscard]] BlockId next(Tier tier) const;

    //! The cached block to give up next, or kNoBlock if none is cached.
    [[nodiscard]] BlockId nextCached(Tier tier) const;

    //! Takes a free or cached block off its list. \throws InternalStateError if it is held.
    void claim(BlockId block);

    //! A held block whose content nobody can find. It is handed out again before any that lies longer.
    //! \throws InternalStateError if it is not held.
    void releaseFree(BlockId block);

    //! A held block whose content stays findable, as the most recent of its level.
    //! \throws InternalStateError if it is not held.
    void releaseCached(BlockId block);

    //! A cached block whose content is dropped without being handed out. \throws InternalStateError if it is not
    //! cached.
    void demote(BlockId block);

    //! A cached block moves to \p level, to be the most recent there, or the oldest if \p toFront.
    //! \throws InternalStateError if it is not cached.
    void relist(BlockId block, std::uint8_t level, bool toFront);

    [[nodiscard]] BlockState state(BlockId block) const
    {
        return mStore[block].state;
    }

    [[nodiscard]] BlockId numFree(Tier tier) const
    {
        return of(tier).free.size();
    }

    [[nodiscard]] BlockId numCached(Tier tier) const
    {
        return of(tier).numCached;
    }

    //! Cached blocks in the order of eviction. For checks: takes time and memory in proportion.
    [[nodiscard]] std::vector<BlockId> cachedBlocks(Tier tier) const;

    //! Walks all lists and recounts. \throws InternalStateError with what was found and what was expected.
    void checkIntegrity() const;

private:
    static constexpr std::size_t kNumLevels = std::size_t{kMaxPriority} + 1;

    struct Lists
    {
        LinkedList free;
        std::array<LinkedList, kNumLevels> levels;
        std::array<std::uint64_t, 2> occupied{}; //!< one bit a level
        BlockId numCached{0};
    };

    [[nodiscard]] Lists& of(Tier tier)
    {
        return mLists[static_cast<std::size_t>(tier)];
    }

    [[nodiscard]] Lists const& of(Tier tier) const
    {
        return mLists[static_cast<std::size_t>(tier)];
    }

    [[nodiscard]] Lists& listsOf(BlockId block)
    {
        return of(mStore[block].onHost ? Tier::kHost : Tier::kDevice);
    }

    //! For the lists, which do not know the records.
    [[nodiscard]] auto linksOf()
    {
        return [this](BlockId block) -> ListLinks&
        {
            return mStore[block].links;
        };
    }

    void enlist(BlockId block, bool toFront);
    void delist(BlockId block);

    void expect(BlockId block, BlockState expected) const
    {
        if (state(block) != expected)
        {
            fail(block, expected);
        }
    }

    [[noreturn]] void fail(BlockId block, BlockState expected) const;
    void walk(LinkedList const& list, BlockState state, Tier tier, std::vector<BlockId>& blocks) const;

    BlockStore& mStore;
    std::array<Lists, 2> mLists;
};

// What every held or released block goes through stands here, to become part of the caller.

inline void EvictionPolicy::claim(BlockId block)
{
    auto& record = mStore[block];
    if (record.state == BlockState::kFree)
    {
        listsOf(block).free.remove(block, linksOf());
    }
    else
    {
        expect(block, BlockState::kCached);
        delist(block);
    }
    record.state = BlockState::kHeld;
}

inline void EvictionPolicy::releaseFree(BlockId block)
{
    expect(block, BlockState::kHeld);
    listsOf(block).free.pushFront(block, linksOf());
    mStore[block].state = BlockState::kFree;
}

inline void EvictionPolicy::releaseCached(BlockId block)
{
    expect(block, BlockState::kHeld);
    mStore[block].state = BlockState::kCached;
    enlist(block, false);
}

inline void EvictionPolicy::enlist(BlockId block, bool toFront)
{
    auto& lists = listsOf(block);
    auto const level = mStore[block].level;
    if (toFront)
    {
        lists.levels[level].pushFront(block, linksOf());
    }
    else
    {
        lists.levels[level].pushBack(block, linksOf());
    }
    lists.occupied[level / 64] |= std::uint64_t{1} << (level % 64);
    ++lists.numCached;
}

inline void EvictionPolicy::delist(BlockId block)
{
    auto& lists = listsOf(block);
    auto const level = mStore[block].level;
    auto& list = lists.levels[level];
    list.remove(block, linksOf());
    if (list.empty())
    {
        lists.occupied[level / 64] &= ~(std::uint64_t{1} << (level % 64));
    }
    --lists.numCached;
}

} // namespace tensorrt_llm::batch_manager
