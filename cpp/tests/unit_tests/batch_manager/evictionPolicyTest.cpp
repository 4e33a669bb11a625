// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/evictionPolicy.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <random>

using namespace tensorrt_llm::batch_manager;
using State = BlockState;

namespace
{

BlockId take(EvictionPolicy& policy)
{
    auto const block = policy.next(Tier::kDevice);
    policy.claim(block);
    return block;
}

} // namespace

BOOST_AUTO_TEST_CASE(freeBlocksGoFirstThenTheCachedOneReleasedLongestAgo)
{
    BlockStore store{4, 1};
    EvictionPolicy policy{store};
    for (BlockId block = 0; block < 4; ++block)
    {
        BOOST_TEST(take(policy) == block);
    }
    BOOST_TEST(policy.next(Tier::kDevice) == kNoBlock);
    policy.releaseCached(2);
    policy.releaseCached(0);
    policy.releaseFree(3);
    BOOST_TEST(policy.numCached(Tier::kDevice) == 2);
    BOOST_TEST(policy.numFree(Tier::kDevice) == 1);
    BOOST_TEST(take(policy) == 3);
    BOOST_TEST(take(policy) == 2);
    BOOST_TEST(take(policy) == 0);
    policy.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(aBlockUsedAgainBecomesTheMostRecent)
{
    BlockStore store{3, 1};
    EvictionPolicy policy{store};
    for (BlockId block = 0; block < 3; ++block)
    {
        policy.claim(block);
        policy.releaseCached(block);
    }
    policy.claim(0);
    policy.releaseCached(0);
    BOOST_TEST((policy.cachedBlocks(Tier::kDevice) == std::vector<BlockId>{1, 2, 0}));
}

BOOST_AUTO_TEST_CASE(demoteFreesInPlaceOfHandingOut)
{
    BlockStore store{2, 1};
    EvictionPolicy policy{store};
    policy.claim(1);
    policy.releaseCached(1);
    policy.demote(1);
    BOOST_TEST((policy.state(1) == State::kFree));
    BOOST_TEST(policy.numFree(Tier::kDevice) == 2);
    BOOST_TEST(policy.nextCached(Tier::kDevice) == kNoBlock);
    policy.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(theLowestLevelGoesFirstAndTiersAreApart)
{
    BlockStore store{6, 1};
    store[4].onHost = true;
    store[5].onHost = true;
    EvictionPolicy policy{store};
    BOOST_TEST(policy.next(Tier::kHost) == 4);
    std::uint8_t const levels[] = {100, 0, 64, 63, 5, 5};
    for (BlockId block = 0; block < 6; ++block)
    {
        policy.claim(block);
        store[block].level = levels[block];
        policy.releaseCached(block);
    }
    BOOST_TEST((policy.cachedBlocks(Tier::kDevice) == std::vector<BlockId>{1, 3, 2, 0}));
    BOOST_TEST((policy.cachedBlocks(Tier::kHost) == std::vector<BlockId>{4, 5}));
    policy.relist(1, 64, false);
    BOOST_TEST((policy.cachedBlocks(Tier::kDevice) == std::vector<BlockId>{3, 2, 1, 0}));
    policy.relist(0, 64, true);
    BOOST_TEST((policy.cachedBlocks(Tier::kDevice) == std::vector<BlockId>{3, 0, 2, 1}));
    BOOST_TEST(policy.nextCached(Tier::kDevice) == 3);
    BOOST_TEST(policy.numCached(Tier::kDevice) == 4);
    policy.checkIntegrity();
    policy.claim(3);
    BOOST_CHECK_THROW(policy.relist(3, 1, false), InternalStateError);
}

BOOST_AUTO_TEST_CASE(movesFromAWrongStateThrowAndChangeNothing)
{
    BlockStore store{2, 1};
    EvictionPolicy policy{store};
    BOOST_CHECK_THROW(policy.releaseFree(0), InternalStateError);
    BOOST_CHECK_THROW(policy.releaseCached(0), InternalStateError);
    BOOST_CHECK_THROW(policy.demote(0), InternalStateError);
    policy.claim(0);
    BOOST_CHECK_THROW(policy.claim(0), InternalStateError);
    BOOST_TEST(policy.numFree(Tier::kDevice) == 1);
    policy.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(randomMovesMatchTwoDeques)
{
    std::mt19937 random{20260101};
    constexpr BlockId kBlocks = 13;
    BlockStore store{kBlocks, 1};
    EvictionPolicy policy{store};
    std::deque<BlockId> free;
    std::deque<BlockId> cached;
    for (BlockId block = 0; block < kBlocks; ++block)
    {
        free.push_back(block);
    }
    for (int step = 0; step < 20000; ++step)
    {
        auto const expected = !free.empty() ? free.front() : !cached.empty() ? cached.front() : kNoBlock;
        BOOST_REQUIRE(policy.next(Tier::kDevice) == expected);
        auto const block = static_cast<BlockId>(random() % kBlocks);
        switch (policy.state(block))
        {
        case State::kHeld:
            if (random() % 2 == 0)
            {
                policy.releaseFree(block);
                free.push_front(block);
            }
            else
            {
                policy.releaseCached(block);
                cached.push_back(block);
            }
            break;
        case State::kCached:
            cached.erase(std::find(cached.begin(), cached.end(), block));
            if (random() % 4 == 0)
            {
                policy.demote(block);
                free.push_front(block);
            }
            else
            {
                policy.claim(block);
            }
            break;
        case State::kFree:
            free.erase(std::find(free.begin(), free.end(), block));
            policy.claim(block);
            break;
        }
        policy.checkIntegrity();
        auto const blocks = policy.cachedBlocks(Tier::kDevice);
        BOOST_REQUIRE(std::equal(blocks.begin(), blocks.end(), cached.begin(), cached.end()));
    }
}
