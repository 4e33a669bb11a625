// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/evictionPolicy.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <random>

using namespace tensorrt_llm::batch_manager;
using State = LruEvictionPolicy::State;

namespace
{

BlockId take(LruEvictionPolicy& policy)
{
    auto const block = policy.next();
    policy.claim(block);
    return block;
}

} // namespace

BOOST_AUTO_TEST_CASE(freeBlocksGoFirstThenTheCachedOneReleasedLongestAgo)
{
    LruEvictionPolicy policy{4};
    for (BlockId block = 0; block < 4; ++block)
    {
        BOOST_TEST(take(policy) == block);
    }
    BOOST_TEST(policy.next() == kNoBlock);
    policy.releaseCached(2);
    policy.releaseCached(0);
    policy.releaseFree(3);
    BOOST_TEST(policy.numCached() == 2);
    BOOST_TEST(policy.numFree() == 1);
    BOOST_TEST(take(policy) == 3);
    BOOST_TEST(take(policy) == 2);
    BOOST_TEST(take(policy) == 0);
    policy.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(aBlockUsedAgainBecomesTheMostRecent)
{
    LruEvictionPolicy policy{3};
    for (BlockId block = 0; block < 3; ++block)
    {
        policy.claim(block);
        policy.releaseCached(block);
    }
    policy.claim(0);
    policy.releaseCached(0);
    BOOST_TEST((policy.cachedBlocks() == std::vector<BlockId>{1, 2, 0}));
}

BOOST_AUTO_TEST_CASE(demoteFreesInPlaceOfHandingOut)
{
    LruEvictionPolicy policy{2};
    policy.claim(1);
    policy.releaseCached(1);
    policy.demote(1);
    BOOST_TEST((policy.state(1) == State::kFree));
    BOOST_TEST(policy.numFree() == 2);
    BOOST_TEST(policy.nextCached() == kNoBlock);
    policy.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(movesFromAWrongStateThrowAndChangeNothing)
{
    LruEvictionPolicy policy{2};
    BOOST_CHECK_THROW(policy.releaseFree(0), InternalStateError);
    BOOST_CHECK_THROW(policy.releaseCached(0), InternalStateError);
    BOOST_CHECK_THROW(policy.demote(0), InternalStateError);
    policy.claim(0);
    BOOST_CHECK_THROW(policy.claim(0), InternalStateError);
    BOOST_TEST(policy.numFree() == 1);
    policy.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(randomMovesMatchTwoDeques)
{
    std::mt19937 random{20260101};
    constexpr BlockId kBlocks = 13;
    LruEvictionPolicy policy{kBlocks};
    std::deque<BlockId> free;
    std::deque<BlockId> cached;
    for (BlockId block = 0; block < kBlocks; ++block)
    {
        free.push_back(block);
    }
    for (int step = 0; step < 20000; ++step)
    {
        auto const expected = !free.empty() ? free.front() : !cached.empty() ? cached.front() : kNoBlock;
        BOOST_REQUIRE(policy.next() == expected);
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
        auto const blocks = policy.cachedBlocks();
        BOOST_REQUIRE(std::equal(blocks.begin(), blocks.end(), cached.begin(), cached.end()));
    }
}
