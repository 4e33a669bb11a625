// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/windowPool.h"

#include "errorHelpers.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

constexpr std::int32_t kTokensPerBlock = 4;

//! A store whose first blocks can be found; none is free.
BlockStore makeStore(BlockId numBlocks, BlockId numFindable)
{
    BlockStore store{numBlocks, kTokensPerBlock};
    for (BlockId block = 0; block < numBlocks; ++block)
    {
        store[block].state = BlockState::kHeld;
        store[block].present = block < numFindable;
    }
    return store;
}

//! The blocks that hold a token of [first, end), one token after the other.
std::set<std::int64_t> touched(std::int64_t first, std::int64_t end)
{
    std::set<std::int64_t> blocks;
    for (auto token = std::max<std::int64_t>(first, 0); token < end; ++token)
    {
        blocks.insert(token / kTokensPerBlock);
    }
    return blocks;
}

} // namespace

BOOST_AUTO_TEST_CASE(theBlocksOfAWindowAreThoseThatItsTokensTouch)
{
    auto const store = makeStore(4, 0);
    constexpr std::int64_t kSlots = 41;
    for (std::int64_t window = 2; window <= 13; ++window)
    {
        for (std::int64_t step = 0; step <= 9; ++step)
        {
            WindowPool const pool{{window, 4}, step, store};
            BlockId most = 0;
            for (std::int64_t written = kSlots; written >= 0; --written)
            {
                auto const end = step == 0 ? kSlots : std::min(kSlots, written + step);
                auto const needed = touched(written - window + 1, std::max(end, written));
                if (!needed.empty())
                {
                    BOOST_TEST(pool.firstBlock(written) == *needed.begin());
                    BOOST_TEST(pool.endBlock(written, kSlots) == *needed.rbegin() + 1);
                }
                // What is promised suffices from here to the end, with at most one block to spare.
                most = std::max(most, static_cast<BlockId>(needed.size()));
                BOOST_TEST(pool.mostBlocks(written, kSlots) >= most);
                BOOST_TEST(pool.mostBlocks(written, kSlots) <= most + 1);
            }
            BOOST_TEST(pool.mostBlocks(0, 1) == 1);
            BOOST_TEST(pool.mostBlocks(0, 0) == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(whatWasReleasedLongestAgoGoesFirst)
{
    auto const store = makeStore(8, 8);
    WindowPool pool{{8, 3}, 1, store};
    auto const first = pool.take(0);
    auto const second = pool.take(1);
    BOOST_TEST(pool.slotOf(0) == first);
    BOOST_TEST(pool.acquire(0) == first);
    pool.release(first);
    pool.release(second);
    pool.release(first); // the second holder
    BOOST_TEST(pool.stats().cachedNumBlocks == 2);
    BOOST_TEST(pool.take(2) != first); // the empty one goes before either
    BOOST_TEST(pool.stats().evictedBlocks == 0);
    BOOST_TEST(pool.take(3) == second);
    BOOST_TEST(pool.slotOf(1) == kNoBlock);
    BOOST_TEST(pool.slotOf(0) == first);
    BOOST_TEST(pool.acquire(0) == first); // and back from the list
    BOOST_TEST(pool.stats().evictedBlocks == 1);
    BOOST_TEST(pool.stats().freeNumBlocks == 0);
    BOOST_CHECK_EXCEPTION(pool.take(4), InternalStateError, says({"window 8", "0 of 3"}));
    BOOST_CHECK_EXCEPTION(pool.acquire(1), InternalStateError, says({"block 1", "0 slots", "1"}));
    pool.checkIntegrity({1, 1, 1}, 0);
}

BOOST_AUTO_TEST_CASE(aSlotOfABlockThatNobodyFindsBecomesFree)
{
    auto store = makeStore(4, 1);
    WindowPool pool{{8, 2}, 1, store};
    auto const slot = pool.take(3);
    pool.release(slot);
    BOOST_TEST(pool.slotOf(3) == kNoBlock);
    BOOST_TEST(pool.stats().cachedNumBlocks == 0);
    BOOST_TEST(pool.stats().freeNumBlocks == 2);
    // The twin: a findable one stays until its node leaves.
    pool.release(pool.take(0));
    BOOST_TEST(pool.stats().cachedNumBlocks == 1);
    store[0].present = false;
    pool.detach(0);
    pool.detach(0); // nothing left to do
    BOOST_TEST(pool.stats().cachedNumBlocks == 0);
    pool.checkIntegrity({0, 0}, 0);
}

BOOST_AUTO_TEST_CASE(aPinnedSlotIsNotHandedOut)
{
    auto store = makeStore(4, 4);
    WindowPool pool{{8, 2}, 1, store};
    auto const slot = pool.take(0);
    pool.pin(slot);
    pool.release(slot);
    pool.detach(0); // its node may go, the copy still reads
    auto const other = pool.take(1);
    BOOST_TEST(other != slot);
    BOOST_CHECK_THROW(static_cast<void>(pool.take(2)), InternalStateError);
    pool.checkIntegrity({1, 1}, 0);
    pool.unpin(slot);
    BOOST_TEST(pool.stats().cachedNumBlocks == 0);
    BOOST_TEST(pool.take(2) == slot);
}

BOOST_AUTO_TEST_CASE(promisesAndPinsNeverExceedThePool)
{
    auto const store = makeStore(4, 4);
    WindowPool pool{{8, 5}, 1, store};
    BOOST_TEST(pool.canPromise(5, 0));
    BOOST_TEST(!pool.canPromise(6, 0));
    BOOST_TEST(!pool.canPromise(4, kPinsOfCopy));
    pool.promise(3);
    BOOST_TEST(pool.canPromise(0, kPinsOfCopy));
    BOOST_TEST(!pool.canPromise(1, kPinsOfCopy));
    pool.pin(pool.take(0));
    BOOST_TEST(pool.canPromise(1, 0));
    BOOST_TEST(!pool.canPromise(2, 0));
    pool.takeBack(2);
    BOOST_TEST(pool.canPromise(3, 0));
    BOOST_TEST(pool.stats().promisedNumBlocks == 1);
}

BOOST_AUTO_TEST_CASE(aSlotMovesToAnotherBlock)
{
    auto store = makeStore(4, 1);
    WindowPool pool{{8, 2}, 1, store};
    auto const slot = pool.take(3);
    pool.attach(slot, 0);
    BOOST_TEST(pool.slotOf(3) == kNoBlock);
    pool.release(slot);
    BOOST_TEST(pool.stats().cachedNumBlocks == 1);
    BOOST_TEST(pool.acquire(0) == slot);
    BOOST_CHECK_THROW(pool.attach(slot, 0), InternalStateError);
}

BOOST_AUTO_TEST_CASE(malformedSizesAreRefused)
{
    auto const store = makeStore(4, 1);
    auto const make = [&](std::int64_t window, BlockId blocks, std::int64_t step)
    {
        WindowPool const pool{{window, blocks}, step, store};
    };
    BOOST_CHECK_EXCEPTION(make(1, 4, 1), InvalidArgumentError, says({"window_size is 1", "2 to"}));
    BOOST_CHECK_EXCEPTION(make(4, 0, 1), InvalidArgumentError, says({"num_blocks of a window pool is 0", "1 to"}));
    BOOST_CHECK_EXCEPTION(make(4, 1, -1), InvalidArgumentError, says({"max_step_tokens is -1", "0 to"}));
    make(2, 1, 0);
}

//! Every operation in random order beside a model that keeps lists of names.
BOOST_AUTO_TEST_CASE(randomOperationsAgreeWithAModel)
{
    constexpr BlockId kNodes = 12;
    constexpr BlockId kSlots = 5;
    std::int64_t numEvicted = 0;
    for (unsigned seed = 1; seed <= 20; ++seed)
    {
        std::mt19937 random{seed};
        auto const below = [&](std::size_t bound)
        {
            return static_cast<std::size_t>(random() % bound);
        };
        auto store = makeStore(kNodes, kNodes / 2);
        WindowPool pool{{8, kSlots}, 1, store};
        std::map<BlockId, BlockId> slots;            // by node
        std::deque<BlockId> idle;                    // nodes, the first to go first
        std::vector<std::pair<BlockId, bool>> holds; // slot, pinned
        auto const numHolders = [&](BlockId slot)
        {
            return std::count_if(holds.begin(), holds.end(), [&](auto const& hold) { return hold.first == slot; });
        };
        for (int step = 0; step < 1000; ++step)
        {
            auto const node = static_cast<BlockId>(below(kNodes));
            std::set<BlockId> held;
            std::for_each(holds.begin(), holds.end(), [&](auto const& hold) { held.insert(hold.first); });
            auto const choice = below(10);
            if (choice < 4 && slots.count(node) == 0 && held.size() < kSlots)
            {
                auto const victim = held.size() + idle.size() == kSlots;
                auto const slot = pool.take(node);
                BOOST_REQUIRE(held.count(slot) == 0);
                if (victim)
                {
                    BOOST_REQUIRE(slots.at(idle.front()) == slot);
                    slots.erase(idle.front());
                    idle.pop_front();
                    ++numEvicted;
                }
                slots[node] = slot;
                holds.emplace_back(slot, false);
            }
            else if (choice < 6 && slots.count(node) != 0)
            {
                auto const numPins =
                    std::count_if(holds.begin(), holds.end(), [](auto const& hold) { return hold.second; });
                auto const pinned = numPins < kSlots && below(2) == 0;
                auto const slot = slots.at(node);
                pinned ? pool.pin(slot) : static_cast<void>(pool.acquire(node));
                holds.emplace_back(slot, pinned);
                idle.erase(std::remove(idle.begin(), idle.end(), node), idle.end());
            }
            else if (choice < 9 && !holds.empty())
            {
                auto const chosen = holds.begin() + static_cast<std::ptrdiff_t>(below(holds.size()));
                auto const [slot, pinned] = *chosen;
                holds.erase(chosen);
                pinned ? pool.unpin(slot) : pool.release(slot);
                auto const owner =
                    std::find_if(slots.begin(), slots.end(), [&](auto const& entry) { return entry.second == slot; });
                if (numHolders(slot) == 0 && owner != slots.end())
                {
                    if (store[owner->first].present)
                    {
                        idle.push_back(owner->first);
                    }
                    else
                    {
                        slots.erase(owner);
                    }
                }
            }
            else if (choice == 9)
            {
                pool.detach(node);
                slots.erase(node);
                idle.erase(std::remove(idle.begin(), idle.end(), node), idle.end());
            }
            std::vector<std::uint32_t> holders(kSlots, 0);
            std::for_each(
                holds.begin(), holds.end(), [&](auto const& hold) { ++holders[static_cast<std::size_t>(hold.first)]; });
            pool.checkIntegrity(holders, 0);
            BOOST_REQUIRE(pool.stats().cachedNumBlocks == static_cast<BlockId>(idle.size()));
            for (BlockId block = 0; block < kNodes; ++block)
            {
                auto const found = slots.find(block);
                BOOST_REQUIRE(pool.slotOf(block) == (found == slots.end() ? kNoBlock : found->second));
            }
        }
        pool.dropCached();
        BOOST_REQUIRE(pool.stats().cachedNumBlocks == 0);
    }
    BOOST_TEST(numEvicted > 500);
}
