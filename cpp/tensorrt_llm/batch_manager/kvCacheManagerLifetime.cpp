// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerLifetime.cpp
//! KVCacheManager: what happens to a live sequence, to its end.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "checks.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tensorrt_llm::batch_manager
{

namespace
{

void checkSizes(std::size_t numIds, std::size_t numValues)
{
    if (numIds != numValues)
    {
        throw InvalidArgumentError(
            "batch of " + std::to_string(numIds) + " ids with " + std::to_string(numValues) + " values");
    }
}

} // namespace

void KVCacheManager::appendTokens(SequenceId id, ArrayView<TokenId> tokens)
{
    auto& target = sequence(id);
    checkAppend(id, target, tokens.size());
    append(target, tokens);
    checkAfterOperation();
}

void KVCacheManager::appendBatch(ArrayView<SequenceId> ids, ArrayView<TokenId> tokens)
{
    checkSizes(ids.size(), tokens.size());
    checkBatch(ids);
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

void KVCacheManager::growBatch(ArrayView<SequenceId> ids)
{
    checkBatch(ids);
    for (auto const id : ids)
    {
        checkAppend(id, sequence(id), 1);
    }
    for (auto const id : ids)
    {
        auto& target = sequence(id);
        append(target, {&kNoToken, 1});
        target.unnamed = true;
    }
    checkAfterOperation();
}

void KVCacheManager::nameBatch(ArrayView<SequenceId> ids, ArrayView<TokenId> tokens)
{
    checkSizes(ids.size(), tokens.size());
    checkBatch(ids);
    for (auto const id : ids)
    {
        if (!sequence(id).unnamed)
        {
            throw InvalidArgumentError(nameOfSequence(id) + ": its last token has an id already");
        }
    }
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        auto& target = sequence(ids[index]);
        target.unnamed = false;
        auto const position = target.numTokens - 1;
        if (position < target.numSlots)
        {
            auto const block = target.blocks[static_cast<std::size_t>(position / tokensPerBlock())];
            mStore.tokens(block)[position % tokensPerBlock()] = tokens[index];
        }
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

void KVCacheManager::commitBatch(ArrayView<SequenceId> ids, ArrayView<std::int64_t> numWritten, bool* changed)
{
    checkSizes(ids.size(), numWritten.size());
    checkBatch(ids);
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        checkCommit(ids[index], sequence(ids[index]), numWritten[index]);
    }
    for (std::size_t index = 0; index < ids.size(); ++index)
    {
        auto const tableChanged = commit(sequence(ids[index]), numWritten[index]);
        if (changed != nullptr)
        {
            changed[index] = tableChanged;
        }
    }
    checkAfterOperation();
}

std::optional<SequenceAllocation> KVCacheManager::fork(SequenceId source, SequenceId id)
{
    auto& from = sequence(source);
    if (mSequences.find(id) != nullptr)
    {
        throw InvalidArgumentError(nameOfSequence(id) + " is live already");
    }
    checkNamed(source, from);
    auto const numShared = static_cast<std::size_t>(from.numWritten / tokensPerBlock());
    auto const numNew = static_cast<BlockId>(blocksFor(from.numSlots)) - static_cast<BlockId>(numShared);
    auto const tailTokens = static_cast<std::int32_t>(from.numWritten % tokensPerBlock());
    if (numNew > available()
        || (mHasWindows && !windowsCanPromise(from.numWritten, from.numSlots, tailTokens != 0 ? kPinsOfCopy : 0)))
    {
        return std::nullopt;
    }
    auto& to = mSequences.insert(id, static_cast<std::size_t>(blocksFor(from.numSlots)), mWindows.size());
    auto blocks = std::move(to.blocks);
    auto windows = std::move(to.windows);
    to = from;
    to.blocks = std::move(blocks);
    to.windows = std::move(windows);
    if (to.root)
    {
        mTree.shareRoot(*to.root);
    }
    for (std::size_t index = 0; index < numShared; ++index)
    {
        hold(from.blocks[index]);
        to.blocks.push_back(from.blocks[index]);
    }
    if (mHasWindows)
    {
        holdWindows(to, to.blocks);
    }
    to.numReserved = numNew;
    mNumReserved += numNew;
    takeBlocks(to, from.blocks.size());
    copyKeys(from, to, numShared);
    if (tailTokens != 0)
    {
        auto const tail = from.blocks[numShared];
        hold(tail);
        addCopy(CopyKind::kFork, tail, to.blocks[numShared], tailTokens, tail);
        if (mHasWindows)
        {
            copyWindows(to, CopyKind::kFork, tail, tailTokens);
        }
        to.ticket = mCopies.next();
        from.ticket = to.ticket;
    }
    if (mHasWindows)
    {
        fitWindows(to);
    }
    checkAfterOperation();
    return SequenceAllocation{to.numWritten, static_cast<BlockId>(to.blocks.size()), to.ticket};
}

void KVCacheManager::copyKeys(Sequence const& source, Sequence const& target, std::size_t first)
{
    auto const end =
        static_cast<std::size_t>(std::min(static_cast<std::int64_t>(target.blocks.size()), target.shareableBlocks));
    for (auto index = first; index < end; ++index)
    {
        mStore.setKey(target.blocks[index], mStore.key(source.blocks[index], mSpans));
        mStore[target.blocks[index]].hash = mStore[source.blocks[index]].hash;
    }
}

bool KVCacheManager::extendSequence(SequenceId id, std::int64_t maxNewTokens)
{
    auto& target = sequence(id);
    checkMaxNewTokens(id, target.promptLength, maxNewTokens);
    auto const maxTokens = target.promptLength + maxNewTokens;
    if (maxTokens <= target.maxTokens)
    {
        return true;
    }
    if (target.numTokens > target.numSlots)
    {
        throw InvalidArgumentError(nameOfSequence(id) + " has all of its " + std::to_string(target.maxTokens)
                                   + " tokens, the last of them without a slot");
    }
    auto const numSlots = std::max(target.numSlots, maxTokens - 1); // the last new token is never fed back
    checkNeed(id, numSlots);
    auto const numMore = static_cast<BlockId>(blocksFor(numSlots) - blocksFor(target.numSlots));
    if (numMore > available() || (mHasWindows && !extendWindows(target, numSlots)))
    {
        return false;
    }
    target.blocks.reserve(static_cast<std::size_t>(blocksFor(numSlots)));
    target.maxTokens = maxTokens;
    target.numSlots = numSlots;
    target.numReserved += numMore;
    mNumReserved += numMore;
    checkAfterOperation();
    return true;
}

std::int64_t KVCacheManager::shareTail(SequenceId source, SequenceId id)
{
    auto& from = sequence(source);
    auto& to = sequence(id);
    auto const index = to.numWritten / tokensPerBlock();
    auto const begin = index * tokensPerBlock();
    // A block that is whole would have to be committed at once; only the head of one may be there without.
    auto const most =
        std::min({std::int64_t{tokensPerBlock()} - 1, from.numWritten - begin, to.promptLength - 1 - begin});
    auto const shareable =
        to.root && to.root == from.root && index < std::min(to.shareableBlocks, from.shareableBlocks);
    if (!mEnablePartialReuse || !mCopyOnPartialReuse || mHasWindows || !shareable || most <= to.numWritten - begin
        || !std::equal(to.blocks.begin(), to.blocks.begin() + index, from.blocks.begin()))
    {
        return to.numWritten;
    }
    auto const tail = from.blocks[static_cast<std::size_t>(index)];
    auto const own = to.blocks[static_cast<std::size_t>(index)];
    auto const key = mStore.key(own, mSpans);
    auto const common = mStore.commonTokens(tail, {key.tokens.slice(0, static_cast<std::size_t>(most)), key.media});
    if (tail == own || common <= to.numWritten - begin)
    {
        return to.numWritten;
    }
    mPartialReusedBlocks += to.numWritten == begin ? 1 : 0;
    hold(tail);
    addCopy(CopyKind::kPartial, tail, own, common, tail);
    to.ticket = mCopies.next();
    from.ticket = to.ticket; // until it is read the source does not give it back
    to.numWritten = begin + common;
    checkAfterOperation();
    return to.numWritten;
}

void KVCacheManager::rewind(SequenceId id, std::int64_t numTokens)
{
    auto& target = sequence(id);
    auto const least = std::max(target.promptLength, target.numWritten);
    if (numTokens < least || numTokens > target.numTokens)
    {
        throw InvalidArgumentError(nameOfSequence(id) + ": rewind to " + std::to_string(numTokens)
                                   + " tokens, expected " + std::to_string(least) + " to "
                                   + std::to_string(target.numTokens));
    }
    target.unnamed = target.unnamed && numTokens == target.numTokens;
    target.numTokens = numTokens;
    if (mHasWindows)
    {
        fitWindows(target);
    }
    // A block that a copy still reads stays in the table, to be written when tokens come again.
    auto const numBlocks = static_cast<std::size_t>(blocksFor(std::min(numTokens, target.numSlots)));
    while (mCopies.isDone(target.ticket) && target.blocks.size() > numBlocks)
    {
        letGo(target.blocks.back());
        target.blocks.pop_back();
        ++target.numReserved;
        ++mNumReserved;
    }
    checkAfterOperation();
}

void KVCacheManager::freeSequence(SequenceId id, bool keep)
{
    static_cast<void>(sequence(id));
    free(id, keep);
    checkAfterOperation();
}

void KVCacheManager::freeBatch(ArrayView<SequenceId> ids, bool keep)
{
    checkBatch(ids);
    for (auto const id : ids)
    {
        free(id, keep);
    }
    checkAfterOperation();
}

CopyPlan KVCacheManager::takeCopyPlan()
{
    return mCopies.take();
}

void KVCacheManager::copiesDone(Ticket ticket)
{
    mCopies.done(ticket,
        [this](std::int32_t pool, BlockId block)
        {
            if (pool != 0)
            {
                mWindows[static_cast<std::size_t>(pool) - 1].unpin(block);
                return;
            }
            letGo(block);
            auto const parent = mTree.contains(block) ? mTree.parentOf(block) : NodeId{-1};
            // On the host a block may come to lie behind its parent if its priority rose while it was copied.
            if (parent >= 0 && mPolicy.state(block) == BlockState::kCached
                && mPolicy.state(parent) == BlockState::kCached && mStore[parent].onHost == mStore[block].onHost)
            {
                liftAbove(block);
            }
        });
    for (auto& node : mEnding)
    {
        if (mCopies.isDone(node.mapped().ticket))
        {
            release(node.mapped());
            mSequences.recycle(std::move(node));
        }
    }
    mEnding.erase(
        std::remove_if(mEnding.begin(), mEnding.end(), [](auto const& node) { return node.empty(); }), mEnding.end());
    checkAfterOperation();
}

void KVCacheManager::refresh(std::int64_t nowMs)
{
    mRetention.advance(nowMs);
    mIdle.advance(nowMs);
    for (auto block = mRetention.popExpired(); block != kNoBlock; block = mRetention.popExpired())
    {
        fallBack(block);
    }
    checkAfterOperation();
}

BlockId KVCacheManager::resetReuseState()
{
    BlockId numDropped = 0;
    for (auto const tier : {Tier::kDevice, Tier::kHost})
    {
        numDropped += mPolicy.numCached(tier);
        for (auto block = mPolicy.nextCached(tier); block != kNoBlock; block = mPolicy.nextCached(tier))
        {
            if (mHasWindows)
            {
                dropWindows(block);
            }
            mRetention.stop(block);
            mIdle.stop(block);
            mPolicy.demote(block);
        }
    }
    if (mHasWindows)
    {
        resetWindows();
    }
    for (BlockId block = 0; mEvents.isEnabled() && block < mStore.numBlocks(); ++block)
    {
        if (mTree.contains(block))
        {
            mEvents.removed(block);
        }
    }
    mFlushedBlocks += mTree.size();
    mTree.clear();
    auto const forget = [](Sequence& sequence)
    {
        sequence.root.reset();
        sequence.shareableBlocks = 0;
        sequence.numFindable = 0;
    };
    for (auto& [id, live] : mSequences)
    {
        forget(live);
    }
    for (auto& node : mEnding)
    {
        forget(node.mapped());
    }
    checkAfterOperation();
    return numDropped;
}

void KVCacheManager::append(Sequence& sequence, ArrayView<TokenId> tokens)
{
    auto const first = sequence.numTokens;
    sequence.numTokens += static_cast<std::int64_t>(tokens.size());
    auto const withSlots = std::min(sequence.numTokens, sequence.numSlots);
    takeBlocks(sequence, static_cast<std::size_t>(blocksFor(withSlots)));
    for (auto position = first; position < withSlots; ++position)
    {
        auto const block = sequence.blocks[static_cast<std::size_t>(position / tokensPerBlock())];
        mStore.tokens(block)[position % tokensPerBlock()] = tokens[static_cast<std::size_t>(position - first)];
    }
    if (mHasWindows)
    {
        fitWindows(sequence);
    }
}

bool KVCacheManager::commit(Sequence& sequence, std::int64_t numWritten)
{
    sequence.numWritten = numWritten;
    auto const full = numWritten / tokensPerBlock();
    bool changed = false;
    while (sequence.numFindable < std::min(full, sequence.shareableBlocks))
    {
        changed |= makeFindable(sequence, static_cast<std::size_t>(sequence.numFindable));
    }
    if (mHasWindows)
    {
        fitWindows(sequence);
    }
    return changed;
}

bool KVCacheManager::makeFindable(Sequence& sequence, std::size_t index)
{
    auto const own = sequence.blocks[index];
    auto const parent = index == 0 ? sequence.root.value() : sequence.blocks[index - 1];
    auto const key = mStore.key(own, mSpans);
    if (key.tokens.size() < static_cast<std::size_t>(tokensPerBlock()))
    {
        // It ends with kNoToken, as incomplete blocks do: nothing may be found below it.
        sequence.shareableBlocks = static_cast<std::int64_t>(index);
        return false;
    }
    auto& hash = mStore[own].hash;
    if (index >= static_cast<std::size_t>(sequence.numHashed))
    {
        hash = mTree.hashOf(parent, key);
    }
    auto const existing = mTree.find(parent, key, hash);
    if (existing == kNoBlock)
    {
        mTree.insert(own, parent);
        mEvents.stored(own);
        ++sequence.numFindable;
        return false;
    }
    auto const stillCopiedToHost = mStore[existing].onHost && mStore[existing].references.value() > 0;
    // Own is being copied from: it would not come back now, and the promises to others count on the block taken here.
    auto const ownIsInCopy = mStore[own].references.value() > 1;
    if (stillCopiedToHost || ownIsInCopy)
    {
        // Rather than wait, the sequence shares nothing from here on.
        sequence.shareableBlocks = static_cast<std::int64_t>(index);
        return false;
    }
    if (mStore[existing].onHost)
    {
        hold(existing);
        swapSlots(existing, own); // what lies on the host is here already, so nothing has to be copied
        mEvents.levelChanged(existing, 1, 0);
    }
    else
    {
        hold(existing);
    }
    if (mHasWindows)
    {
        mergeWindows(sequence, index, existing);
    }
    sequence.blocks[index] = existing;
    letGo(own);
    ++sequence.numFindable;
    return true;
}

void KVCacheManager::free(SequenceId id, bool keep)
{
    auto& ending = sequence(id);
    ending.keep = keep;
    mNumReserved -= ending.numReserved;
    ending.numReserved = 0;
    if (mCopies.isDone(ending.ticket))
    {
        release(ending);
        mSequences.erase(id);
    }
    else
    {
        if (mHasWindows)
        {
            settleEnding(ending);
        }
        mEnding.push_back(mSequences.extract(id));
    }
}

void KVCacheManager::keepTail(Sequence const& ending)
{
    auto const index = static_cast<std::size_t>(ending.numFindable);
    auto const numTokens = ending.numWritten - static_cast<std::int64_t>(index) * tokensPerBlock();
    if (numTokens <= 0 || static_cast<std::int64_t>(index) >= ending.shareableBlocks)
    {
        return;
    }
    auto const tail = ending.blocks[index];
    auto const parent = index == 0 ? ending.root.value() : ending.blocks[index - 1];
    auto const key = mStore.key(tail, mSpans);
    if (key.tokens.size() < static_cast<std::size_t>(numTokens))
    {
        return; // kNoToken is among its tokens
    }
    auto const found = mTree.findPartial(parent, {key.tokens.slice(0, static_cast<std::size_t>(numTokens)), key.media});
    if (mHasWindows && found.numTokens == numTokens
        && mStore.numTokens(found.block) == static_cast<std::size_t>(numTokens))
    {
        lendWindows(tail, found.block);
    }
    // Nothing is gained where as much is findable already; a block that a copy still reads is not touched.
    if (found.numTokens == numTokens || mStore[tail].references.value() != 1)
    {
        return;
    }
    mStore.cutTokens(tail, static_cast<std::size_t>(numTokens), mSpans);
    mStore[tail].hash = mTree.hashOf(parent, mStore.key(tail, mSpans));
    // findPartial looks at the newest only; an equal tail that is older must not be stored twice.
    if (mTree.hasTail(parent, mStore.key(tail, mSpans), mStore[tail].hash))
    {
        return;
    }
    mTree.insert(tail, parent);
    mEvents.stored(tail);
}

void KVCacheManager::release(Sequence& ending)
{
    if (ending.keep && mEnablePartialReuse && ending.root)
    {
        keepTail(ending);
    }
    if (mHasWindows)
    {
        releaseWindows(ending);
    }
    // The deepest block goes first, so that children lie ahead of parents in the order of eviction.
    for (auto block = ending.blocks.rbegin(); block != ending.blocks.rend(); ++block)
    {
        letGo(*block);
        if (!ending.keep && mPolicy.state(*block) == BlockState::kCached && mTree.isLeaf(*block))
        {
            eraseFromTree(*block);
            mRetention.stop(*block);
            mIdle.stop(*block);
            mPolicy.demote(*block);
        }
    }
    if (ending.root)
    {
        mTree.releaseRoot(*ending.root);
    }
}

} // namespace tensorrt_llm::batch_manager
