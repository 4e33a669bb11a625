// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerWindows.cpp
//! KVCacheManager: what its operations mean for the window pools. Only called where there are any.
//!
//! A sequence's table in a pool always covers the same blocks: from the first that a token to come attends to, to the
//! last that the next step may write (fitWindows). Slots that it finds attached are held before any is taken, since
//! taking one may give up another.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "checks.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

void KVCacheManager::checkWindowNeed(SequenceId id, std::int64_t numSlots) const
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto const& pool = mWindows[index];
        if (auto const most = pool.mostBlocks(0, numSlots); most > pool.numSlots())
        {
            throw CapacityExceededError(nameOfSequence(id) + " needs " + std::to_string(most) + " blocks at a time for "
                                        + std::to_string(numSlots) + " tokens, pool " + std::to_string(index + 1)
                                        + " of window " + std::to_string(pool.windowSize()) + " has "
                                        + std::to_string(pool.numSlots()));
        }
    }
}

//! Drops the partial match if a pool lacks what the token after it attends to, and then the blocks behind the longest
//! prefix for which every pool has it. Otherwise that prefix is what remains if the partial match is not used.
void KVCacheManager::limitToWindows()
{
    auto const size = mMatch.blocks.size();
    mMatch.numInWindows = usableBlocks();
    auto const numTokens = static_cast<std::int64_t>(size) * tokensPerBlock() + mMatch.partial.numTokens;
    auto usable = mMatch.partial.block != kNoBlock;
    for (std::size_t index = 0; usable && index < mWindows.size(); ++index)
    {
        auto const& pool = mWindows[index];
        usable = pool.slotOf(mMatch.partial.block) != kNoBlock;
        for (auto block = static_cast<std::size_t>(pool.firstBlock(numTokens)); usable && block < size; ++block)
        {
            usable = pool.slotOf(mMatch.blocks[block]) != kNoBlock;
        }
    }
    if (!usable)
    {
        mMatch.cutByWindows = mMatch.partial.block != kNoBlock;
        mMatch.partial = {};
        mMatch.partialIsWhole = false;
        cutMatch(mMatch.numInWindows);
    }
}

//! The most leading blocks of the match after which every pool has what the next token attends to. From the end on: a
//! block that lacks its slot is in the window of every shorter prefix that contains it, so the search goes on before
//! it. No block is looked at twice in a pool.
std::size_t KVCacheManager::usableBlocks()
{
    auto end = mMatch.blocks.size();
    std::fill(mAttachedFrom.begin(), mAttachedFrom.end(), end);
    for (std::size_t index = 0; index < mWindows.size();)
    {
        auto const& pool = mWindows[index];
        auto const first = static_cast<std::size_t>(pool.firstBlock(static_cast<std::int64_t>(end) * tokensPerBlock()));
        auto& from = mAttachedFrom[index];
        from = std::min(from, end);
        while (from > first && pool.slotOf(mMatch.blocks[from - 1]) != kNoBlock)
        {
            --from;
        }
        if (from <= first)
        {
            ++index;
            continue;
        }
        end = --from; // the block without a slot; pools before this one look again
        index = 0;
    }
    return end;
}

void KVCacheManager::cutMatch(std::size_t numBlocks)
{
    auto const size = mMatch.blocks.size();
    if (numBlocks == size)
    {
        return;
    }
    for (; mMatch.blocks.size() > numBlocks; mMatch.blocks.pop_back())
    {
        auto const& record = mStore[mMatch.blocks.back()];
        mMatch.numToTake -= record.state == BlockState::kCached || record.onHost ? 1 : 0;
        mMatch.numOnHost -= record.onHost ? 1 : 0;
    }
    mMatch.cutByWindows = true;
    // Blocks that were found need not have been hashed; those that will be computed have to be.
    auto const& parentHash = numBlocks == 0 ? mMatch.rootHash : mStore[mMatch.blocks.back()].hash;
    mMatch.keys.hash(numBlocks, size, parentHash, mTree.hasher());
}

