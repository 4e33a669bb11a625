// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManager.cpp
//! KVCacheManager: construction, queries, and the checks that come before an operation.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "checks.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace tensorrt_llm::batch_manager
{

namespace
{

constexpr std::int32_t kMaxTokensPerBlock = 32768;

BlockId checkedNumBlocks(BlockId numBlocks)
{
    if (numBlocks < 1)
    {
        throw InvalidArgumentError("num_blocks is " + std::to_string(numBlocks) + ", expected at least 1");
    }
    return numBlocks;
}

std::int32_t checkedTokensPerBlock(std::int32_t tokensPerBlock)
{
    if (tokensPerBlock < 2 || tokensPerBlock > kMaxTokensPerBlock || (tokensPerBlock & (tokensPerBlock - 1)) != 0)
    {
        throw InvalidArgumentError("tokens_per_block is " + std::to_string(tokensPerBlock)
                                   + ", expected a power of two of 2 to " + std::to_string(kMaxTokensPerBlock));
    }
    return tokensPerBlock;
}

BlockId checkedHostBlocks(KvCacheManagerConfig const& config)
{
    auto const most = std::numeric_limits<BlockId>::max() - config.numBlocks;
    if (config.hostBlocks < 0 || config.hostBlocks > most)
    {
        throw InvalidArgumentError(
            "host_blocks is " + std::to_string(config.hostBlocks) + ", expected 0 to " + std::to_string(most));
    }
    if (config.secondaryOffloadMinPriority < 0 || config.secondaryOffloadMinPriority > kMaxPriority)
    {
        throw InvalidArgumentError("secondary_offload_min_priority is "
                                   + std::to_string(config.secondaryOffloadMinPriority) + ", expected 0 to "
                                   + std::to_string(kMaxPriority));
    }
    return config.hostBlocks;
}

//! A power of two, about one for each block up to a million: enough to say why a recent prefix is gone.
std::size_t numRemembered(BlockId numBlocks)
{
    std::size_t size = 1;
    while (size < static_cast<std::size_t>(numBlocks) && size < (std::size_t{1} << 20))
    {
        size *= 2;
    }
    return size;
}

} // namespace

double KvCacheStats::cacheHitRate() const
{
    auto const looked = reusedBlocks + missedBlocks;
    return looked == 0 ? 0.0 : static_cast<double>(reusedBlocks) / static_cast<double>(looked);
}

KVCacheManager::KVCacheManager(KvCacheManagerConfig const& config)
    : mEnableBlockReuse{config.enableBlockReuse}
    , mEnablePartialReuse{config.enablePartialReuse}
    , mCopyOnPartialReuse{config.copyOnPartialReuse}
    , mHasWindows{!config.windowPools.empty()}
    , mOffloadMinPriority{config.secondaryOffloadMinPriority}
    , mNumDeviceBlocks{checkedNumBlocks(config.numBlocks)}
    , mStore{mNumDeviceBlocks + checkedHostBlocks(config), checkedTokensPerBlock(config.tokensPerBlock),
          config.hostBlocks}
    , mTree{mStore, config.hash}
    , mPolicy{mStore}
    , mEvents{config.eventBufferMaxSize, mStore, mTree, mNumDeviceBlocks}
    , mEvictedHashes{numRemembered(mStore.numBlocks())}
    , mEvictedAt{numRemembered(mStore.numBlocks())}
    , mRetention{mStore.numBlocks()}
    , mIdle{mStore.numBlocks()}
    , mAttachedFrom(config.windowPools.size())
{
    mWindows.reserve(config.windowPools.size());
    for (auto const& pool : config.windowPools)
    {
        mWindows.emplace_back(pool, config.maxStepTokens, mStore);
    }
}

std::vector<BlockId> KVCacheManager::blockIds(SequenceId id, std::int32_t pool) const
{
    checkPool(pool);
    auto const& found = sequence(id);
    std::vector<BlockId> places(found.blocks.size(), kNoBlock);
    writeTable(found, pool, places.data());
    return places;
}

BlockTables KVCacheManager::blockTables(ArrayView<SequenceId> ids, std::int32_t pool) const
{
    checkPool(pool);
    BlockTables tables;
    tables.numRows = ids.size();
    for (auto const id : ids)
    {
        tables.numColumns = std::max(tables.numColumns, sequence(id).blocks.size());
    }
    tables.blocks.assign(tables.numRows * tables.numColumns, kNoBlock);
    for (std::size_t row = 0; row < ids.size(); ++row)
    {
        writeTable(sequence(ids[row]), pool, tables.blocks.data() + row * tables.numColumns);
    }
    return tables;
}

//! \param table room for as many ids as the sequence has blocks, kNoBlock until now.
void KVCacheManager::writeTable(Sequence const& sequence, std::int32_t pool, BlockId* table) const
{
    if (pool == 0)
    {
        std::transform(
            sequence.blocks.begin(), sequence.blocks.end(), table, [this](BlockId block) { return placeOf(block); });
        return;
    }
    auto const& slots = sequence.windows[static_cast<std::size_t>(pool) - 1].slots;
    std::copy(slots.begin(), slots.end(), table);
}

KvCacheStats KVCacheManager::stats() const
{
    KvCacheStats stats{};
    stats.maxNumBlocks = numBlocks();
    stats.freeNumBlocks = mPolicy.numFree(Tier::kDevice) + mPolicy.numCached(Tier::kDevice);
    stats.usedNumBlocks = stats.maxNumBlocks - stats.freeNumBlocks;
    stats.cachedNumBlocks = mTree.size();
    stats.reservedNumBlocks = mNumReserved;
    stats.tokensPerBlock = tokensPerBlock();
    stats.allocTotalBlocks = mAllocNewBlocks + mReusedBlocks;
    stats.allocNewBlocks = mAllocNewBlocks;
    stats.reusedBlocks = mReusedBlocks;
    stats.missedBlocks = mMissedBlocks;
    stats.evictedBlocks = mEvictedOnDevice + mEvictedOnHost + mEvictedWithParent;
    stats.evictedOnDevice = mEvictedOnDevice;
    stats.evictedOnHost = mEvictedOnHost;
    stats.evictedWithParent = mEvictedWithParent;
    stats.flushedBlocks = mFlushedBlocks;
    stats.evictedIdle = mEvictedIdle;
    stats.reusedIdle = mReusedIdle;
    stats.partialReusedBlocks = mPartialReusedBlocks;
    stats.offloadedBlocks = mOffloadedBlocks;
    stats.onboardedBlocks = mOnboardedBlocks;
    stats.hostMaxNumBlocks = mStore.numBlocks() - numBlocks();
    stats.hostFreeNumBlocks = mPolicy.numFree(Tier::kHost) + mPolicy.numCached(Tier::kHost);
    stats.hostCachedNumBlocks = mPolicy.numCached(Tier::kHost);
    stats.droppedEvents = mEvents.numDropped();
    stats.pendingCopies = static_cast<std::int64_t>(mCopies.numPending());
    for (auto const& pool : mWindows)
    {
        stats.windowPools.push_back(pool.stats());
    }
    return stats;
}

std::string KVCacheManager::blockMap() const
{
    auto const numPlaces = static_cast<std::size_t>(mStore.numBlocks());
    std::string letters(numPlaces, '?');
    for (BlockId block = 0; block < mStore.numBlocks(); ++block)
    {
        auto const& record = mStore[block];
        auto& letter = letters[static_cast<std::size_t>(record.slot)];
        switch (record.state)
        {
        case BlockState::kFree:
            letter = 'f';
            break;
        case BlockState::kCached:
            letter = 'c';
            break;
        case BlockState::kHeld:
            letter = record.present ? 'h' : 'p';
            break;
        }
    }
    std::string runs;
    for (std::size_t begin = 0, end = 0; begin < numPlaces; begin = end)
    {
        end = std::min(letters.find_first_not_of(letters[begin], begin), numPlaces);
        runs += std::to_string(end - begin);
        runs += letters[begin];
    }
    return runs;
}

void KVCacheManager::flushEvents()
{
    mEvents.flush();
}

std::vector<KvCacheEvent> KVCacheManager::takeEvents(std::size_t most)
{
    return mEvents.take(most);
}

std::vector<std::string> KVCacheManager::takeEventLines(std::size_t most)
{
    std::vector<std::string> lines;
    for (auto const& event : mEvents.take(most))
    {
        // Events are of the primary pool, which has no window: its size is that of everything it may hold.
        lines.push_back(toJson(event, std::int64_t{numBlocks()} * tokensPerBlock()));
    }
    return lines;
}

Sequence& KVCacheManager::sequence(SequenceId id)
{
    return const_cast<Sequence&>(std::as_const(*this).sequence(id));
}

Sequence const& KVCacheManager::sequence(SequenceId id) const
{
    auto const* const found = mSequences.find(id);
    if (found == nullptr)
    {
        throw UnknownSequenceError(
            nameOfSequence(id) + " is not one of the " + std::to_string(mSequences.size()) + " live sequences");
    }
    return *found;
}

std::int64_t KVCacheManager::blocksFor(std::int64_t numTokens) const
{
    return numTokens / tokensPerBlock() + (numTokens % tokensPerBlock() != 0 ? 1 : 0);
}

void KVCacheManager::checkAppend(SequenceId id, Sequence const& sequence, std::size_t numTokens) const
{
    checkNamed(id, sequence);
    if (numTokens > static_cast<std::size_t>(sequence.maxTokens - sequence.numTokens))
    {
        throw CapacityExceededError(nameOfSequence(id) + ": " + std::to_string(numTokens) + " tokens appended to "
                                    + std::to_string(sequence.numTokens) + ", reserved for "
                                    + std::to_string(sequence.maxTokens));
    }
}

void KVCacheManager::checkNamed(SequenceId id, Sequence const& sequence) const
{
    if (sequence.unnamed)
    {
        throw InvalidArgumentError(nameOfSequence(id) + ": its last token has no id yet");
    }
}

void KVCacheManager::checkCommit(SequenceId id, Sequence const& sequence, std::int64_t numWritten) const
{
    auto const top = std::min(sequence.numTokens - (sequence.unnamed ? 1 : 0), sequence.numSlots);
    if (numWritten < sequence.numWritten || numWritten > top)
    {
        throw InvalidArgumentError(nameOfSequence(id) + ": commit of " + std::to_string(numWritten)
                                   + " tokens, expected " + std::to_string(sequence.numWritten) + " to "
                                   + std::to_string(top));
    }
    auto const bound = mHasWindows ? mWindows.front().maxStepTokens() : 0;
    if (bound > 0 && numWritten - sequence.numWritten > bound)
    {
        throw InvalidArgumentError(nameOfSequence(id) + ": commit of "
                                   + std::to_string(numWritten - sequence.numWritten)
                                   + " new tokens at once, max_step_tokens is " + std::to_string(bound));
    }
}

void KVCacheManager::checkPool(std::int32_t pool) const
{
    if (pool < 0 || static_cast<std::size_t>(pool) > mWindows.size())
    {
        throw InvalidArgumentError(
            "pool is " + std::to_string(pool) + ", expected 0 to " + std::to_string(mWindows.size()));
    }
}

void KVCacheManager::checkBatch(ArrayView<SequenceId> ids)
{
    ++mBatchStamp;
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        if (std::exchange(sequence(ids[index]).batchStamp, mBatchStamp) == mBatchStamp)
        {
            throw InvalidArgumentError(nameOfSequence(ids[index]) + " comes again at entry " + std::to_string(index)
                                       + " of a batch of " + std::to_string(ids.size()));
        }
    }
}

void KVCacheManager::checkAfterOperation() const
{
#ifdef TRTLLM_CHECK_INVARIANTS
    checkIntegrity();
#endif
}

} // namespace tensorrt_llm::batch_manager
