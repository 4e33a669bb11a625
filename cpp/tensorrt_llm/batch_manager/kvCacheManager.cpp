// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace tensorrt_llm::batch_manager
{

namespace
{

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
    if (tokensPerBlock < 2 || (tokensPerBlock & (tokensPerBlock - 1)) != 0)
    {
        throw InvalidArgumentError(
            "tokens_per_block is " + std::to_string(tokensPerBlock) + ", expected a power of two of at least 2");
    }
    return tokensPerBlock;
}

MediaLayout layOut(ArrayView<TokenId> tokens, MediaRuns const* media)
{
    if (tokens.empty())
    {
        throw InvalidArgumentError("the prompt has 0 tokens, expected at least 1");
    }
    return media == nullptr ? MediaLayout{} : MediaLayout{*media, static_cast<std::int64_t>(tokens.size())};
}

std::string nameOf(SequenceId id)
{
    return "sequence " + std::to_string(id);
}

} // namespace

double KvCacheStats::cacheHitRate() const
{
    auto const looked = reusedBlocks + missedBlocks;
    return looked == 0 ? 0.0 : static_cast<double>(reusedBlocks) / static_cast<double>(looked);
}

KVCacheManager::KVCacheManager(BlockId numBlocks, std::int32_t tokensPerBlock, bool enableBlockReuse, HashFunction hash)
    : mTokensPerBlock{checkedTokensPerBlock(tokensPerBlock)}
    , mEnableBlockReuse{enableBlockReuse}
    , mTree{checkedNumBlocks(numBlocks), tokensPerBlock, hash}
    , mPolicy{numBlocks}
    , mRefCounts(static_cast<std::size_t>(numBlocks))
{
}

std::optional<SequenceAllocation> KVCacheManager::addSequence(SequenceId id, ArrayView<TokenId> tokens,
    MediaRuns const* media, ReuseScope const& scope, std::int64_t maxNewTokens)
{
    if (mSequences.count(id) != 0)
    {
        throw InvalidArgumentError(nameOf(id) + " is live already");
    }
    auto const promptLength = static_cast<std::int64_t>(tokens.size());
    if (maxNewTokens < 0 || maxNewTokens > std::numeric_limits<std::int64_t>::max() - promptLength)
    {
        throw InvalidArgumentError(nameOf(id) + ": max_new_tokens is " + std::to_string(maxNewTokens)
                                   + ", expected 0 to "
                                   + std::to_string(std::numeric_limits<std::int64_t>::max() - promptLength));
    }
    Sequence added;
    added.media = layOut(tokens, media);
    added.maxTokens = promptLength + maxNewTokens;
    added.numSlots = promptLength + std::max<std::int64_t>(maxNewTokens, 1) - 1;
    auto const totalBlocks = blocksFor(added.numSlots);
    if (totalBlocks > numBlocks())
    {
        throw CapacityExceededError(nameOf(id) + " needs " + std::to_string(totalBlocks) + " blocks for "
                                    + std::to_string(added.numSlots) + " tokens, the pool has "
                                    + std::to_string(numBlocks()));
    }

    auto matched = match(tokens, added.media, scope);
    auto const numMatched = static_cast<BlockId>(matched.blocks.size());
    auto const numNew = static_cast<BlockId>(totalBlocks) - numMatched;
    if (numNew + matched.numIdle > mPolicy.numFree() + mPolicy.numCached() - mNumReserved)
    {
        return std::nullopt;
    }

    // What may fail for want of memory comes first; from the first hold on nothing does.
    added.tokens.assign(tokens.begin(), tokens.end());
    added.mediaCursor = matched.mediaCursor;
    added.shareableBlocks = shareableBlocks(added.media);
    added.blocks.reserve(static_cast<std::size_t>(totalBlocks));
    if (added.shareableBlocks > 0)
    {
        added.root = mTree.acquireRoot(scope);
    }
    auto& sequence = mSequences.emplace(id, std::move(added)).first->second;
    for (auto const block : matched.blocks)
    {
        hold(block);
        sequence.blocks.push_back(block);
    }
    sequence.numFindable = numMatched;
    sequence.numWritten = static_cast<std::int64_t>(numMatched) * mTokensPerBlock;
    sequence.numReserved = numNew;
    mNumReserved += numNew;
    auto const promptBlocks = blocksFor(promptLength);
    takeBlocks(sequence, static_cast<std::size_t>(promptBlocks));
    mReusedBlocks += numMatched;
    mMissedBlocks += promptBlocks - numMatched;
    checkAfterOperation();
    return SequenceAllocation{sequence.numWritten, static_cast<BlockId>(promptBlocks)};
}

