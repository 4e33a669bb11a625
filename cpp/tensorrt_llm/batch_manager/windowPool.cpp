// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/windowPool.h"

#include "checks.h"

#include <algorithm>
#include <limits>
#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

// Far beyond any model, and far from where sums of such numbers overflow.
constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();

std::int64_t checked(char const* name, std::int64_t value, std::int64_t least)
{
    if (value < least || value > kMaxTokens)
    {
        throw InvalidArgumentError(std::string{name} + " is " + std::to_string(value) + ", expected "
                                   + std::to_string(least) + " to " + std::to_string(kMaxTokens));
    }
    return value;
}

std::string nameOf(BlockId slot)
{
    return "window slot " + std::to_string(slot);
}

} // namespace

WindowPool::WindowPool(WindowPoolConfig const& config, std::int64_t maxStepTokens, BlockStore const& store)
    : mStore{store}
    , mWindowSize{checked("window_size", config.windowSize, 2)}
    , mMaxStepTokens{checked("max_step_tokens", maxStepTokens, 0)}
    , mTokensPerBlock{store.tokensPerBlock()}
    , mSlotOf{static_cast<std::size_t>(store.numBlocks())}
    , mSlots{static_cast<std::size_t>(checked("num_blocks of a window pool", config.numBlocks, 1))}
{
    for (BlockId slot = 0; slot < numSlots(); ++slot)
    {
        at(slot).node = kNoBlock;
        mFree.pushBack(slot, linksOf());
    }
}

BlockId WindowPool::mostBlocks(std::int64_t numWritten, std::int64_t numSlots) const
{
    auto const ahead = std::max<std::int64_t>(blocksFor(numSlots) - firstBlock(numWritten), 0);
    if (mMaxStepTokens == 0)
    {
        return static_cast<BlockId>(ahead);
    }
    // A run of n tokens touches at most this many blocks, wherever it begins; the run is the window and a step.
    auto const most = blocksFor(mWindowSize - 1 + mMaxStepTokens - 1) + 1;
    return static_cast<BlockId>(std::min(ahead, most));
}

BlockId WindowPool::acquire(BlockId node)
{
    auto const slot = slotOf(node);
    if (slot == kNoBlock)
    {
        throw InternalStateError("block " + std::to_string(node) + " has 0 slots in the pool of window "
                                 + std::to_string(mWindowSize) + ", expected 1");
    }
    hold(slot);
    return slot;
}

BlockId WindowPool::take(BlockId node)
{
    auto const fromFree = mFree.first() != kNoBlock;
    auto const slot = fromFree ? mFree.first() : mCached.first();
    if (slot == kNoBlock)
    {
        throw InternalStateError("the pool of window " + std::to_string(mWindowSize) + " has 0 of "
                                 + std::to_string(numSlots()) + " slots left, " + std::to_string(mNumPromised)
                                 + " promised, " + std::to_string(mNumPins) + " pinned");
    }
    if (fromFree)
    {
        mFree.remove(slot, linksOf());
        at(slot).references.acquire();
    }
    else
    {
        hold(slot);
        ++mNumEvicted;
    }
    attach(slot, node);
    return slot;
}

void WindowPool::release(BlockId slot)
{
    auto& record = at(slot);
    if (record.references.release() != 0)
    {
        return;
    }
    if (record.node != kNoBlock && mStore[record.node].present)
    {
        mCached.pushBack(slot, linksOf());
        return;
    }
    if (record.node != kNoBlock)
    {
        mSlotOf[static_cast<std::size_t>(record.node)] = 0;
        record.node = kNoBlock;
    }
    mFree.pushBack(slot, linksOf());
}

void WindowPool::attach(BlockId slot, BlockId node)
{
    auto& record = at(slot);
    if (record.references.value() == 0 || slotOf(node) != kNoBlock)
    {
        throw InternalStateError(nameOf(slot) + " with " + std::to_string(record.references.value())
                                 + " holders, expected at least 1, to block " + std::to_string(node) + " with slot "
                                 + std::to_string(slotOf(node)) + ", expected " + std::to_string(kNoBlock));
    }
    if (record.node != kNoBlock)
    {
        mSlotOf[static_cast<std::size_t>(record.node)] = 0;
    }
    record.node = node;
    mSlotOf[static_cast<std::size_t>(node)] = slot + 1;
}

