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
#include "randomSource.h"
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

//! Steps after which everything that may happen under a setting has.
constexpr int kManySteps = 4000;

//! What happened, over all settings of a test.
struct Pressure
{
    OperationCounts operations;
    std::int64_t evicted{0};
    std::int64_t onboarded{0};
    std::int64_t partialReused{0};
    std::int64_t extended{0};
    std::int64_t sharedTails{0};
    std::int64_t windowsReleased{0};
    std::int64_t windowsEvicted{0};
    std::int64_t windowReads{0};
    std::int64_t windowCopies{0};
    std::int64_t tooLarge{0};
};

void count(FuzzDriver const& driver, KvCacheManagerConfig const& config, Pressure& pressure)
{
    auto const stats = driver.manager().stats();
    for (std::size_t pool = 0; pool < stats.windowPools.size(); ++pool)
    {
        auto const& window = stats.windowPools[pool];
        BOOST_TEST((window.evictedBlocks == 0 || config.windowPools[pool].numBlocks < config.numBlocks));
        pressure.windowsReleased += window.releasedBlocks;
        pressure.windowsEvicted += window.evictedBlocks;
    }
    pressure.operations.add(driver.counts());
    pressure.evicted += stats.evictedBlocks;
    pressure.onboarded += stats.onboardedBlocks;
    pressure.partialReused += stats.partialReusedBlocks;
    pressure.extended += driver.numExtended();
    pressure.sharedTails += driver.numSharedTails();
    pressure.windowReads += driver.numWindowReads();
    pressure.windowCopies += driver.numWindowCopies();
    pressure.tooLarge += driver.numTooLarge();
}

void fuzz(KvCacheManagerConfig const& config, unsigned seed, int steps, Pressure& pressure)
{
    BOOST_TEST_CONTEXT("seed " << seed << ", " << config.numBlocks << " blocks of " << config.tokensPerBlock
                               << " tokens, " << config.hostBlocks << " on the host, " << config.windowPools.size()
                               << " window pools, " << config.maxStepTokens << " tokens a step")
    {
        FuzzDriver driver{config};
        drive(driver, seed, steps);
        auto const stats = driver.manager().stats();
        BOOST_TEST(driver.numCachedTokens() > 0);
        auto const mayShareTails = config.enablePartialReuse && config.copyOnPartialReuse && config.windowPools.empty();
        BOOST_TEST((stats.partialReusedBlocks > 0) <= config.enablePartialReuse);
        BOOST_TEST((driver.numSharedTails() > 0) <= mayShareTails);
        BOOST_TEST((stats.onboardedBlocks > 0) <= (config.hostBlocks > 0));
        // With tight window pools few sequences live at a time, and a setting may see little of the rest; so it is with
        // the short runs under sanitizers.
        if (config.windowPools.empty() && steps >= kManySteps)
        {
            BOOST_TEST(stats.evictedBlocks > 0);
            BOOST_TEST(driver.numExtended() > 0);
            BOOST_TEST((stats.partialReusedBlocks > 0) == config.enablePartialReuse);
            BOOST_TEST((driver.numSharedTails() > 0) == mayShareTails);
            BOOST_TEST((stats.onboardedBlocks > 0) == (config.hostBlocks > 0));
        }
        BOOST_TEST(stats.usedNumBlocks == 0);
        count(driver, config, pressure);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(memoryHoldsWhatTheTablesSay)
{
    auto const firstSeed = static_cast<unsigned>(fromEnvironment("TRTLLM_FUZZ_SEED", 1));
    auto seed = firstSeed;
    Pressure pressure;
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
                fuzz(config, seed++, numFuzzSteps(12000), pressure);
            }
        }
    }
    BOOST_TEST(pressure.evicted > 0);
    BOOST_TEST(pressure.onboarded > 0);
    BOOST_TEST(pressure.partialReused > 0);
    BOOST_TEST(pressure.extended > 0);
    BOOST_TEST(pressure.sharedTails > 0);
    BOOST_TEST_MESSAGE(pressure.operations.text() << ", under " << seed - firstSeed << " settings");
}

BOOST_AUTO_TEST_CASE(windowsHoldWhatTheNextTokenReads)
{
    auto const firstSeed = static_cast<unsigned>(fromEnvironment("TRTLLM_FUZZ_SEED", 100));
    auto seed = firstSeed;
    Pressure pressure;
    // Tight pools, one far larger than all that could be in it, and two of different size; in steps and at once.
    std::vector<std::pair<std::vector<WindowPoolConfig>, std::int64_t>> const settings{
        {{{2, 5}}, 2}, {{{5, 7}}, 3}, {{{8, 6}}, 0}, {{{6, 90}}, 5}, {{{3, 8}, {9, 11}}, 4}};
    for (auto const& [pools, maxStepTokens] : settings)
    {
        for (BlockId const host : {0, 8})
        {
            for (auto const& [partial, copy] : {std::pair{false, false}, std::pair{true, true}, std::pair{true, false}})
            {
                KvCacheManagerConfig config;
                config.numBlocks = 20;
                config.tokensPerBlock = 4;
                config.hash = seed % 3 == 0 ? &crowdedHash : &xxh3Hash;
                config.eventBufferMaxSize = 100000;
                config.hostBlocks = host;
                config.enablePartialReuse = partial;
                config.copyOnPartialReuse = copy;
                config.secondaryOffloadMinPriority = seed % 2 == 0 ? 0 : kDefaultPriority;
                config.windowPools = pools;
                config.maxStepTokens = maxStepTokens;
                fuzz(config, seed++, numFuzzSteps(2000), pressure);
            }
        }
    }
    BOOST_TEST(pressure.windowsReleased > 0);
    BOOST_TEST(pressure.windowsEvicted > 0);
    BOOST_TEST(pressure.windowReads > 0);
    BOOST_TEST(pressure.windowCopies > 0);
    BOOST_TEST(pressure.tooLarge > 0);
    BOOST_TEST(pressure.evicted > 0);
    BOOST_TEST(pressure.onboarded > 0);
    BOOST_TEST(pressure.extended > 0);
    BOOST_TEST_MESSAGE(pressure.operations.text()
                       << ", under " << seed - firstSeed << " settings with window pools: " << pressure.windowsReleased
                       << " slots out of a window, " << pressure.windowsEvicted << " evicted, " << pressure.windowReads
                       << " values read, " << pressure.windowCopies << " copies, " << pressure.tooLarge
                       << " requests too large");
}
