// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerLifetime.cpp
//! KVCacheManager: what happens to a live sequence, to its end.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <algorithm>
#include <string>

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

void KVCacheManager::freeSequence(SequenceId id)
{
    free(id, sequence(id));
    checkAfterOperation();
}

void KVCacheManager::freeBatch(ArrayView<SequenceId> ids)
{
    checkBatch(ids);
    for (auto const id : ids)
    {
        free(id, sequence(id));
    }
    checkAfterOperation();
}

BlockId KVCacheManager::resetReuseState()
{
    auto const numDropped = mPolicy.numCached(Tier::kDevice);
    for (auto block = mPolicy.nextCached(Tier::kDevice); block != kNoBlock; block = mPolicy.nextCached(Tier::kDevice))
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
}

bool KVCacheManager::commit(Sequence& sequence, std::int64_t numWritten)
{
    sequence.numWritten = numWritten;
    auto const full = std::min(sequence.shareableBlocks, numWritten / tokensPerBlock());
    bool changed = false;
    while (sequence.numFindable < full)
    {
        changed |= makeFindable(sequence, static_cast<std::size_t>(sequence.numFindable));
    }
    return changed;
}

bool KVCacheManager::makeFindable(Sequence& sequence, std::size_t index)
{
    auto const own = sequence.blocks[index];
    auto const parent = index == 0 ? sequence.root.value() : sequence.blocks[index - 1];
    auto const key = mStore.key(own, mSpans);
    auto& hash = mStore[own].hash;
    if (index >= static_cast<std::size_t>(sequence.numHashed))
    {
        hash = mTree.hashOf(parent, key);
    }
    auto const existing = mTree.find(parent, key, hash);
    if (existing == kNoBlock)
    {
        mTree.insert(own, parent);
    }
    else
    {
        hold(existing);
        sequence.blocks[index] = existing;
        letGo(own);
    }
    ++sequence.numFindable;
    return existing != kNoBlock;
}

void KVCacheManager::free(SequenceId id, Sequence& ending)
{
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
}

} // namespace tensorrt_llm::batch_manager
