// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/evictionPolicy.h"

#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

char const* nameOf(LruEvictionPolicy::State state)
{
    switch (state)
    {
    case LruEvictionPolicy::State::kFree:
        return "free";
    case LruEvictionPolicy::State::kCached:
        return "cached";
    case LruEvictionPolicy::State::kHeld:
        return "held";
    }
    return "unknown";
}

} // namespace

LruEvictionPolicy::LruEvictionPolicy(BlockId numBlocks)
    : mLinks(static_cast<std::size_t>(numBlocks) + 2)
    , mStates(static_cast<std::size_t>(numBlocks), State::kFree)
    , mFreeList{numBlocks}
    , mCachedList{numBlocks + 1}
    , mNumFree{numBlocks}
{
    link(mFreeList) = {mFreeList, mFreeList};
    link(mCachedList) = {mCachedList, mCachedList};
    for (BlockId block = 0; block < numBlocks; ++block)
    {
        insertAfter(link(mFreeList).previous, block);
    }
}

BlockId LruEvictionPolicy::next() const
{
    auto const block = link(mFreeList).next;
    return block == mFreeList ? nextCached() : block;
}

BlockId LruEvictionPolicy::nextCached() const
{
    auto const block = link(mCachedList).next;
    return block == mCachedList ? kNoBlock : block;
}

void LruEvictionPolicy::claim(BlockId block)
{
    auto& state = mStates[static_cast<std::size_t>(block)];
    if (state == State::kHeld)
    {
        throw InternalStateError("block " + std::to_string(block) + " is held, expected free or cached");
    }
    --(state == State::kFree ? mNumFree : mNumCached);
    unlink(block);
    state = State::kHeld;
}

void LruEvictionPolicy::releaseFree(BlockId block)
{
    expect(block, State::kHeld);
    insertAfter(mFreeList, block);
    mStates[static_cast<std::size_t>(block)] = State::kFree;
    ++mNumFree;
}

void LruEvictionPolicy::releaseCached(BlockId block)
{
    expect(block, State::kHeld);
    insertAfter(link(mCachedList).previous, block);
    mStates[static_cast<std::size_t>(block)] = State::kCached;
    ++mNumCached;
}

void LruEvictionPolicy::demote(BlockId block)
{
    expect(block, State::kCached);
    claim(block);
    releaseFree(block);
}

void LruEvictionPolicy::insertAfter(BlockId position, BlockId block)
{
    auto const following = link(position).next;
    link(block) = {position, following};
    link(position).next = block;
    link(following).previous = block;
}

void LruEvictionPolicy::unlink(BlockId block)
{
    auto const [previous, following] = link(block);
    link(previous).next = following;
    link(following).previous = previous;
}

void LruEvictionPolicy::expect(BlockId block, State expected) const
{
    if (state(block) != expected)
    {
        throw InternalStateError(
            "block " + std::to_string(block) + " is " + nameOf(state(block)) + ", expected " + nameOf(expected));
    }
}

std::vector<BlockId> LruEvictionPolicy::walk(BlockId sentinel, State expected) const
{
    std::vector<BlockId> blocks;
    for (auto block = link(sentinel).next; block != sentinel; block = link(block).next)
    {
        expect(block, expected);
        if (link(link(block).next).previous != block || blocks.size() == mStates.size())
        {
            throw InternalStateError(std::string{"the "} + nameOf(expected) + " list is broken at block "
                                     + std::to_string(block) + ", entry " + std::to_string(blocks.size()));
        }
        blocks.push_back(block);
    }
    return blocks;
}

std::vector<BlockId> LruEvictionPolicy::cachedBlocks() const
{
    return walk(mCachedList, State::kCached);
}

void LruEvictionPolicy::checkIntegrity() const
{
    BlockId numFree = 0;
    BlockId numCached = 0;
    for (auto const state : mStates)
    {
        numFree += state == State::kFree ? 1 : 0;
        numCached += state == State::kCached ? 1 : 0;
    }
    auto const check = [](State state, std::size_t listed, BlockId marked, BlockId counted)
    {
        if (static_cast<BlockId>(listed) != marked || marked != counted)
        {
            throw InternalStateError(std::string{nameOf(state)} + " blocks: " + std::to_string(listed) + " listed, "
                                     + std::to_string(marked) + " marked, " + std::to_string(counted) + " counted");
        }
    };
    check(State::kFree, walk(mFreeList, State::kFree).size(), numFree, mNumFree);
    check(State::kCached, walk(mCachedList, State::kCached).size(), numCached, mNumCached);
}

} // namespace tensorrt_llm::batch_manager
