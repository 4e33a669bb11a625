// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerBlocks.cpp
//! KVCacheManager: taking and giving back single blocks.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <string>

namespace tensorrt_llm::batch_manager
{

BlockId KVCacheManager::available() const
{
    return mPolicy.numFree(Tier::kDevice) + mPolicy.numCached(Tier::kDevice) - mNumReserved;
}

void KVCacheManager::hold(BlockId block)
{
    if (mStore[block].references.acquire() == 1)
    {
        mPolicy.claim(block);
    }
}

void KVCacheManager::letGo(BlockId block)
{
    auto& record = mStore[block];
    if (record.references.release() != 0)
    {
        return;
    }
    if (!record.present)
    {
        mPolicy.releaseFree(block);
        return;
    }
    record.level = std::max(record.level, record.priority);
    mPolicy.releaseCached(block);
    if (record.parent >= 0)
    {
        auto& parent = mStore[record.parent];
        parent.level = std::max(parent.level, record.level);
    }
}

BlockId KVCacheManager::takeBlock()
{
    auto const block = mPolicy.next(Tier::kDevice);
    if (block == kNoBlock)
    {
        throw InternalStateError("no block for a promise: " + std::to_string(mNumReserved) + " promised, 0 unheld");
    }
    if (mStore[block].present)
    {
        eraseFromTree(block);
        ++mEvictedBlocks;
    }
    hold(block);
    prefetchNext();
    auto& record = mStore[block];
    record.priority = kDefaultPriority;
    record.level = kDefaultPriority;
    mStore.setMedia(block, {});
    return block;
}

void KVCacheManager::prefetchNext() const
{
    // Two takes ahead for the slot and the key, three for the record that names the next one.
    auto block = mPolicy.next(Tier::kDevice);
    for (int ahead = 1; ahead <= 2 && block != kNoBlock; ++ahead)
    {
        block = mStore[block].listNext;
        if (block != kNoBlock && ahead == 1)
        {
            mTree.prefetchErase(block);
            mStore.prefetchKey(block, false);
        }
    }
    if (block != kNoBlock && mStore[block].listNext != kNoBlock)
    {
        mStore.prefetchRecord(mStore[block].listNext);
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
        sequence.blocks.push_back(takeBlock());
        --sequence.numReserved;
        --mNumReserved;
        ++mAllocNewBlocks;
    }
}

void KVCacheManager::eraseFromTree(BlockId block)
{
    auto const parent = mTree.parentOf(block);
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

} // namespace tensorrt_llm::batch_manager
