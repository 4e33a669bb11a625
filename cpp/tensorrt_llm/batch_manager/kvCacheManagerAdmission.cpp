// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerAdmission.cpp
//! KVCacheManager: looking a prompt up and letting a sequence in.
//!
//! Most blocks of a shared prefix are their parent's only child and are compared at once. Where there is a choice, the
//! next stretch of the prompt is hashed, and what the look-ups will touch is fetched ahead: a large pool does not fit
//! the processor's caches, and one miss after the other would be most of the time.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "checks.h"

#include <algorithm>
#include <limits>
#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

//! The most blocks hashed at a time while looking up: enough for their memory to come together.
constexpr std::size_t kMaxHashedAhead = 16;

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
        throw InvalidArgumentError(
            nameOfSequence(*twice) + " comes twice in a batch of " + std::to_string(requests.size()));
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
    auto const use = partialUse(0, 0);
    if (mHasWindows && use == PartialUse::kNone)
    {
        cutMatch(mMatch.numInWindows);
    }
    auto const whole = static_cast<std::int64_t>(mMatch.blocks.size()) * tokensPerBlock();
    return use == PartialUse::kNone ? whole : whole + mMatch.partial.numTokens;
}

void KVCacheManager::checkMaxNewTokens(SequenceId id, std::int64_t promptLength, std::int64_t maxNewTokens) const
{
    auto const most = std::numeric_limits<std::int64_t>::max() - promptLength;
    if (maxNewTokens < 0 || maxNewTokens > most)
    {
        throw InvalidArgumentError(nameOfSequence(id) + ": max_new_tokens is " + std::to_string(maxNewTokens)
                                   + ", expected 0 to " + std::to_string(most));
    }
}

//! Whether the pools can ever hold a sequence of so many slots.
void KVCacheManager::checkNeed(SequenceId id, std::int64_t numSlots) const
{
    if (blocksFor(numSlots) > numBlocks())
    {
        throw CapacityExceededError(nameOfSequence(id) + " needs " + std::to_string(blocksFor(numSlots))
                                    + " blocks for " + std::to_string(numSlots) + " tokens, the pool has "
                                    + std::to_string(numBlocks()));
    }
    if (mHasWindows)
    {
        checkWindowNeed(id, numSlots);
    }
}

KVCacheManager::Need KVCacheManager::checkRequest(SequenceRequest const& request)
{
    if (mSequences.find(request.id) != nullptr)
    {
        throw InvalidArgumentError(nameOfSequence(request.id) + " is live already");
    }
    if (request.tokens.empty())
    {
        throw InvalidArgumentError(nameOfSequence(request.id) + ": the prompt has 0 tokens, expected at least 1");
    }
    auto const promptLength = static_cast<std::int64_t>(request.tokens.size());
    checkMaxNewTokens(request.id, promptLength, request.maxNewTokens);
    if (request.retention != nullptr)
    {
        request.retention->check();
    }
    mMatch.media.assign(request.media, promptLength);
    // The last new token is never fed back, so it needs no slot.
    auto const numSlots = promptLength + std::max<std::int64_t>(request.maxNewTokens, 1) - 1;
    checkNeed(request.id, numSlots);
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
    mMatch.numToTake = 0;
    mMatch.numOnHost = 0;
    mMatch.partial = {};
    mMatch.partialIsWhole = false;
    mMatch.numInWindows = 0;
    mMatch.cutByWindows = false;
    mMatch.shareableBlocks = shareableBlocks(mMatch.media);
    if (mMatch.shareableBlocks == 0)
    {
        return;
    }
    mMatch.rootHash = mTree.hashOf(scope);
    mMatch.keys.build(tokens, static_cast<std::size_t>(tokensPerBlock()),
        static_cast<std::size_t>(std::min(mMatch.shareableBlocks, blocksFor(length))), mMatch.media);
    if (auto const root = mTree.findRoot(scope, mMatch.rootHash))
    {
        // The last token is always computed, so a prompt that ends with a block does not match that block.
        auto const parent = matchBlocks(
            *root, std::min(mMatch.keys.numWhole(), static_cast<std::size_t>((length - 1) / tokensPerBlock())));
        if (mEnablePartialReuse && mMatch.blocks.size() < mMatch.keys.size())
        {
            matchPartial(parent, length);
        }
        if (mHasWindows)
        {
            limitToWindows();
        }
    }
    else
    {
        mMatch.keys.hash(0, mMatch.keys.numWhole(), mMatch.rootHash, mTree.hasher());
    }
}

