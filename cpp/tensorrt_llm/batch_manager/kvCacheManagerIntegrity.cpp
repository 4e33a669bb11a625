// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerIntegrity.cpp
//! KVCacheManager::checkIntegrity, which recounts everything from the sequences' tables.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "checks.h"

#include <string>

namespace tensorrt_llm::batch_manager
{

namespace
{

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
    checkWindows();
}

void KVCacheManager::checkSequences() const
{
    auto const numAll = static_cast<std::size_t>(mStore.numBlocks());
    std::vector<std::uint32_t> holders(numAll, 0);
    std::vector<Sequence const*> lastHolder(numAll, nullptr);
    std::int64_t reserved = 0;
    auto const checkTable = [&](std::string const& name, Sequence const& checked)
    {
        reserved += checked.numReserved;
        for (std::size_t index = 0; index < checked.blocks.size(); ++index)
        {
            auto const block = checked.blocks.at(index);
            auto const at = static_cast<std::size_t>(block);
            ++holders.at(at);
            expectEqual(nameOf(block) + " twice in the table of " + name, lastHolder[at] == &checked, 0);
            lastHolder[at] = &checked;
            expectEqual(nameOf(block) + " of " + name + " on the host", mStore[block].onHost, 0);
            auto const findable = index < static_cast<std::size_t>(checked.numFindable);
            expectEqual(nameOf(block) + " of " + name + " in the tree", mTree.contains(block), findable);
            if (findable)
            {
                expectEqual("parent of " + nameOf(block), mTree.parentOf(block),
                    index == 0 ? checked.root.value() : checked.blocks[index - 1]);
            }
        }
    };
    for (auto const& [id, live] : mSequences)
    {
        auto const name = nameOfSequence(id);
        checkTable(name, live);
        expectEqual("blocks taken and promised of " + name,
            static_cast<std::int64_t>(live.blocks.size()) + live.numReserved, blocksFor(live.numSlots));
    }
    for (auto const& node : mEnding)
    {
        checkTable("an ended sequence", node.mapped());
    }
    mCopies.forEachHeld(
        [&](std::int32_t pool, BlockId block)
        {
            if (pool == 0)
            {
                ++holders.at(static_cast<std::size_t>(block));
            }
        });
    for (std::size_t block = 0; block < holders.size(); ++block)
    {
        auto const id = static_cast<BlockId>(block);
        expectEqual("holders of " + nameOf(id), mStore[id].references.value(), holders[block]);
    }
    expectEqual("reserved blocks", mNumReserved, reserved);
    if (available() < 0)
    {
        throw InternalStateError(std::to_string(mNumReserved) + " blocks promised, "
                                 + std::to_string(available() + mNumReserved) + " unheld");
    }
}

void KVCacheManager::checkBlocks() const
{
    std::int64_t numHeld = 0;
    std::vector<bool> slotTaken(static_cast<std::size_t>(mStore.numBlocks()), false);
    for (BlockId block = 0; block < mStore.numBlocks(); ++block)
    {
        auto const& record = mStore[block];
        auto const held = record.references.value() > 0;
        numHeld += held ? 1 : 0;
        expectEqual(nameOf(block) + " off the lists", record.state == BlockState::kHeld, held);
        if (!held)
        {
            expectEqual(nameOf(block) + " in the tree", mTree.contains(block), record.state == BlockState::kCached);
        }
        expectEqual(
            "slot of " + nameOf(block) + " taken twice", slotTaken.at(static_cast<std::size_t>(record.slot)), 0);
        slotTaken[static_cast<std::size_t>(record.slot)] = true;
        expectEqual(nameOf(block) + " on the host", record.onHost, record.slot >= numBlocks());
        if (mTree.contains(block) && record.parent >= 0 && !record.onHost)
        {
            expectEqual("parent of device " + nameOf(block) + " on the host", mStore[record.parent].onHost, 0);
        }
        if (mTree.contains(block) && record.parent >= 0 && !held)
        {
            expectEqual("level of the parent of " + nameOf(block) + " below its own",
                mStore[record.parent].level < record.level, 0);
        }
    }
    std::int64_t numUnheld = 0;
    // A cached block must lie behind all its children, or the next to go would not be a leaf.
    for (auto const tier : {Tier::kDevice, Tier::kHost})
    {
        numUnheld += mPolicy.numFree(tier) + mPolicy.numCached(tier);
        std::vector<bool> passed(static_cast<std::size_t>(mStore.numBlocks()), false);
        for (auto const block : mPolicy.cachedBlocks(tier))
        {
            auto const parent = mTree.parentOf(block);
            expectEqual("parent of cached " + nameOf(block) + " ahead of it",
                parent >= 0 && passed[static_cast<std::size_t>(parent)], 0);
            passed[static_cast<std::size_t>(block)] = true;
        }
    }
    expectEqual("free, cached and held blocks", numUnheld + numHeld, mStore.numBlocks());
}

} // namespace tensorrt_llm::batch_manager