std::int64_t KVCacheManager::probe(ArrayView<TokenId> tokens, MediaRuns const* media, ReuseScope const& scope)
{
    auto const matched = match(tokens, layOut(tokens, media), scope);
    return static_cast<std::int64_t>(matched.blocks.size()) * mTokensPerBlock;
}

void KVCacheManager::appendTokens(SequenceId id, ArrayView<TokenId> tokens)
{
    auto& target = sequence(id);
    checkAppend(id, target, tokens.size());
    append(target, tokens);
    checkAfterOperation();
}

void KVCacheManager::appendBatch(ArrayView<SequenceId> ids, ArrayView<TokenId> tokens)
{
    checkBatch(ids, tokens.size());
    for (auto const id : ids)
    {
        checkAppend(id, sequence(id), 1);
    }
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        append(sequence(ids[index]), tokens.slice(index, 1));
    }
    checkAfterOperation();
}

bool KVCacheManager::commit(SequenceId id, std::int64_t numWritten)
{
    auto& target = sequence(id);
    checkCommit(id, target, numWritten);
    auto const changed = commit(target, numWritten);
    checkAfterOperation();
    return changed;
}

std::vector<std::uint8_t> KVCacheManager::commitBatch(ArrayView<SequenceId> ids, ArrayView<std::int64_t> numWritten)
{
    checkBatch(ids, numWritten.size());
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        checkCommit(ids[index], sequence(ids[index]), numWritten[index]);
    }
    std::vector<std::uint8_t> changed(ids.size(), 0);
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        changed[index] = commit(sequence(ids[index]), numWritten[index]) ? 1 : 0;
    }
    checkAfterOperation();
    return changed;
}

void KVCacheManager::freeSequence(SequenceId id)
{
    auto& ending = sequence(id);
    // The deepest block goes first, so that children lie ahead of parents in the order of eviction.
    for (auto block = ending.blocks.rbegin(); block != ending.blocks.rend(); ++block)
    {
        letGo(*block);
    }
    mNumReserved -= ending.numReserved;
    if (ending.root)
    {
        mTree.releaseRoot(*ending.root);
    }
    mSequences.erase(id);
    checkAfterOperation();
}

BlockId KVCacheManager::resetReuseState()
{
    auto const numDropped = mPolicy.numCached();
    for (auto block = mPolicy.nextCached(); block != kNoBlock; block = mPolicy.nextCached())
    {
        mPolicy.demote(block);
    }
    mTree.clear();
    for (auto& [id, live] : mSequences)
    {
        live.root.reset();
        live.shareableBlocks = 0;
        live.numFindable = 0;
    }
    checkAfterOperation();
    return numDropped;
}

std::vector<BlockId> const& KVCacheManager::blockIds(SequenceId id) const
{
    return sequence(id).blocks;
}

BlockTables KVCacheManager::blockTables(ArrayView<SequenceId> ids) const
{
    BlockTables tables;
    tables.numRows = ids.size();
    for (auto const id : ids)
    {
        tables.numColumns = std::max(tables.numColumns, blockIds(id).size());
    }
    tables.blocks.assign(tables.numRows * tables.numColumns, kNoBlock);
    for (std::size_t row = 0; row < ids.size(); ++row)
    {
        auto const& blocks = blockIds(ids[row]);
        std::copy(
            blocks.begin(), blocks.end(), tables.blocks.begin() + static_cast<std::ptrdiff_t>(row * tables.numColumns));
    }
    return tables;
}

