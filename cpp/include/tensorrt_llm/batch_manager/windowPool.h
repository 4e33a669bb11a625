// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file windowPool.h
//! The pool of layers whose tokens see only a window: where the KV of a block lies there, if it still does.
//!
//! A block of the manager (its key, its place in the tree, its holders) is a node here. A window pool knows places,
//! called slots, and attaches them to nodes: at most one slot to a node, at most one node to a slot. A token attends to
//! the windowSize last tokens, itself included, so a sequence holds slots for the blocks around its end only, and a
//! findable node may be without a slot.
//!
//! | state  | attached to     | list           | moved by                                                   |
//! |--------|-----------------|----------------|------------------------------------------------------------|
//! | free   | nothing         | free           | release and unpin of a node not findable, detach           |
//! | cached | a findable node | least recent   | release and unpin of a findable node                       |
//! | held   | a node or none  | none           | take, from free or cached; acquire, from cached; pin       |
//!
//! Free slots go first, then the cached one that was released longest ago; its node goes on without it. Who holds a
//! slot counts: each sequence that has it in its table, and each copy under way (a pin).
//!
//! Promises: before a sequence takes anything it is promised mostBlocks slots. As long as the slots promised and pinned
//! do not exceed the pool (canPromise), take finds one whenever a sequence holds fewer than it was promised.
//!
//! One thread at a time.

#pragma once

#include "tensorrt_llm/batch_manager/blockStore.h"
#include "tensorrt_llm/batch_manager/common.h"
#include "tensorrt_llm/batch_manager/lazyArray.h"
#include "tensorrt_llm/batch_manager/linkedList.h"
#include "tensorrt_llm/batch_manager/refCount.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorrt_llm::batch_manager
{

//! Slots that a copy between slots holds while it is under way: its source and its destination.
inline constexpr BlockId kPinsOfCopy = 2;

struct WindowPoolConfig
{
    std::int64_t windowSize{0}; //!< tokens that one attends to, itself included; at least 2
    BlockId numBlocks{0};       //!< of the pool, at least 1
};

struct WindowPoolStats
{
    std::int64_t windowSize;
    BlockId maxNumBlocks;
    BlockId freeNumBlocks;       //!< held by no sequence and no copy: empty or cached
    BlockId cachedNumBlocks;     //!< of these, the cached
    BlockId promisedNumBlocks;   //!< to live sequences, taken or not
    std::int64_t evictedBlocks;  //!< since start: cached ones given up to make room
    std::int64_t releasedBlocks; //!< since start: given back by sequences whose window had moved on
};

class WindowPool
{
public:
    //! \param maxStepTokens the most tokens that a sequence writes between two commits; 0 for no bound.
    //! \param store of the nodes. Whether one is findable is read from its record.
    //! \throws InvalidArgumentError
    WindowPool(WindowPoolConfig const& config, std::int64_t maxStepTokens, BlockStore const& store);

    //! The first block that a token from \p numWritten on attends to. Blocks before it are out of the window for good.
    [[nodiscard]] std::int64_t firstBlock(std::int64_t numWritten) const
    {
        auto const firstToken = numWritten - mWindowSize + 1;
        return firstToken > 0 ? firstToken / mTokensPerBlock : 0;
    }

    //! Behind the last block that a sequence of \p numTokens tokens may write before its next commit.
    [[nodiscard]] std::int64_t endBlock(std::int64_t numWritten, std::int64_t numTokens) const
    {
        auto const bounded = mMaxStepTokens > 0 && numTokens - numWritten > mMaxStepTokens;
        return blocksFor(bounded ? numWritten + mMaxStepTokens : numTokens);
    }

    //! The most slots that a sequence ever holds at a time, from \p numWritten of its \p numSlots tokens on.
    [[nodiscard]] BlockId mostBlocks(std::int64_t numWritten, std::int64_t numSlots) const;

    //! The slot attached to \p node, or kNoBlock.
    [[nodiscard]] BlockId slotOf(BlockId node) const
    {
        return mSlotOf[static_cast<std::size_t>(node)] - 1;
    }

    //! One more holder of the slot attached to \p node. \throws InternalStateError if there is none.
    BlockId acquire(BlockId node);

    //! Attaches an empty slot, made so by giving up a cached one if need be, to \p node, which has none.
    //! \throws InternalStateError if all are held.
    BlockId take(BlockId node);

    //! One holder less. The last one leaves the slot cached if its node is findable, otherwise free.
    void release(BlockId slot);

    //! release, for the reason that the holder's window has moved on.
    void releaseBehind(BlockId slot)
    {
        release(slot);
        ++mNumReleased;
    }

    //! Attaches a held slot to \p node, which has none, and to nothing else.
    void attach(BlockId slot, BlockId node);

    //! The node loses its slot if it has one. A slot that nobody holds becomes free.
    void detach(BlockId node);

    //! Makes every cached slot free: no node is findable any more.
    void dropCached();

    //! Holds a slot for a copy under way.
    void pin(BlockId slot);
    void unpin(BlockId slot);

    //! Whether \p numBlocks more can be promised, and \p numPins copies' ends be pinned besides.
    [[nodiscard]] bool canPromise(BlockId numBlocks, BlockId numPins) const
    {
        return std::int64_t{mNumPromised} + mNumPins + numBlocks + numPins <= numSlots();
    }

    void promise(BlockId numBlocks)
    {
        mNumPromised += numBlocks;
    }

    void takeBack(BlockId numBlocks)
    {
        mNumPromised -= numBlocks;
    }

    [[nodiscard]] std::int64_t windowSize() const
    {
        return mWindowSize;
    }

    [[nodiscard]] std::int64_t maxStepTokens() const
    {
        return mMaxStepTokens;
    }

    [[nodiscard]] BlockId numSlots() const
    {
        return static_cast<BlockId>(mSlots.size());
    }

    [[nodiscard]] WindowPoolStats stats() const;

    //! Recounts everything. \param holders of each slot, pins included, and \param numPromised as the caller knows
    //! them. \throws InternalStateError with what was found and what was expected.
    void checkIntegrity(std::vector<std::uint32_t> const& holders, std::int64_t numPromised) const;

private:
    struct Slot
    {
        BlockId node; //!< or kNoBlock
        ListLinks links;
        RefCount references;
    };

    [[nodiscard]] Slot& at(BlockId slot)
    {
        return mSlots[static_cast<std::size_t>(slot)];
    }

    [[nodiscard]] Slot const& at(BlockId slot) const
    {
        return mSlots[static_cast<std::size_t>(slot)];
    }

    [[nodiscard]] std::int64_t blocksFor(std::int64_t numTokens) const
    {
        return (numTokens + mTokensPerBlock - 1) / mTokensPerBlock;
    }

    void hold(BlockId slot);

    //! For the lists, which do not know the records.
    [[nodiscard]] auto linksOf()
    {
        return [this](BlockId slot) -> ListLinks&
        {
            return at(slot).links;
        };
    }

    void checkList(LinkedList const& list, bool cached, std::vector<bool>& seen) const;

    BlockStore const& mStore;
    std::int64_t mWindowSize;
    std::int64_t mMaxStepTokens;
    std::int64_t mTokensPerBlock;
    LazyArray<BlockId> mSlotOf; //!< by node: its slot plus one
    LazyArray<Slot> mSlots;
    LinkedList mFree;
    LinkedList mCached; //!< the least recently released first
    BlockId mNumPromised{0};
    BlockId mNumPins{0};
    std::int64_t mNumEvicted{0};
    std::int64_t mNumReleased{0};
};

} // namespace tensorrt_llm::batch_manager