bool KVCacheManager::windowsCanPromise(std::int64_t numWritten, std::int64_t numSlots, BlockId numPins) const
{
    return std::all_of(mWindows.begin(), mWindows.end(),
        [&](WindowPool const& pool) { return pool.canPromise(pool.mostBlocks(numWritten, numSlots), numPins); });
}

//! Promises a sequence the slots that it may come to need for \p numSlots tokens. \return whether that can be.
bool KVCacheManager::extendWindows(Sequence& sequence, std::int64_t numSlots)
{
    auto const numMore = [&](std::size_t index)
    {
        auto const most = mWindows[index].mostBlocks(sequence.numWritten, numSlots);
        return std::max<BlockId>(0, most - sequence.windows[index].numPromised);
    };
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        if (!mWindows[index].canPromise(numMore(index), 0))
        {
            return false;
        }
    }
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto const more = numMore(index);
        mWindows[index].promise(more);
        sequence.windows[index].numPromised += more;
    }
    return true;
}

//! Promises a new sequence its slots, and holds those of the blocks that it shares.
void KVCacheManager::holdWindows(Sequence& added, ArrayView<BlockId> shared)
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto& pool = mWindows[index];
        auto& table = added.windows[index];
        table.first = pool.firstBlock(added.numWritten);
        table.numPromised = pool.mostBlocks(added.numWritten, added.numSlots);
        pool.promise(table.numPromised);
        table.slots.assign(static_cast<std::size_t>(table.first), kNoBlock);
        while (table.slots.size() < shared.size())
        {
            table.slots.push_back(pool.acquire(shared[table.slots.size()]));
        }
    }
}

//! eraseFromTree of a block that becomes the sequence's own, and keeps its slots.
void KVCacheManager::takeOverWindows(Sequence& added, BlockId block)
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        added.windows[index].slots.push_back(mWindows[index].acquire(block));
    }
    eraseFromTree(block);
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        mWindows[index].attach(added.windows[index].slots.back(), block);
    }
}

//! Copies the head of a block to the sequence's last one. Its ends are held by the copy too, so that they are not
//! handed out when the window moves on before the copy is done.
void KVCacheManager::copyWindows(Sequence& added, CopyKind kind, BlockId source, std::int32_t numTokens)
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto& pool = mWindows[index];
        auto& slots = added.windows[index].slots;
        auto const from = pool.slotOf(source);
        pool.pin(from);
        auto const to = pool.take(added.blocks[slots.size()]);
        pool.pin(to);
        slots.push_back(to);
        mCopies.add({kind, from, to, numTokens, static_cast<std::int32_t>(index) + 1}, from, to);
    }
}

//! Gives back the slots that the sequence does not need any more and takes those that it needs now.
void KVCacheManager::fitWindows(Sequence& sequence)
{
    auto const numTokens = std::min(sequence.numTokens, sequence.numSlots);
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto& pool = mWindows[index];
        auto& table = sequence.windows[index];
        auto const end = static_cast<std::size_t>(pool.endBlock(sequence.numWritten, numTokens));
        for (; table.slots.size() > end; table.slots.pop_back())
        {
            pool.release(table.slots.back());
        }
        for (auto const first = pool.firstBlock(sequence.numWritten); table.first < first; ++table.first)
        {
            auto& slot = table.slots[static_cast<std::size_t>(table.first)];
            pool.releaseBehind(slot);
            slot = kNoBlock;
        }
        auto const most = pool.mostBlocks(sequence.numWritten, sequence.numSlots);
        pool.takeBack(table.numPromised - most);
        table.numPromised = most;
        while (table.slots.size() < end)
        {
            table.slots.push_back(pool.take(sequence.blocks[table.slots.size()]));
        }
    }
}

//! The sequence's block at \p index is about to give way to an equal one. The equal one's slot is as good as its own;
//! where it has none it gets the sequence's.
void KVCacheManager::mergeWindows(Sequence& sequence, std::size_t index, BlockId existing)
{
    for (std::size_t number = 0; number < mWindows.size(); ++number)
    {
        auto& pool = mWindows[number];
        auto& slot = sequence.windows[number].slots[index];
        if (slot == kNoBlock)
        {
            continue;
        }
        if (pool.slotOf(existing) == kNoBlock)
        {
            pool.attach(slot, existing);
            continue;
        }
        pool.release(slot);
        slot = pool.acquire(existing);
    }
}

