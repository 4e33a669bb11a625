// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerBlocks.cpp
//! KVCacheManager: taking and giving back single blocks, and moving them between the tiers.
//!
//! A block here is a node: its key, its place in the tree, its holders. The place in a pool where its KV lies is its
//! slot. Moving a block to the other tier exchanges its slot with that of an empty block there, so that children,
//! tables and lists go on naming the same block.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tensorrt_llm::batch_manager
{

BlockId KVCacheManager::available() const
{
    return mPolicy.numFree(Tier::kDevice) + mPolicy.numCached(Tier::kDevice) - mNumReserved;
}

//! Of a block that its last holder has let go.
void KVCacheManager::becomeIdle(BlockId block)
{
    auto& record = mStore[block];
    if (!record.present)
    {
        if (mHasWindows)
        {
            dropWindows(block);
        }
        mRetention.stop(block);
        mPolicy.releaseFree(block);
        return;
    }
    record.level = std::max(record.level, record.priority);
    mPolicy.releaseCached(block);
    mRetention.start(block);
    mIdle.start(block);
    if (record.parent >= 0 && mStore[record.parent].level < record.level)
    {
        liftAbove(block);
    }
}

//! Brings the ancestors of a cached block to its level at least, and behind it if they are cached too.
void KVCacheManager::liftAbove(BlockId block)
{
    auto const level = mStore[block].level;
    for (NodeId node = mTree.parentOf(block); node >= 0 && mStore[node].level <= level; node = mTree.parentOf(node))
    {
        if (mPolicy.state(node) == BlockState::kHeld)
        {
            // Who holds it holds what is above it too, and lets go of it after this block.
            mStore[node].level = level;
            return;
        }
        mPolicy.relist(node, level, false);
    }
}

BlockId KVCacheManager::takeBlock()
{
    auto block = mPolicy.next(Tier::kDevice);
    if (block == kNoBlock)
    {
        throw InternalStateError("no block for a promise: " + std::to_string(mNumReserved) + " promised, 0 unheld");
    }
    auto const cached = mStore[block].present;
    auto const host = cached && mStore[block].level >= mOffloadMinPriority ? takeHostBlock() : kNoBlock;
    if (host != kNoBlock)
    {
        // Lying unused goes on, so the clock is not stopped.
        mStore[block].references.acquire();
        mPolicy.claim(block);
        swapSlots(block, host);
        addCopy(CopyKind::kOffload, host, block, tokensPerBlock(), block);
        mEvents.levelChanged(block, 0, 1);
        ++mOffloadedBlocks;
        block = host;
    }
    else
    {
        if (cached)
        {
            evict(block, mEvictedOnDevice);
        }
        hold(block);
    }
    prefetchNext();
    resetRetention(block);
    mStore.setMedia(block, {});
    return block;
}

//! Of a block that gets new content.
void KVCacheManager::resetRetention(BlockId block)
{
    mStore[block].priority = kDefaultPriority;
    mStore[block].level = kDefaultPriority;
    mRetention.setDuration(block, std::nullopt);
}

//! An empty block of the host pool, held, or kNoBlock if none can be had.
BlockId KVCacheManager::takeHostBlock()
{
    auto const block = mPolicy.next(Tier::kHost);
    if (block == kNoBlock)
    {
        return kNoBlock;
    }
    if (mStore[block].present)
    {
        evict(block, mEvictedOnHost);
    }
    hold(block);
    return block;
}

//! Takes a cached block out of the tree, and with it what lies below on the host. It stays on its list.
//! \param cause counts the block; those below have their own count.
void KVCacheManager::evict(BlockId block, std::int64_t& cause)
{
    while (true)
    {
        auto leaf = block;
        while (!mTree.isLeaf(leaf))
        {
            leaf = mTree.firstChildOf(leaf);
        }
        auto const hash = mStore[leaf].hash;
        mEvictedHashes[rememberedAt(hash)] = hash.high;
        mEvictedAt[rememberedAt(hash)] = mIdle.now();
        mEvictedIdle.add(mIdle.idleMs(leaf));
        eraseFromTree(leaf);
        if (leaf == block)
        {
            ++cause;
            return;
        }
        ++mEvictedWithParent;
        if (mPolicy.state(leaf) == BlockState::kCached)
        {
            mRetention.stop(leaf);
            mIdle.stop(leaf);
            mPolicy.demote(leaf);
        }
    }
}

//! Of a block that a prompt found, before it is held.
void KVCacheManager::countReuse(BlockId block)
{
    if (mIdle.isIdle(block))
    {
        mReusedIdle.add(mIdle.idleMs(block));
    }
}

void KVCacheManager::swapSlots(BlockId one, BlockId other)
{
    std::swap(mStore[one].slot, mStore[other].slot);
    std::swap(mStore[one].onHost, mStore[other].onHost);
}

//! Brings a held block from the host to the device.
void KVCacheManager::onboard(BlockId block)
{
    auto const empty = takeBlock();
    swapSlots(block, empty);
    addCopy(CopyKind::kOnboard, empty, block, tokensPerBlock(), empty);
    mEvents.levelChanged(block, 1, 0);
    ++mOnboardedBlocks;
}

void KVCacheManager::addCopy(CopyKind kind, BlockId source, BlockId destination, std::int32_t numTokens, BlockId held)
{
    mCopies.add({kind, placeOf(source), placeOf(destination), numTokens}, held);
}

void KVCacheManager::prefetchNext() const
{
    // Two takes ahead for the slot and the key, three for the record that names the next one.
    auto block = mPolicy.next(Tier::kDevice);
    for (int ahead = 1; ahead <= 2 && block != kNoBlock; ++ahead)
    {
        block = mStore[block].links.next;
        if (block != kNoBlock && ahead == 1)
        {
            mTree.prefetchErase(block);
            mEvents.prefetch(block);
            mStore.prefetchKey(block, false);
        }
    }
    if (block != kNoBlock && mStore[block].links.next != kNoBlock)
    {
        mStore.prefetchRecord(mStore[block].links.next);
    }
}

void KVCacheManager::takeBlocks(Sequence& sequence, std::size_t numBlocks)
{
    while (sequence.blocks.size() < numBlocks)
    {
        if (sequence.numReserved == 0)
        {
            throw InternalStateError(
                "a sequence of " + std::to_string(sequence.blocks.size()) + " blocks wants one more, promised 0");
        }
        auto const before = mOffloadedBlocks;
        sequence.blocks.push_back(takeBlock());
        if (mOffloadedBlocks != before)
        {
            sequence.ticket = mCopies.next(); // what lay there is being read
        }
        --sequence.numReserved;
        --mNumReserved;
        ++mAllocNewBlocks;
        retain(sequence, sequence.blocks.size() - 1);
    }
}

void KVCacheManager::eraseFromTree(BlockId block)
{
    auto const parent = mTree.parentOf(block);
    if (mHasWindows)
    {
        dropWindows(block);
    }
    mEvents.removed(block);
    mTree.erase(block);
    // A parent that stood high for the sake of its children stands on its own again when the last is gone.
    if (parent >= 0 && mTree.isLeaf(parent) && mStore[parent].level != mStore[parent].priority)
    {
        if (mPolicy.state(parent) == BlockState::kCached)
        {
            mPolicy.relist(parent, mStore[parent].priority, true);
        }
        else
        {
            mStore[parent].level = mStore[parent].priority;
        }
    }
}

//! Of a held block.
void KVCacheManager::setRetention(BlockId block, BlockRetention const& retention)
{
    auto& record = mStore[block];
    if (mTree.contains(block))
    {
        mEvents.priorityChanged(block, record.priority, retention.priority);
    }
    record.priority = static_cast<std::uint8_t>(retention.priority);
    record.level = mTree.isLeaf(block) ? record.priority : std::max(record.level, record.priority);
    mRetention.setDuration(block, retention.durationMs);
}

//! The block's priority is the default again. Its level follows, but not below that of its children.
void KVCacheManager::fallBack(BlockId block)
{
    if (mTree.contains(block))
    {
        mEvents.priorityChanged(block, mStore[block].priority, kDefaultPriority);
    }
    mStore[block].priority = kDefaultPriority;
    auto const level = mTree.isLeaf(block) ? kDefaultPriority : std::max(mStore[block].level, kDefaultPriority);
    if (level == mStore[block].level)
    {
        return;
    }
    auto const rises = level > mStore[block].level;
    if (mPolicy.state(block) == BlockState::kHeld)
    {
        mStore[block].level = level;
        return;
    }
    mPolicy.relist(block, level, false);
    if (rises)
    {
        liftAbove(block);
    }
}

} // namespace tensorrt_llm::batch_manager
