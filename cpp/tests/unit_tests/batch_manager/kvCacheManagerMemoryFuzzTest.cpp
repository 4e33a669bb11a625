// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerMemoryFuzzTest.cpp
//! Every operation in random order on a manager whose pools really hold something.
//!
//! The "KV" of a token is a number made from everything before it: scope, tokens, items and rows. An engine of a few
//! lines writes it where the block tables say and runs the copy plans, late but in order. If any two sequences ever
//! share what they must not, or a copy comes too late, from the wrong place or to a block that has a new owner, a
//! number is wrong. The numbers know nothing of blocks, hashes or trees.
//!
//! TRTLLM_FUZZ_STEPS sets the length of the run, TRTLLM_FUZZ_SEED where it begins.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "fuzzDriver.h"
#include "operationCounts.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <exception>
#include <utility>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

void drive(FuzzDriver& driver, unsigned seed, int steps)
{
    RandomSource source{seed};
    for (int step = 0; step < steps; ++step)
    {
        try
        {
            driver.step(source);
        }
        catch (std::exception const& error)
        {
            BOOST_FAIL("step " << step << ": " << error.what());
        }
    }
    driver.finish();
}

OperationCounts fuzz(KvCacheManagerConfig const& config, unsigned seed, int steps)
{
    BOOST_TEST_CONTEXT("seed " << seed << ", " << config.numBlocks << " blocks of " << config.tokensPerBlock
                               << " tokens, " << config.hostBlocks << " on the host")
    {
        FuzzDriver driver{config};
        drive(driver, seed, steps);
        auto const stats = driver.manager().stats();
        BOOST_TEST(driver.numCachedTokens() > 0);
        BOOST_TEST(stats.evictedBlocks > 0);
        BOOST_TEST((stats.partialReusedBlocks > 0) == config.enablePartialReuse);
        BOOST_TEST((stats.onboardedBlocks > 0) == (config.hostBlocks > 0));
        BOOST_TEST(stats.usedNumBlocks == 0);
        return driver.counts();
    }
    return {};
}

} // namespace

BOOST_AUTO_TEST_CASE(memoryHoldsWhatTheTablesSay)
{
    auto const firstSeed = static_cast<unsigned>(fromEnvironment("TRTLLM_FUZZ_SEED", 1));
    auto seed = firstSeed;
    OperationCounts counts;
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
                counts.add(fuzz(config, seed++, numFuzzSteps(12000)));
            }
        }
    }
    BOOST_TEST_MESSAGE(counts.text() << ", under " << seed - firstSeed << " settings");
}
