// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerIntegrity.cpp
//! KVCacheManager::checkIntegrity, which recounts everything from the sequences' tables.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

void expectEqual(std::string const& what, std::int64_t found, std::int64_t expected)
{
    if (found != expected)
    {
        throw InternalStateError(what + ": " + std::to_string(found) + ", expected " + std::to_string(expected));
    }
}

std::string nameOf(BlockId block)
{
    return "block " + std::to_string(block);
}

} // namespace

void KVCacheManager::checkIntegrity() const
{
    mTree.checkIntegrity();
    mPolicy.checkIntegrity();
    checkSequences();
    checkBlocks();
}

void KVCacheManager::checkSequences() const
{
    std::vector<std::uint32_t> holders(static_cast<std::size_t>(numBlocks()), 0);
    std::vector<SequenceId const*> lastHolder(static_cast<std::size_t>(numBlocks()), nullptr);
    std::int64_t reserved = 0;
    for (auto const& [id, live] : mSequences)
    {
        reserved += live.numReserved;
        expectEqual("blocks taken and promised of sequence " + std::to_string(id),
            static_cast<std::int64_t>(live.blocks.size()) + live.numReserved, blocksFor(live.numSlots));
        for (std::size_t index = 0; index < live.blocks.size(); ++index)
        {
            auto const block = static_cast<std::size_t>(live.blocks.at(index));
            ++holders.at(block);
            expectEqual(nameOf(live.blocks[index]) + " twice in one table", lastHolder[block] == &id, 0);
            lastHolder[block] = &id;
            auto const findable = index < static_cast<std::size_t>(live.numFindable);
            expectEqual(nameOf(live.blocks[index]) + " in the tree", mTree.contains(live.blocks[index]), findable);
            if (findable)
            {
                expectEqual("parent of " + nameOf(live.blocks[index]), mTree.parentOf(live.blocks[index]),
                    index == 0 ? live.root.value() : live.blocks[index - 1]);
            }
        }
    }
    for (std::size_t block = 0; block < holders.size(); ++block)
    {
        expectEqual("holders of " + nameOf(static_cast<BlockId>(block)),
            mStore[static_cast<BlockId>(block)].references.value(), holders[block]);
    }
    expectEqual("reserved blocks", mNumReserved, reserved);
    if (mNumReserved > mPolicy.numFree(Tier::kDevice) + mPolicy.numCached(Tier::kDevice))
    {
        throw InternalStateError(std::to_string(mNumReserved) + " blocks promised, "
                                 + std::to_string(mPolicy.numFree(Tier::kDevice) + mPolicy.numCached(Tier::kDevice))
                                 + " unheld");
    }
}

void KVCacheManager::checkBlocks() const
{
    BlockId numHeld = 0;
    for (BlockId block = 0; block < numBlocks(); ++block)
    {
        auto const state = mPolicy.state(block);
        auto const held = mStore[block].references.value() > 0;
        numHeld += held ? 1 : 0;
        expectEqual(nameOf(block) + " off the lists", state == BlockState::kHeld, held);
        if (!held)
        {
            expectEqual(nameOf(block) + " in the tree", mTree.contains(block), state == BlockState::kCached);
        }
    }
    expectEqual("free, cached and held blocks",
        mPolicy.numFree(Tier::kDevice) + mPolicy.numCached(Tier::kDevice) + numHeld, numBlocks());
    // A cached block must lie behind all its children, or the oldest would not be a leaf.
    std::vector<bool> passed(static_cast<std::size_t>(numBlocks()), false);
    for (auto const block : mPolicy.cachedBlocks(Tier::kDevice))
    {
        auto const parent = mTree.parentOf(block);
        expectEqual("parent of cached " + nameOf(block) + " ahead of it",
            parent >= 0 && passed[static_cast<std::size_t>(parent)], 0);
        passed[static_cast<std::size_t>(block)] = true;
    }
}

} // namespace tensorrt_llm::batch_manager