KvCacheStats KVCacheManager::stats() const
{
    KvCacheStats stats{};
    stats.maxNumBlocks = numBlocks();
    stats.freeNumBlocks = mPolicy.numFree() + mPolicy.numCached();
    stats.usedNumBlocks = stats.maxNumBlocks - stats.freeNumBlocks;
    stats.cachedNumBlocks = mTree.size();
    stats.reservedNumBlocks = mNumReserved;
    stats.tokensPerBlock = mTokensPerBlock;
    stats.allocTotalBlocks = mAllocNewBlocks + mReusedBlocks;
    stats.allocNewBlocks = mAllocNewBlocks;
    stats.reusedBlocks = mReusedBlocks;
    stats.missedBlocks = mMissedBlocks;
    stats.evictedBlocks = mEvictedBlocks;
    return stats;
}

KVCacheManager::Sequence& KVCacheManager::sequence(SequenceId id)
{
    return const_cast<Sequence&>(std::as_const(*this).sequence(id));
}

KVCacheManager::Sequence const& KVCacheManager::sequence(SequenceId id) const
{
    auto const found = mSequences.find(id);
    if (found == mSequences.end())
    {
        throw UnknownSequenceError(
            nameOf(id) + " is not one of the " + std::to_string(mSequences.size()) + " live sequences");
    }
    return found->second;
}

std::int64_t KVCacheManager::blocksFor(std::int64_t numTokens) const
{
    return numTokens / mTokensPerBlock + (numTokens % mTokensPerBlock != 0 ? 1 : 0);
}

std::int64_t KVCacheManager::shareableBlocks(MediaLayout const& media) const
{
    if (!mEnableBlockReuse)
    {
        return 0;
    }
    return media.firstUnidentified().value_or(std::numeric_limits<std::int64_t>::max()) / mTokensPerBlock;
}

KVCacheManager::Match KVCacheManager::match(
    ArrayView<TokenId> tokens, MediaLayout const& media, ReuseScope const& scope)
{
    Match matched;
    auto const limit =
        std::min(shareableBlocks(media), (static_cast<std::int64_t>(tokens.size()) - 1) / mTokensPerBlock);
    auto const root = limit > 0 ? mTree.findRoot(scope) : std::nullopt;
    if (!root)
    {
        return matched;
    }
    std::vector<MediaSpan> spans;
    NodeId parent = *root;
    for (std::int64_t index = 0; index < limit; ++index)
    {
        auto const begin = index * mTokensPerBlock;
        auto const cursor = media.cut(begin, begin + mTokensPerBlock, matched.mediaCursor, spans);
        BlockKeyView const key{
            tokens.slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(mTokensPerBlock)), spans};
        auto const block = mTree.find(parent, key, mTree.hashOf(parent, key));
        if (block == kNoBlock)
        {
            break;
        }
        matched.mediaCursor = cursor;
        matched.numIdle += mPolicy.state(block) == LruEvictionPolicy::State::kCached ? 1 : 0;
        matched.blocks.push_back(block);
        parent = block;
    }
    return matched;
}

void KVCacheManager::checkAppend(SequenceId id, Sequence const& sequence, std::size_t numTokens) const
{
    auto const room = static_cast<std::size_t>(sequence.maxTokens) - sequence.tokens.size();
    if (numTokens > room)
    {
        throw CapacityExceededError(nameOf(id) + ": " + std::to_string(numTokens) + " tokens appended to "
                                    + std::to_string(sequence.tokens.size()) + ", reserved for "
                                    + std::to_string(sequence.maxTokens));
    }
}

void KVCacheManager::checkCommit(SequenceId id, Sequence const& sequence, std::int64_t numWritten) const
{
    auto const top = std::min(static_cast<std::int64_t>(sequence.tokens.size()), sequence.numSlots);
    if (numWritten < sequence.numWritten || numWritten > top)
    {
        throw InvalidArgumentError(nameOf(id) + ": commit of " + std::to_string(numWritten) + " tokens, expected "
                                   + std::to_string(sequence.numWritten) + " to " + std::to_string(top));
    }
}

