// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file slotTable.h
//! An open-addressing table from 64-bit hashes to block ids: eight bytes a slot, linear probing, no tombstones.
//!
//! A slot keeps the upper half of the hash beside the id. The slot's home is computed from that half alone, so entries
//! can move without looking at what they name. Equal hashes may be entered many times; who asks decides by a predicate
//! which of them is meant. Holds at most half as many entries as it has slots. One thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/lazyArray.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tensorrt_llm::batch_manager
{

class SlotTable
{
public:
    explicit SlotTable(BlockId maxEntries)
        : mShift{32 - bitsFor(maxEntries)}
        , mSlots{std::size_t{1} << (32 - mShift)}
        , mMask{mSlots.size() - 1}
    {
    }

    //! Brings the slot that find will look at first closer.
    void prefetch(std::uint64_t hash) const
    {
        __builtin_prefetch(&mSlots[home(tagOf(hash))]);
    }

    //! The entry in that slot, whatever its hash, or kNoBlock: the likely answer of find, for prefetching.
    [[nodiscard]] BlockId peek(std::uint64_t hash) const
    {
        return blockOf(mSlots[home(tagOf(hash))]);
    }

    //! The first entry with the same upper half of \p hash for which \p matches(block) holds, or kNoBlock.
    template <typename Predicate>
    [[nodiscard]] BlockId find(std::uint64_t hash, Predicate const& matches) const
    {
        auto const tag = tagOf(hash);
        for (auto position = home(tag); mSlots[position] != 0; position = (position + 1) & mMask)
        {
            auto const slot = mSlots[position];
            if (slot >> 32 == tag && matches(blockOf(slot)))
            {
                return blockOf(slot);
            }
        }
        return kNoBlock;
    }

    void insert(std::uint64_t hash, BlockId block)
    {
        auto position = home(tagOf(hash));
        while (mSlots[position] != 0)
        {
            position = (position + 1) & mMask;
        }
        mSlots[position] = makeSlot(hash, block);
    }

    //! Requires that \p block was inserted with \p hash.
    void erase(std::uint64_t hash, BlockId block)
    {
        auto hole = locate(hash, block);
        // Entries behind the hole move up unless their home lies between the hole and them.
        for (auto position = (hole + 1) & mMask; mSlots[position] != 0; position = (position + 1) & mMask)
        {
            auto const entryHome = home(mSlots[position] >> 32);
            if (((position - entryHome) & mMask) >= ((position - hole) & mMask))
            {
                mSlots[hole] = mSlots[position];
                hole = position;
            }
        }
        mSlots[hole] = 0;
    }

    //! Enters \p successor in place of \p block. Requires that \p block was inserted with \p hash.
    void replace(std::uint64_t hash, BlockId block, BlockId successor)
    {
        mSlots[locate(hash, block)] = makeSlot(hash, successor);
    }

    void clear()
    {
        std::fill_n(mSlots.data(), mSlots.size(), Slot{0});
    }

    //! Counts the entries, in time proportional to the table.
    [[nodiscard]] std::int64_t count() const
    {
        return static_cast<std::int64_t>(mSlots.size()) - std::count(mSlots.begin(), mSlots.end(), Slot{0});
    }

private:
    //! 0 if empty, otherwise the hash's upper half over the block id plus one.
    using Slot = std::uint64_t;

    static unsigned bitsFor(BlockId maxEntries)
    {
        unsigned bits = 1;
        while ((std::int64_t{1} << bits) < 2 * std::int64_t{maxEntries})
        {
            ++bits;
        }
        return bits;
    }

    static std::uint64_t tagOf(std::uint64_t hash)
    {
        return hash >> 32;
    }

    static Slot makeSlot(std::uint64_t hash, BlockId block)
    {
        return (hash & 0xffffffff00000000ULL) | (static_cast<std::uint64_t>(block) + 1);
    }

    static BlockId blockOf(Slot slot)
    {
        return static_cast<BlockId>(slot & 0xffffffffULL) - 1;
    }

    [[nodiscard]] std::size_t home(std::uint64_t tag) const
    {
        return static_cast<std::size_t>(tag >> mShift);
    }

    [[nodiscard]] std::size_t locate(std::uint64_t hash, BlockId block) const
    {
        auto const slot = makeSlot(hash, block);
        auto position = home(tagOf(hash));
        while (mSlots[position] != slot)
        {
            position = (position + 1) & mMask;
        }
        return position;
    }

    unsigned mShift; //!< from a tag to its home
    LazyArray<Slot> mSlots;
    std::size_t mMask;
};

} // namespace tensorrt_llm::batch_manager
