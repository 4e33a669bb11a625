// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/idleClock.h"

#include "managerHelpers.h"

#include <boost/test/unit_test.hpp>

#include <numeric>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

BOOST_AUTO_TEST_CASE(aBlockAgesFromWhenItIsLetGo)
{
    IdleClock clock{3};
    clock.start(0);
    BOOST_TEST(clock.isIdle(0));
    BOOST_TEST(clock.idleMs(0) == 0);
    clock.advance(70'000);
    clock.start(1);
    clock.advance(71'000);
    clock.start(1); // goes on
    clock.advance(60'000);
    BOOST_TEST(clock.idleMs(1) == 1000);
    clock.stop(1);
    BOOST_TEST(!clock.isIdle(1));
    BOOST_TEST(clock.idleMs(1) == 0);
    BOOST_TEST(clock.idleMs(2) == 0);
}

BOOST_AUTO_TEST_CASE(anAgeOutlivesTheCounter)
{
    IdleClock clock{1};
    clock.advance(std::int64_t{0xFFFFFFF0} * 10);
    clock.start(0);
    clock.advance(std::int64_t{0x100000010} * 10);
    BOOST_TEST(clock.idleMs(0) == 0x20 * 10);
}

BOOST_AUTO_TEST_CASE(durationsAreCountedUpToAndWithTheirBound)
{
    DurationCounts counts;
    for (auto const duration : {0, 1000, 1001, 5000, 90'000'000})
    {
        counts.add(duration);
    }
    BOOST_TEST(counts.counts[0] == 2);
    BOOST_TEST(counts.counts[1] == 2);
    BOOST_TEST(counts.counts.back() == 1);
    BOOST_TEST(counts.sumMs == 90'007'001);
}

namespace
{

std::int64_t total(DurationCounts const& counts)
{
    return std::accumulate(counts.counts.begin(), counts.counts.end(), std::int64_t{0});
}

} // namespace

BOOST_AUTO_TEST_CASE(theManagerTellsAgesGapsAndCauses)
{
    KVCacheManager manager{4, 2};
    manager.refresh(1'000'000);
    run(manager, text(0, 4)); // two blocks
    manager.refresh(1'003'000);
    BOOST_TEST(run(manager, text(0, 4)) == 2); // the first is found after 3 s
    BOOST_TEST(manager.stats().reusedIdle.counts[1] == 1);
    BOOST_TEST(manager.stats().reusedIdle.sumMs == 3000);
    manager.refresh(1'013'000);
    run(manager, text(50, 8)); // takes all four, two of them cached for 10 s
    auto const stats = manager.stats();
    BOOST_TEST(stats.evictedOnDevice == 2);
    BOOST_TEST(stats.evictedBlocks == 2);
    BOOST_TEST(stats.evictedIdle.counts[2] == 2);
    BOOST_TEST(stats.evictedIdle.sumMs == 20'000);
    manager.refresh(1'053'000);
    auto const lost = manager.explain(text(0, 4).tokens, {}, {});
    BOOST_TEST((lost.stop == MatchStop::kEvicted));
    BOOST_TEST(lost.evictedMs.value() == 40'000);
    BOOST_TEST(!manager.explain(text(50, 8).tokens, {}, {}).evictedMs.has_value());
    BOOST_TEST(manager.resetReuseState() == 4);
    BOOST_TEST(manager.stats().flushedBlocks == 4);
    BOOST_TEST(total(manager.stats().evictedIdle) == 2);
}

BOOST_AUTO_TEST_CASE(blocksOnTheHostAreCountedByCause)
{
    KvCacheManagerConfig config;
    config.numBlocks = 2;
    config.tokensPerBlock = 2;
    config.hostBlocks = 2;
    KVCacheManager manager{config};
    auto const write = [&](TokenId first)
    {
        run(manager, text(first, 4));
        if (auto const plan = manager.takeCopyPlan(); plan.ticket != 0)
        {
            manager.copiesDone(plan.ticket);
        }
    };
    manager.refresh(1000);
    write(0);
    manager.refresh(2000);
    write(50); // the first two move to the host, unused for 1 s
    BOOST_TEST(manager.stats().offloadedBlocks == 2);
    BOOST_TEST(manager.stats().evictedBlocks == 0);
    manager.refresh(3000);
    write(90); // those are given up for the next two, unused for 2 s
    auto const stats = manager.stats();
    BOOST_TEST(stats.evictedOnHost == 2);
    BOOST_TEST(stats.evictedOnDevice == 0);
    BOOST_TEST(stats.evictedBlocks == stats.evictedOnHost + stats.evictedWithParent);
    BOOST_TEST(stats.evictedIdle.sumMs == 2 * 2000);
}
