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

//! What happened in the window pools, over all settings of a test.
struct WindowCounts
{
    std::int64_t released{0};
    std::int64_t evicted{0};
    std::int64_t reads{0};
    std::int64_t copies{0};
    std::int64_t tooLarge{0};
    std::int64_t extended{0};
    std::int64_t onboarded{0};
    std::int64_t evictedPrimary{0};
};

void count(FuzzDriver const& driver, KvCacheManagerConfig const& config, WindowCounts& counts)
{
    auto const pools = driver.manager().stats().windowPools;
    for (std::size_t pool = 0; pool < pools.size(); ++pool)
    {
        BOOST_TEST((pools[pool].evictedBlocks == 0 || config.windowPools[pool].numBlocks < config.numBlocks));
        counts.released += pools[pool].releasedBlocks;
        counts.evicted += pools[pool].evictedBlocks;
    }
    counts.reads += driver.numWindowReads();
    counts.copies += driver.numWindowCopies();
    counts.tooLarge += driver.numTooLarge();
    counts.extended += driver.numExtended();
    counts.onboarded += driver.manager().stats().onboardedBlocks;
    counts.evictedPrimary += driver.manager().stats().evictedBlocks;
}

OperationCounts fuzz(KvCacheManagerConfig const& config, unsigned seed, int steps, WindowCounts* counts = nullptr)
{
    BOOST_TEST_CONTEXT("seed " << seed << ", " << config.numBlocks << " blocks of " << config.tokensPerBlock
                               << " tokens, " << config.hostBlocks << " on the host, " << config.windowPools.size()
                               << " window pools, " << config.maxStepTokens << " tokens a step")
    {
        FuzzDriver driver{config};
        drive(driver, seed, steps);
        auto const stats = driver.manager().stats();
        BOOST_TEST(driver.numCachedTokens() > 0);
        // With tight window pools few sequences live at a time, and a setting may see little of the rest.
        BOOST_TEST((stats.evictedBlocks > 0 || counts != nullptr));
        BOOST_TEST((stats.partialReusedBlocks > 0) == config.enablePartialReuse);
        BOOST_TEST((driver.numExtended() > 0 || counts != nullptr));
        BOOST_TEST((driver.numSharedTails() > 0)
                   == (config.enablePartialReuse && config.copyOnPartialReuse && config.windowPools.empty()));
        BOOST_TEST(((stats.onboardedBlocks > 0) == (config.hostBlocks > 0) || counts != nullptr));
        BOOST_TEST(stats.usedNumBlocks == 0);
        if (counts != nullptr)
        {
            count(driver, config, *counts);
        }
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

BOOST_AUTO_TEST_CASE(windowsHoldWhatTheNextTokenReads)
{
    auto const firstSeed = static_cast<unsigned>(fromEnvironment("TRTLLM_FUZZ_SEED", 100));
    auto seed = firstSeed;
    OperationCounts operations;
    WindowCounts counts;
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
                operations.add(fuzz(config, seed++, numFuzzSteps(2000), &counts));
            }
        }
    }
    BOOST_TEST(counts.released > 0);
    BOOST_TEST(counts.evicted > 0);
    BOOST_TEST(counts.evictedPrimary > 0);
    BOOST_TEST(counts.copies > 0);
    BOOST_TEST(counts.onboarded > 0);
    BOOST_TEST(counts.tooLarge > 0);
    BOOST_TEST(counts.extended > 0);
    BOOST_TEST_MESSAGE(operations.text() << ", under " << seed - firstSeed << " settings with window pools: "
                                         << counts.released << " slots out of a window, " << counts.evicted
                                         << " evicted, " << counts.reads << " values read, " << counts.copies
                                         << " copies, " << counts.tooLarge << " requests too large");
}