//! Finds at most \p limit blocks from \p root on. The hashes of those behind the last one found are known after it.
//! \return the last block found, or the root.
NodeId KVCacheManager::matchBlocks(NodeId root, std::size_t limit)
{
    auto& keys = mMatch.keys;
    NodeId parent = root;
    std::size_t index = 0;
    std::size_t hashed = 0; // the hashes are known up to here, from where they were last needed on
    std::size_t ahead = 1;  // one choice says little of the next; where there are many, more are fetched together
    for (; index < limit; ++index)
    {
        if (index >= hashed && mTree.findNeedsHash(parent))
        {
            hashed = std::min(index + ahead, keys.numWhole());
            ahead = std::min(2 * ahead, kMaxHashedAhead);
            keys.hash(index, hashed, mTree.hashOfNode(parent), mTree.hasher());
            mTree.prefetch(keys, index, hashed);
        }
        auto const block = mTree.find(parent, keys.whole(index), keys.hashOf(index));
        if (block == kNoBlock)
        {
            break;
        }
        auto const& record = mStore[block];
        mMatch.numToTake += record.state == BlockState::kCached || record.onHost ? 1 : 0;
        mMatch.numOnHost += record.onHost ? 1 : 0;
        mMatch.blocks.push_back(block);
        parent = block;
    }
    auto const first = std::max(index, hashed);
    keys.hash(
        first, keys.numWhole(), first == index ? mTree.hashOfNode(parent) : keys.hashOf(first - 1), mTree.hasher());
    return parent;
}

void KVCacheManager::matchPartial(NodeId parent, std::int64_t length)
{
    auto const index = mMatch.blocks.size();
    auto const key = mMatch.keys[index];
    auto const begin = static_cast<std::int64_t>(index) * tokensPerBlock();
    auto const wanted = std::min(key.tokens.size(), static_cast<std::size_t>(length - 1 - begin));
    mMatch.partial = mTree.findPartial(parent, {key.tokens.slice(0, wanted), key.media});
    auto const block = mMatch.partial.block;
    mMatch.partialIsWhole = block != kNoBlock && index < mMatch.keys.numWhole() && mStore.hasKey(block, key);
}

//! \param numNeeded device blocks that the sequence needs besides. \param numSlots tokens that it will ever write.
KVCacheManager::PartialUse KVCacheManager::partialUse(BlockId numNeeded, std::int64_t numSlots) const
{
    auto const block = mMatch.partial.block;
    if (block == kNoBlock)
    {
        return PartialUse::kNone;
    }
    auto const& record = mStore[block];
    auto const idle = record.state == BlockState::kCached && !record.onHost;
    auto const canTakeOver = idle && mTree.isLeaf(block);
    // Taking over costs nobody anything if the block comes back as it was, or if one has to be given up anyway.
    if (canTakeOver && (mMatch.partialIsWhole || !mCopyOnPartialReuse || mPolicy.numFree(Tier::kDevice) == 0))
    {
        return PartialUse::kTakeOver;
    }
    // The source of a copy is held until the copy is done; an idle one leaves the pool a block poorer for that time.
    auto const numWritten =
        static_cast<std::int64_t>(mMatch.blocks.size()) * tokensPerBlock() + mMatch.partial.numTokens;
    if (mCopyOnPartialReuse && numNeeded + (idle ? 1 : 0) <= available()
        && (!mHasWindows || windowsCanPromise(numWritten, numSlots, kPinsOfCopy)))
    {
        return PartialUse::kCopy;
    }
    return canTakeOver ? PartialUse::kTakeOver : PartialUse::kNone;
}

void KVCacheManager::reusePartial(Sequence& added, PartialUse use)
{
    auto const block = mMatch.partial.block; // held by takeMatched
    if (use == PartialUse::kTakeOver)
    {
        if (mHasWindows)
        {
            takeOverWindows(added, block);
        }
        else
        {
            eraseFromTree(block);
        }
        resetRetention(block);
        added.blocks.push_back(block);
        --added.numReserved;
        --mNumReserved;
        ++mAllocNewBlocks;
        retain(added, added.blocks.size() - 1);
    }
    else
    {
        takeBlocks(added, added.blocks.size() + 1);
        addCopy(mStore[block].onHost ? CopyKind::kOnboard : CopyKind::kPartial, block, added.blocks.back(),
            mMatch.partial.numTokens, block);
        if (mHasWindows)
        {
            copyWindows(added, CopyKind::kPartial, block, mMatch.partial.numTokens);
        }
        added.ticket = mCopies.next();
    }
    ++mPartialReusedBlocks;
}

