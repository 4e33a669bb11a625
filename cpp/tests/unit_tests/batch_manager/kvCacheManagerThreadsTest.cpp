// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerThreadsTest.cpp
//! The thread rules, for TSan to hold: managers share nothing, and one manager may be used by many threads that bring
//! their own lock.

#include "fuzzDriver.h"
#include "randomSource.h"

#include <boost/test/unit_test.hpp>

#include <mutex>
#include <thread>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

KvCacheManagerConfig config()
{
    KvCacheManagerConfig result;
    result.numBlocks = 14;
    result.tokensPerBlock = 4;
    result.hostBlocks = 5;
    result.enablePartialReuse = true;
    result.eventBufferMaxSize = 100000;
    return result;
}

} // namespace

BOOST_AUTO_TEST_CASE(managersShareNothing)
{
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 3; ++seed)
    {
        threads.emplace_back(
            [seed]
            {
                RandomSource source{seed};
                FuzzDriver driver{config()};
                for (int step = 0; step < 300; ++step)
                {
                    driver.step(source);
                }
                driver.finish();
            });
    }
    for (auto& thread : threads)
    {
        thread.join();
    }
}

BOOST_AUTO_TEST_CASE(oneManagerUnderOneLock)
{
    FuzzDriver driver{config()};
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 3; ++seed)
    {
        threads.emplace_back(
            [seed, &driver, &mutex]
            {
                RandomSource source{seed};
                for (int step = 0; step < 200; ++step)
                {
                    std::lock_guard<std::mutex> const lock{mutex};
                    driver.step(source);
                }
            });
    }
    for (auto& thread : threads)
    {
        thread.join();
    }
    driver.finish();
}