//! The tail of an ending sequence is not kept, since an equal block is findable. Where that has no slot it gets the
//! tail's.
void KVCacheManager::lendWindows(BlockId tail, BlockId existing)
{
    for (auto& pool : mWindows)
    {
        auto const slot = pool.slotOf(tail);
        if (slot != kNoBlock && pool.slotOf(existing) == kNoBlock)
        {
            pool.attach(slot, existing);
        }
    }
}

//! What an ended sequence holds while a copy is under way is all that it is promised.
void KVCacheManager::settleEnding(Sequence& ending)
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto& table = ending.windows[index];
        auto const held = static_cast<BlockId>(static_cast<std::int64_t>(table.slots.size()) - table.first);
        mWindows[index].takeBack(table.numPromised - held);
        table.numPromised = held;
    }
}

void KVCacheManager::releaseWindows(Sequence& ending)
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto& table = ending.windows[index];
        for (; static_cast<std::int64_t>(table.slots.size()) > table.first; table.slots.pop_back())
        {
            mWindows[index].release(table.slots.back());
        }
        mWindows[index].takeBack(table.numPromised);
        table.numPromised = 0;
    }
}

//! The block leaves the tree, or nobody holds it any more and nobody can find it.
void KVCacheManager::dropWindows(BlockId block)
{
    for (auto& pool : mWindows)
    {
        pool.detach(block);
    }
}

//! No block is findable any more. Slots that sequences hold stay attached to their blocks.
void KVCacheManager::resetWindows()
{
    for (auto& pool : mWindows)
    {
        pool.dropCached();
    }
}

void KVCacheManager::checkWindows() const
{
    for (std::size_t index = 0; index < mWindows.size(); ++index)
    {
        auto const& pool = mWindows[index];
        std::vector<std::uint32_t> holders(static_cast<std::size_t>(pool.numSlots()), 0);
        std::int64_t numPromised = 0;
        auto const checkTable = [&](std::string const& name, Sequence const& checked)
        {
            auto const& table = checked.windows.at(index);
            auto const numTokens = std::min(checked.numTokens, checked.numSlots);
            expectEqual([&] { return "first block in the window of " + name; }, table.first,
                pool.firstBlock(checked.numWritten));
            expectEqual([&] { return "end of the window table of " + name; },
                static_cast<std::int64_t>(table.slots.size()), pool.endBlock(checked.numWritten, numTokens));
            std::int64_t numHeld = 0;
            for (std::size_t block = 0; block < table.slots.size(); ++block)
            {
                auto const inWindow = static_cast<std::int64_t>(block) >= table.first;
                expectEqual([&] { return "slot of block " + std::to_string(checked.blocks.at(block)) + " of " + name; },
                    table.slots[block], inWindow ? pool.slotOf(checked.blocks[block]) : kNoBlock);
                if (inWindow)
                {
                    ++holders.at(static_cast<std::size_t>(table.slots[block]));
                    ++numHeld;
                }
            }
            if (numHeld > table.numPromised)
            {
                throw InternalStateError(name + " holds " + std::to_string(numHeld) + " window slots, promised "
                                         + std::to_string(table.numPromised));
            }
            numPromised += table.numPromised;
        };
        for (auto const& [id, live] : mSequences)
        {
            auto const name = nameOfSequence(id);
            checkTable(name, live);
            expectEqual([&] { return "window slots promised to " + name; }, live.windows[index].numPromised,
                pool.mostBlocks(live.numWritten, live.numSlots));
        }
        for (auto const& node : mEnding)
        {
            checkTable("an ended sequence", node.mapped());
        }
        mCopies.forEachHeld(
            [&](std::int32_t number, BlockId slot)
            {
                if (number == static_cast<std::int32_t>(index) + 1)
                {
                    ++holders.at(static_cast<std::size_t>(slot));
                }
            });
        pool.checkIntegrity(holders, numPromised);
    }
}

} // namespace tensorrt_llm::batch_manager