//! Decides how much of the match is used. \return what to do with the partial match, or nothing if the pools cannot
//! promise the rest now.
std::optional<KVCacheManager::PartialUse> KVCacheManager::settleMatch(Need const& need)
{
    auto const numNeeded = [&]
    {
        return need.numBlocks - static_cast<BlockId>(mMatch.blocks.size()) + mMatch.numToTake;
    };
    if (numNeeded() > available())
    {
        return std::nullopt;
    }
    auto const use = partialUse(numNeeded(), need.numSlots);
    if (!mHasWindows)
    {
        return use;
    }
    auto numWritten = std::int64_t{mMatch.partial.numTokens};
    if (use == PartialUse::kNone)
    {
        cutMatch(mMatch.numInWindows);
        numWritten = 0;
    }
    numWritten += static_cast<std::int64_t>(mMatch.blocks.size()) * tokensPerBlock();
    auto const numPins = use == PartialUse::kCopy ? kPinsOfCopy : 0;
    if (numNeeded() > available() || !windowsCanPromise(numWritten, need.numSlots, numPins))
    {
        return std::nullopt;
    }
    return use;
}

std::optional<SequenceAllocation> KVCacheManager::admit(SequenceRequest const& request, Need const& need)
{
    match(request.tokens, *request.scope);
    auto const settled = settleMatch(need);
    if (!settled)
    {
        return std::nullopt;
    }
    auto const use = *settled;
    auto const numMatched = static_cast<BlockId>(mMatch.blocks.size());
    auto const numNew = need.numBlocks - numMatched;
    // What may fail for want of memory comes first; from the first hold on nothing does.
    auto const root = mMatch.shareableBlocks > 0
                          ? std::optional<NodeId>{mTree.acquireRoot(*request.scope, mMatch.rootHash)}
                          : std::nullopt;
    auto& added = mSequences.insert(request.id, static_cast<std::size_t>(need.numBlocks), mWindows.size());
    added.root = root;
    added.promptLength = static_cast<std::int64_t>(request.tokens.size());
    added.numTokens = added.promptLength;
    added.maxTokens = added.promptLength + request.maxNewTokens;
    added.numSlots = need.numSlots;
    added.shareableBlocks = mMatch.shareableBlocks;
    added.numHashed = static_cast<BlockId>(mMatch.keys.numWhole());
    if (request.retention != nullptr)
    {
        added.retention = *request.retention;
    }
    mEvents.noteUuids(request.media);
    added.numReserved = numNew;
    mNumReserved += numNew;
    takeMatched(added, use);
    if (use != PartialUse::kNone)
    {
        reusePartial(added, use);
    }
    auto const promptBlocks = static_cast<BlockId>(blocksFor(added.promptLength));
    takeBlocks(added, static_cast<std::size_t>(promptBlocks));
    writePrompt(added);
    if (mHasWindows)
    {
        fitWindows(added);
    }
    mReusedBlocks += numMatched;
    mMissedBlocks += promptBlocks - numMatched;
    return SequenceAllocation{added.numWritten, promptBlocks, added.ticket};
}

void KVCacheManager::takeMatched(Sequence& added, PartialUse use)
{
    // All are held before anything is taken, so that making room for one cannot cost another.
    for (auto const block : mMatch.blocks)
    {
        countReuse(block);
        hold(block);
    }
    added.blocks.assign(mMatch.blocks.begin(), mMatch.blocks.end());
    added.numFindable = static_cast<BlockId>(mMatch.blocks.size());
    added.numWritten = static_cast<std::int64_t>(mMatch.blocks.size()) * tokensPerBlock();
    if (use != PartialUse::kNone)
    {
        countReuse(mMatch.partial.block);
        hold(mMatch.partial.block);
        added.numWritten += mMatch.partial.numTokens;
    }
    if (mHasWindows)
    {
        holdWindows(added, mMatch.blocks);
    }
    for (std::size_t index = 0; mMatch.numOnHost > 0 && index < mMatch.blocks.size(); ++index)
    {
        if (mStore[mMatch.blocks[index]].onHost)
        {
            onboard(mMatch.blocks[index]);
            added.ticket = mCopies.next();
        }
    }
    for (std::size_t index = 0; added.retention && index < added.blocks.size(); ++index)
    {
        retain(added, index);
    }
}

void KVCacheManager::retain(Sequence const& sequence, std::size_t index)
{
    if (sequence.retention)
    {
        auto const position = static_cast<std::int64_t>(index) * tokensPerBlock();
        setRetention(sequence.blocks[index], sequence.retention->of(position, sequence.promptLength));
    }
}

void KVCacheManager::writePrompt(Sequence const& sequence)
{
    for (auto index = static_cast<std::size_t>(sequence.numFindable); index < mMatch.keys.size(); ++index)
    {
        auto const block = sequence.blocks[index];
        mStore.setKey(block, mMatch.keys[index]);
        if (index < mMatch.keys.numWhole())
        {
            mStore[block].hash = mMatch.keys.hashOf(index);
        }
    }
}

} // namespace tensorrt_llm::batch_manager