void KVCacheManager::checkBatch(ArrayView<SequenceId> ids, std::size_t numValues)
{
    if (ids.size() != numValues)
    {
        throw InvalidArgumentError(
            "batch of " + std::to_string(ids.size()) + " ids with " + std::to_string(numValues) + " values");
    }
    ++mBatchStamp;
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        if (std::exchange(sequence(ids[index]).batchStamp, mBatchStamp) == mBatchStamp)
        {
            throw InvalidArgumentError(nameOf(ids[index]) + " comes again at entry " + std::to_string(index)
                                       + " of a batch of " + std::to_string(ids.size()));
        }
    }
}

void KVCacheManager::append(Sequence& sequence, ArrayView<TokenId> tokens)
{
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
    auto const withSlots = std::min(static_cast<std::int64_t>(sequence.tokens.size()), sequence.numSlots);
    takeBlocks(sequence, static_cast<std::size_t>(blocksFor(withSlots)));
}

bool KVCacheManager::commit(Sequence& sequence, std::int64_t numWritten)
{
    sequence.numWritten = numWritten;
    auto const full = std::min(sequence.shareableBlocks, numWritten / mTokensPerBlock);
    std::vector<MediaSpan> spans;
    bool changed = false;
    for (auto index = static_cast<std::int64_t>(sequence.numFindable); index < full; ++index)
    {
        changed |= makeFindable(sequence, static_cast<std::size_t>(index), spans);
    }
    return changed;
}

bool KVCacheManager::makeFindable(Sequence& sequence, std::size_t index, std::vector<MediaSpan>& spans)
{
    auto const size = static_cast<std::size_t>(mTokensPerBlock);
    auto const begin = static_cast<std::int64_t>(index * size);
    auto const cursor = sequence.media.cut(begin, begin + mTokensPerBlock, sequence.mediaCursor, spans);
    BlockKeyView const key{ArrayView<TokenId>{sequence.tokens}.slice(index * size, size), spans};
    auto const parent = index == 0 ? sequence.root.value() : sequence.blocks[index - 1];
    auto const hash = mTree.hashOf(parent, key);
    auto const own = sequence.blocks[index];
    auto const existing = mTree.find(parent, key, hash);
    if (existing == kNoBlock)
    {
        mTree.insert(own, parent, key, hash);
    }
    else
    {
        hold(existing);
        sequence.blocks[index] = existing;
        letGo(own);
    }
    sequence.mediaCursor = cursor;
    ++sequence.numFindable;
    return existing != kNoBlock;
}

void KVCacheManager::hold(BlockId block)
{
    if (mRefCounts[static_cast<std::size_t>(block)].acquire() == 1)
    {
        mPolicy.claim(block);
    }
}

void KVCacheManager::letGo(BlockId block)
{
    if (mRefCounts[static_cast<std::size_t>(block)].release() == 0)
    {
        if (mTree.contains(block))
        {
            mPolicy.releaseCached(block);
        }
        else
        {
            mPolicy.releaseFree(block);
        }
    }
}

void KVCacheManager::takeBlocks(Sequence& sequence, std::size_t numBlocks)
{
    while (sequence.blocks.size() < numBlocks)
    {
        auto const block = mPolicy.next();
        if (block == kNoBlock || sequence.numReserved == 0)
        {
            throw InternalStateError("no block for a promise: " + std::to_string(sequence.numReserved)
                                     + " promised to the sequence, "
                                     + std::to_string(mPolicy.numFree() + mPolicy.numCached()) + " unheld");
        }
        if (mTree.contains(block))
        {
            mTree.erase(block);
            ++mEvictedBlocks;
        }
        hold(block);
        sequence.blocks.push_back(block);
        --sequence.numReserved;
        --mNumReserved;
        ++mAllocNewBlocks;
    }
}

void KVCacheManager::checkAfterOperation() const
{
#ifdef TRTLLM_CHECK_INVARIANTS
    checkIntegrity();
#endif
}

} // namespace tensorrt_llm::batch_manager
