// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/evictionPolicy.h"

#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

char const* nameOf(BlockState state)
{
    switch (state)
    {
    case BlockState::kFree:
        return "free";
    case BlockState::kCached:
        return "cached";
    case BlockState::kHeld:
        return "held";
    }
    return "unknown";
}

constexpr Tier kTiers[] = {Tier::kDevice, Tier::kHost};

} // namespace

EvictionPolicy::EvictionPolicy(BlockStore& store)
    : mStore{store}
{
    for (BlockId block = 0; block < mStore.numBlocks(); ++block)
    {
        mStore[block].state = BlockState::kFree;
        listsOf(block).free.pushBack(block, linksOf());
    }
}

BlockId EvictionPolicy::next(Tier tier) const
{
    auto const block = of(tier).free.first();
    return block == kNoBlock ? nextCached(tier) : block;
}

BlockId EvictionPolicy::nextCached(Tier tier) const
{
    auto const& lists = of(tier);
    for (std::size_t word = 0; word < lists.occupied.size(); ++word)
    {
        if (lists.occupied[word] != 0)
        {
            return lists.levels[64 * word + static_cast<std::size_t>(__builtin_ctzll(lists.occupied[word]))].first();
        }
    }
    return kNoBlock;
}

void EvictionPolicy::demote(BlockId block)
{
    expect(block, BlockState::kCached);
    claim(block);
    releaseFree(block);
}

void EvictionPolicy::relist(BlockId block, std::uint8_t level, bool toFront)
{
    expect(block, BlockState::kCached);
    delist(block);
    mStore[block].level = level;
    enlist(block, toFront);
}

void EvictionPolicy::fail(BlockId block, BlockState expected) const
{
    throw InternalStateError(
        "block " + std::to_string(block) + " is " + nameOf(state(block)) + ", expected " + nameOf(expected));
}

void EvictionPolicy::walk(LinkedList const& list, BlockState expected, Tier tier, std::vector<BlockId>& blocks) const
{
    auto previous = kNoBlock;
    for (auto block = list.first(); block != kNoBlock; block = mStore[block].links.next)
    {
        expect(block, expected);
        if (mStore[block].links.previous != previous || mStore[block].onHost != (tier == Tier::kHost)
            || blocks.size() == static_cast<std::size_t>(mStore.numBlocks()))
        {
            throw InternalStateError(std::string{"a list of "} + nameOf(expected) + " blocks is broken at block "
                                     + std::to_string(block) + ", entry " + std::to_string(blocks.size()));
        }
        blocks.push_back(block);
        previous = block;
    }
    if (list.last() != previous)
    {
        throw InternalStateError(std::string{"a list of "} + nameOf(expected) + " blocks ends with block "
                                 + std::to_string(list.last()) + ", expected " + std::to_string(previous));
    }
}

std::vector<BlockId> EvictionPolicy::cachedBlocks(Tier tier) const
{
    std::vector<BlockId> blocks;
    for (std::size_t level = 0; level < kNumLevels; ++level)
    {
        auto const& list = of(tier).levels[level];
        auto const before = blocks.size();
        walk(list, BlockState::kCached, tier, blocks);
        for (auto index = before; index < blocks.size(); ++index)
        {
            if (mStore[blocks[index]].level != level)
            {
                throw InternalStateError("block " + std::to_string(blocks[index]) + " of level "
                                         + std::to_string(mStore[blocks[index]].level) + " is listed on level "
                                         + std::to_string(level));
            }
        }
        auto const marked = (of(tier).occupied[level / 64] >> (level % 64) & 1) != 0;
        if (marked != (blocks.size() != before))
        {
            throw InternalStateError("level " + std::to_string(level) + " has " + std::to_string(blocks.size() - before)
                                     + " blocks and is marked " + (marked ? "occupied" : "empty"));
        }
    }
    return blocks;
}

void EvictionPolicy::checkIntegrity() const
{
    for (auto const tier : kTiers)
    {
        BlockId numFree = 0;
        BlockId numCached = 0;
        for (BlockId block = 0; block < mStore.numBlocks(); ++block)
        {
            auto const here = mStore[block].onHost == (tier == Tier::kHost);
            numFree += here && state(block) == BlockState::kFree ? 1 : 0;
            numCached += here && state(block) == BlockState::kCached ? 1 : 0;
        }
        auto const check = [](BlockState state, std::size_t listed, BlockId marked, BlockId counted)
        {
            if (static_cast<BlockId>(listed) != marked || marked != counted)
            {
                throw InternalStateError(std::string{nameOf(state)} + " blocks: " + std::to_string(listed) + " listed, "
                                         + std::to_string(marked) + " marked, " + std::to_string(counted) + " counted");
            }
        };
        std::vector<BlockId> free;
        walk(of(tier).free, BlockState::kFree, tier, free);
        check(BlockState::kFree, free.size(), numFree, of(tier).free.size());
        check(BlockState::kCached, cachedBlocks(tier).size(), numCached, of(tier).numCached);
    }
}

} // namespace tensorrt_llm::batch_manager