void WindowPool::detach(BlockId node)
{
    auto const slot = slotOf(node);
    if (slot == kNoBlock)
    {
        return;
    }
    mSlotOf[static_cast<std::size_t>(node)] = 0;
    at(slot).node = kNoBlock;
    if (at(slot).references.value() == 0)
    {
        mCached.remove(slot, linksOf());
        mFree.pushBack(slot, linksOf());
    }
}

void WindowPool::dropCached()
{
    while (mCached.first() != kNoBlock)
    {
        detach(at(mCached.first()).node);
    }
}

void WindowPool::pin(BlockId slot)
{
    hold(slot);
    ++mNumPins;
}

void WindowPool::unpin(BlockId slot)
{
    release(slot);
    --mNumPins;
}

WindowPoolStats WindowPool::stats() const
{
    return {mWindowSize, numSlots(), mFree.size() + mCached.size(), mCached.size(), mNumPromised, mNumEvicted,
        mNumReleased};
}

//! Of a slot that is not free.
void WindowPool::hold(BlockId slot)
{
    if (at(slot).references.acquire() == 1)
    {
        mCached.remove(slot, linksOf());
    }
}

void WindowPool::checkList(LinkedList const& list, bool cached, std::vector<bool>& seen) const
{
    BlockId size = 0;
    auto previous = kNoBlock;
    for (auto slot = list.first(); slot != kNoBlock; slot = at(slot).links.next)
    {
        expectEqual([&] { return "lists that " + nameOf(slot) + " is on"; },
            seen.at(static_cast<std::size_t>(slot)) ? 2 : 1, 1);
        seen[static_cast<std::size_t>(slot)] = true;
        expectEqual([&] { return "entry before " + nameOf(slot); }, at(slot).links.previous, previous);
        auto const node = at(slot).node;
        expectEqual([&] { return "findable block of listed " + nameOf(slot); },
            node != kNoBlock && mStore[node].present, cached);
        previous = slot;
        ++size;
    }
    expectEqual([] { return std::string{"last entry of a list of window slots"}; }, list.last(), previous);
    expectEqual([] { return std::string{"entries of a list of window slots"}; }, size, list.size());
}

void WindowPool::checkIntegrity(std::vector<std::uint32_t> const& holders, std::int64_t numPromised) const
{
    std::vector<bool> listed(mSlots.size(), false);
    checkList(mFree, false, listed);
    checkList(mCached, true, listed);
    std::int64_t numHeld = 0;
    std::int64_t numAttached = 0;
    for (BlockId slot = 0; slot < numSlots(); ++slot)
    {
        auto const index = static_cast<std::size_t>(slot);
        expectEqual([&] { return "holders of " + nameOf(slot); }, at(slot).references.value(), holders.at(index));
        expectEqual([&] { return nameOf(slot) + " on a list"; }, listed[index], holders[index] == 0);
        numHeld += holders[index] != 0 ? 1 : 0;
        if (auto const node = at(slot).node; node != kNoBlock)
        {
            expectEqual([&] { return "slot of block " + std::to_string(node); }, slotOf(node), slot);
            ++numAttached;
        }
    }
    for (BlockId node = 0; node < mStore.numBlocks(); ++node)
    {
        numAttached -= slotOf(node) != kNoBlock ? 1 : 0;
        expectEqual([&] { return "slot of free block " + std::to_string(node); },
            mStore[node].state == BlockState::kFree && slotOf(node) != kNoBlock, 0);
    }
    expectEqual([] { return std::string{"slots attached to nodes, less nodes that have one"}; }, numAttached, 0);
    expectEqual([] { return std::string{"free, cached and held window slots"}; },
        mFree.size() + mCached.size() + numHeld, numSlots());
    expectEqual([] { return std::string{"promised window slots"}; }, mNumPromised, numPromised);
    if (!canPromise(0, 0))
    {
        throw InternalStateError(std::to_string(mNumPromised) + " window slots promised and " + std::to_string(mNumPins)
                                 + " pinned of " + std::to_string(numSlots()));
    }
}

} // namespace tensorrt_llm::batch_manager
