// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerAdmission.cpp
//! KVCacheManager: looking a prompt up and letting a sequence in.
//!
//! A prompt is hashed whole before anything is looked up, and what the look-ups will touch is fetched ahead: a large
//! pool does not fit the processor's caches, and one miss after the other would be most of the time.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <limits>
#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

std::string nameOf(SequenceId id)
{
    return "sequence " + std::to_string(id);
}

} // namespace

std::optional<SequenceAllocation> KVCacheManager::addSequence(SequenceRequest const& request)
{
    auto const allocation = admit(request, checkRequest(request));
    checkAfterOperation();
    return allocation;
}

void KVCacheManager::addSequenceBatch(ArrayView<SequenceRequest> requests, std::int64_t* cachedTokens)
{
    mIds.clear();
    for (auto const& request : requests)
    {
        static_cast<void>(checkRequest(request));
        mIds.push_back(request.id);
    }
    std::sort(mIds.begin(), mIds.end());
    if (auto const twice = std::adjacent_find(mIds.begin(), mIds.end()); twice != mIds.end())
    {
        throw InvalidArgumentError(nameOf(*twice) + " comes twice in a batch of " + std::to_string(requests.size()));
    }
    for (std::size_t index = 0; index < requests.size(); ++index)
    {
        auto const allocation = admit(requests[index], checkRequest(requests[index]));
        cachedTokens[index] = allocation ? allocation->cachedTokens : -1;
    }
    checkAfterOperation();
}

std::int64_t KVCacheManager::probe(ArrayView<TokenId> tokens, MediaRunsView const& media, ReuseScope const& scope)
{
    if (tokens.empty())
    {
        throw InvalidArgumentError("the prompt has 0 tokens, expected at least 1");
    }
    mMatch.media.assign(media, static_cast<std::int64_t>(tokens.size()));
    match(tokens, scope);
    return static_cast<std::int64_t>(mMatch.blocks.size()) * tokensPerBlock();
}

KVCacheManager::Need KVCacheManager::checkRequest(SequenceRequest const& request)
{
    if (mSequences.find(request.id) != nullptr)
    {
        throw InvalidArgumentError(nameOf(request.id) + " is live already");
    }
    if (request.tokens.empty())
    {
        throw InvalidArgumentError(nameOf(request.id) + ": the prompt has 0 tokens, expected at least 1");
    }
    auto const promptLength = static_cast<std::int64_t>(request.tokens.size());
    if (request.maxNewTokens < 0 || request.maxNewTokens > std::numeric_limits<std::int64_t>::max() - promptLength)
    {
        throw InvalidArgumentError(nameOf(request.id) + ": max_new_tokens is " + std::to_string(request.maxNewTokens)
                                   + ", expected 0 to "
                                   + std::to_string(std::numeric_limits<std::int64_t>::max() - promptLength));
    }
    mMatch.media.assign(request.media, promptLength);
    // The last new token is never fed back, so it needs no slot.
    auto const numSlots = promptLength + std::max<std::int64_t>(request.maxNewTokens, 1) - 1;
    if (blocksFor(numSlots) > numBlocks())
    {
        throw CapacityExceededError(nameOf(request.id) + " needs " + std::to_string(blocksFor(numSlots))
                                    + " blocks for " + std::to_string(numSlots) + " tokens, the pool has "
                                    + std::to_string(numBlocks()));
    }
    return {numSlots, static_cast<BlockId>(blocksFor(numSlots))};
}

std::int64_t KVCacheManager::shareableBlocks(MediaLayout const& media) const
{
    if (!mEnableBlockReuse)
    {
        return 0;
    }
    return media.firstUnidentified().value_or(std::numeric_limits<std::int64_t>::max()) / tokensPerBlock();
}

void KVCacheManager::match(ArrayView<TokenId> tokens, ReuseScope const& scope)
{
    auto const length = static_cast<std::int64_t>(tokens.size());
    mMatch.blocks.clear();
    mMatch.keys.clear();
    mMatch.numIdle = 0;
    mMatch.shareableBlocks = shareableBlocks(mMatch.media);
    if (mMatch.shareableBlocks == 0)
    {
        return;
    }
    mMatch.rootHash = mTree.hashOf(scope);
    mMatch.keys.build(tokens, static_cast<std::size_t>(tokensPerBlock()),
        static_cast<std::size_t>(std::min(mMatch.shareableBlocks, blocksFor(length))), mMatch.media, mMatch.rootHash,
        mTree.hasher());
    auto const root = mTree.findRoot(scope, mMatch.rootHash);
    if (!root)
    {
        return;
    }
    mTree.prefetch(mMatch.keys);
    // The last token is always computed, so a prompt that ends with a block does not match that block.
    auto const& hashes = mMatch.keys.hashes();
    auto const limit = std::min(hashes.size(), static_cast<std::size_t>((length - 1) / tokensPerBlock()));
    NodeId parent = *root;
    for (std::size_t index = 0; index < limit; ++index)
    {
        auto const block = mTree.find(parent, mMatch.keys[index], hashes[index]);
        if (block == kNoBlock)
        {
            break;
        }
        mMatch.numIdle += mPolicy.state(block) == BlockState::kCached ? 1 : 0;
        mMatch.blocks.push_back(block);
        parent = block;
    }
}

std::optional<SequenceAllocation> KVCacheManager::admit(SequenceRequest const& request, Need const& need)
{
    match(request.tokens, *request.scope);
    auto const numMatched = static_cast<BlockId>(mMatch.blocks.size());
    auto const numNew = need.numBlocks - numMatched;
    if (numNew + mMatch.numIdle > available())
    {
        return std::nullopt;
    }
    // What may fail for want of memory comes first; from the first hold on nothing does.
    auto const root = mMatch.shareableBlocks > 0
                          ? std::optional<NodeId>{mTree.acquireRoot(*request.scope, mMatch.rootHash)}
                          : std::nullopt;
    auto& added = mSequences.insert(request.id, static_cast<std::size_t>(need.numBlocks));
    added.root = root;
    added.promptLength = static_cast<std::int64_t>(request.tokens.size());
    added.numTokens = added.promptLength;
    added.maxTokens = added.promptLength + request.maxNewTokens;
    added.numSlots = need.numSlots;
    added.shareableBlocks = mMatch.shareableBlocks;
    added.numHashed = static_cast<BlockId>(mMatch.keys.hashes().size());
    for (auto const block : mMatch.blocks)
    {
        hold(block);
        added.blocks.push_back(block);
    }
    added.numFindable = numMatched;
    added.numWritten = static_cast<std::int64_t>(numMatched) * tokensPerBlock();
    added.numReserved = numNew;
    mNumReserved += numNew;
    auto const promptBlocks = static_cast<BlockId>(blocksFor(added.promptLength));
    takeBlocks(added, static_cast<std::size_t>(promptBlocks));
    writePrompt(added);
    mReusedBlocks += numMatched;
    mMissedBlocks += promptBlocks - numMatched;
    return SequenceAllocation{added.numWritten, promptBlocks};
}

void KVCacheManager::writePrompt(Sequence const& sequence)
{
    auto const& hashes = mMatch.keys.hashes();
    for (auto index = static_cast<std::size_t>(sequence.numFindable); index < mMatch.keys.size(); ++index)
    {
        auto const block = sequence.blocks[index];
        mStore.setKey(block, mMatch.keys[index]);
        if (index < hashes.size())
        {
            mStore[block].hash = hashes[index];
        }
    }
}

} // namespace tensorrt_llm::batch_manager
