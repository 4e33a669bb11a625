// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerMemoryFuzzTest.cpp
//! Every operation in random order on a manager whose pools really hold something.
//!
//! The "KV" of a token is a number made from everything before it: scope, tokens, items and rows. An engine of a few
//! lines writes it where the block tables say and runs the copy plans, late but in order. If any two sequences ever
//! share what they must not, or a copy comes too late, from the wrong place or to a block that has a new owner, a
//! number is wrong. The numbers know nothing of blocks, hashes or trees.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "fuzzDriver.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <cstdlib>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

//! Steps for each setting: TRTLLM_FUZZ_STEPS, or what takes seconds.
int numSteps()
{
    auto const* const wanted = std::getenv("TRTLLM_FUZZ_STEPS");
    return wanted == nullptr ? 2000 : std::atoi(wanted);
}

//! \return how often the tail of a live sequence was shared.
std::int64_t fuzz(KvCacheManagerConfig const& config, unsigned seed, int steps)
{
    std::int64_t numSharedTails = 0;
    BOOST_TEST_CONTEXT("seed " << seed << ", " << config.numBlocks << " blocks of " << config.tokensPerBlock
                               << " tokens, " << config.hostBlocks << " on the host")
    {
        RandomSource source{seed};
        FuzzDriver driver{config};
        for (int step = 0; step < steps; ++step)
        {
            driver.step(source);
        }
        driver.finish();
        auto const stats = driver.manager().stats();
        BOOST_TEST(driver.numCachedTokens() > 0);
        BOOST_TEST(stats.evictedBlocks > 0);
        BOOST_TEST((stats.partialReusedBlocks > 0) == config.enablePartialReuse);
        BOOST_TEST((stats.onboardedBlocks > 0) == (config.hostBlocks > 0));
        BOOST_TEST(driver.numExtended() > 0);
        BOOST_TEST(stats.usedNumBlocks == 0);
        numSharedTails = driver.numSharedTails();
    }
    return numSharedTails;
}

} // namespace

BOOST_AUTO_TEST_CASE(memoryHoldsWhatTheTablesSay)
{
    unsigned seed = 1;
    std::int64_t numOperations = 0;
    std::int64_t numSharedTails = 0;
    std::int64_t numSharedWithoutCopies = 0;
    for (auto const hash : {&xxh3Hash, &crowdedHash, &constantHash})
    {
        for (BlockId const host : {0, 4, 20})
        {
            for (auto const& [partial, copy] : {std::pair{false, false}, std::pair{true, true}, std::pair{true, false}})
            {
                KvCacheManagerConfig config;
                config.numBlocks = 14;
                config.tokensPerBlock = 4;
                config.hash = hash;
                config.eventBufferMaxSize = 100000;
                config.hostBlocks = host;
                config.enablePartialReuse = partial;
                config.copyOnPartialReuse = copy;
                config.secondaryOffloadMinPriority = seed % 2 == 0 ? 0 : kDefaultPriority;
                auto& numShared = partial && copy ? numSharedTails : numSharedWithoutCopies;
                numShared += fuzz(config, seed++, numSteps());
                numOperations += numSteps();
            }
        }
    }
    BOOST_TEST(numSharedTails > 10);
    BOOST_TEST(numSharedWithoutCopies == 0);
    BOOST_TEST_MESSAGE(numOperations << " operations under " << seed - 1 << " settings");
}
