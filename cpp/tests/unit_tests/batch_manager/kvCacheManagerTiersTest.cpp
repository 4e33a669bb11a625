// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerTiersTest.cpp
//! Priorities, and the host pool.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "managerHelpers.h"

#include <boost/test/unit_test.hpp>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

std::int64_t runWith(KVCacheManager& manager, Prompt const& prompt, RetentionConfig const& retention)
{
    SequenceRequest request{1000, prompt.tokens, prompt.media.view(), &prompt.scope, 1};
    request.retention = &retention;
    auto const got = manager.addSequence(request);
    BOOST_REQUIRE(got.has_value());
    manager.commit(1000, static_cast<std::int64_t>(prompt.tokens.size()));
    manager.freeSequence(1000);
    return got->cachedTokens;
}

RetentionConfig all(std::int32_t priority, std::optional<std::int64_t> durationMs = std::nullopt)
{
    return {{{0, std::nullopt, {priority, durationMs}}}, {}};
}

KvCacheManagerConfig withHost(BlockId device, BlockId host)
{
    KvCacheManagerConfig config;
    config.numBlocks = device;
    config.tokensPerBlock = 2;
    config.hostBlocks = host;
    return config;
}

//! Runs and tells done all copies.
std::vector<CopyEntry> settle(KVCacheManager& manager)
{
    auto const plan = manager.takeCopyPlan();
    if (plan.ticket != 0)
    {
        manager.copiesDone(plan.ticket);
    }
    return plan.entries;
}

} // namespace

BOOST_AUTO_TEST_SUITE(priorities)

BOOST_AUTO_TEST_CASE(theLowestGoesFirstWhateverItsAge)
{
    KVCacheManager manager{6, 2};
    runWith(manager, text(0, 4), all(80));
    runWith(manager, text(20, 4), all(10));
    run(manager, text(40, 4));
    run(manager, text(60, 4)); // makes room
    BOOST_TEST(probe(manager, text(20, 5)) == 0);
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    BOOST_TEST(probe(manager, text(40, 5)) == 4);
    run(manager, text(80, 4));
    BOOST_TEST(probe(manager, text(40, 5)) == 0);
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
}

BOOST_AUTO_TEST_CASE(whatFellBackIsOrdinaryAlsoAfterItIsUsedAgain)
{
    KVCacheManager manager{4, 2};
    runWith(manager, text(0, 2), all(80, 10));
    manager.refresh(100);
    BOOST_TEST(run(manager, text(0, 3)) == 2);
    run(manager, text(20, 2));
    run(manager, text(40, 2));
    run(manager, text(60, 2));
    BOOST_TEST(probe(manager, text(0, 3)) == 2);
    run(manager, text(80, 2)); // makes room: the least recent goes, whatever it was once worth
    BOOST_TEST(probe(manager, text(0, 3)) == 0);
    BOOST_TEST(probe(manager, text(20, 3)) == 2);
}

BOOST_AUTO_TEST_CASE(aParentStaysAsLongAsAChildOfHigherPriority)
{
    KVCacheManager manager{4, 2};
    runWith(manager, text(0, 4), {{{0, 2, {0, std::nullopt}}, {2, std::nullopt, {90, std::nullopt}}}, {}});
    run(manager, text(20, 4));
    run(manager, text(40, 4));
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    BOOST_TEST(probe(manager, text(20, 5)) == 0);
}

BOOST_AUTO_TEST_CASE(aParentFallsToItsOwnPriorityWhenItsLastChildIsGone)
{
    KVCacheManager manager{2, 2};
    runWith(manager, text(0, 4), {{{0, 2, {0, std::nullopt}}, {2, std::nullopt, {90, std::nullopt}}}, {}});
    add(manager, 1, text(50, 2)); // the child is the only leaf
    BOOST_TEST(probe(manager, text(0, 5)) == 2);
    manager.commit(1, 2);
    manager.freeSequence(1);
    run(manager, text(60, 2)); // takes the former parent, of priority 0, not the block of default priority
    BOOST_TEST(probe(manager, text(50, 3)) == 2);
    BOOST_TEST(probe(manager, text(0, 5)) == 0);
}

BOOST_AUTO_TEST_CASE(aDurationEndsWhileTheBlockLiesUnused)
{
    KVCacheManager manager{4, 2};
    manager.refresh(1000);
    runWith(manager, text(0, 4), all(80, 100));
    run(manager, text(20, 4));
    manager.refresh(1099);
    run(manager, text(40, 2)); // takes from the default level
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    BOOST_TEST(probe(manager, text(20, 5)) == 2);
    manager.refresh(1100); // as recent as anything on the default level
    run(manager, text(60, 4));
    BOOST_TEST(probe(manager, text(20, 5)) == 0);
    run(manager, text(80, 2));
    BOOST_TEST(probe(manager, text(0, 5)) == 2);
}

BOOST_AUTO_TEST_CASE(reuseStartsTheDurationAnew)
{
    KVCacheManager manager{4, 2};
    runWith(manager, text(0, 4), all(80, 100));
    manager.refresh(90);
    BOOST_TEST(run(manager, text(0, 5)) == 4);
    manager.refresh(150);
    run(manager, text(20, 4));
    run(manager, text(40, 4));
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
}

BOOST_AUTO_TEST_CASE(aLowPriorityThatEndsRisesToTheDefault)
{
    KVCacheManager manager{4, 2};
    runWith(manager, text(0, 4), all(5, 10));
    run(manager, text(20, 4));
    manager.refresh(10);
    manager.checkIntegrity();
    run(manager, text(40, 4));
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    BOOST_TEST(probe(manager, text(20, 5)) == 0);
}

BOOST_AUTO_TEST_CASE(malformedRetentionChangesNothing)
{
    KVCacheManager manager{4, 2};
    auto const bad = all(101);
    auto const prompt = text(0, 4);
    SequenceRequest request{1, prompt.tokens, {}, &prompt.scope, 1};
    request.retention = &bad;
    BOOST_CHECK_EXCEPTION(manager.addSequence(request), InvalidArgumentError, says({"range 0", "101", "100"}));
    BOOST_TEST(manager.stats().freeNumBlocks == 4);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(hostPool)

BOOST_AUTO_TEST_CASE(whatIsGivenUpOnTheDeviceIsFoundOnTheHostAndComesBack)
{
    KVCacheManager manager{withHost(4, 8)};
    add(manager, 1, text(0, 4));
    manager.commit(1, 4);
    auto const table = manager.blockIds(1);
    manager.freeSequence(1);
    add(manager, 2, text(20, 6));
    auto const out = settle(manager); // three wanted, two empty: one goes out, the deepest of the idle chain
    BOOST_REQUIRE(out.size() == 1u);
    BOOST_TEST((out[0].kind == CopyKind::kOffload));
    BOOST_TEST(out[0].source == table[1]);
    BOOST_TEST(out[0].numTokens == 2);
    manager.freeSequence(2, false);
    BOOST_TEST(manager.stats().hostCachedNumBlocks == 1);
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    auto const got = add(manager, 3, text(0, 5));
    BOOST_TEST(got->cachedTokens == 4);
    auto const plan = manager.takeCopyPlan();
    BOOST_TEST(plan.ticket == got->ticket);
    BOOST_REQUIRE(plan.entries.size() == 1u);
    BOOST_TEST((plan.entries[0].kind == CopyKind::kOnboard));
    BOOST_TEST(plan.entries[0].source == out[0].destination);
    BOOST_TEST(plan.entries[0].destination == manager.blockIds(3)[1]);
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 7); // the source is not handed out before it was read
    manager.copiesDone(plan.ticket);
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 8);
    BOOST_TEST(manager.stats().onboardedBlocks == 1);
    BOOST_TEST(manager.stats().offloadedBlocks == 1);
}

BOOST_AUTO_TEST_CASE(blocksBelowTheOffloadPriorityAreDropped)
{
    for (auto const priority : {34, 35, 36})
    {
        KVCacheManager manager{withHost(2, 4)};
        runWith(manager, text(0, 4), all(priority));
        run(manager, text(20, 4));
        settle(manager);
        BOOST_TEST(probe(manager, text(0, 5)) == (priority >= 35 ? 4 : 0));
    }
}

BOOST_AUTO_TEST_CASE(aFullHostPoolDropsItsOldestLeaf)
{
    KVCacheManager manager{withHost(2, 2)};
    run(manager, text(0, 4));
    run(manager, text(20, 4));
    settle(manager);
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    run(manager, text(40, 2));
    settle(manager);
    BOOST_TEST(probe(manager, text(0, 5)) == 2);
    BOOST_TEST(probe(manager, text(20, 5)) == 4);
}

BOOST_AUTO_TEST_CASE(withTheHostPoolInFlightBlocksAreDroppedInstead)
{
    KVCacheManager manager{withHost(2, 1)};
    run(manager, text(0, 4));
    run(manager, text(20, 4)); // one offloaded, one dropped: the only host block is being written
    BOOST_TEST(manager.stats().offloadedBlocks == 1);
    BOOST_TEST(manager.stats().evictedBlocks == 2); // the dropped one takes along what hung below it
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 0);
    settle(manager);
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 1);
    BOOST_TEST(probe(manager, text(0, 5)) == 0);
    BOOST_TEST(probe(manager, text(20, 5)) == 4);
}

BOOST_AUTO_TEST_CASE(anEqualBlockOnTheHostTakesTheFreshOneOnTheDevice)
{
    KVCacheManager manager{withHost(4, 4)};
    add(manager, 1, text(0, 4)); // nothing findable yet, so it computes both
    run(manager, text(0, 2));
    add(manager, 2, text(20, 4));
    settle(manager); // the findable one went to the host
    BOOST_TEST(manager.stats().hostCachedNumBlocks == 1);
    BOOST_TEST(manager.commit(1, 4));
    BOOST_TEST(manager.stats().hostCachedNumBlocks == 0);
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 4);
    BOOST_TEST(settle(manager).empty());
    manager.freeSequence(1);
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
}

BOOST_AUTO_TEST_CASE(resetEmptiesBothTiers)
{
    KVCacheManager manager{withHost(2, 4)};
    run(manager, text(0, 4));
    run(manager, text(20, 4));
    settle(manager);
    BOOST_TEST(manager.resetReuseState() == 4);
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 4);
    run(manager, text(0, 4));
    run(manager, text(20, 4));
    BOOST_TEST(manager.resetReuseState() == 0); // all are in copies, or wait for them
    settle(manager);
    BOOST_TEST(manager.stats().freeNumBlocks == 2);
    BOOST_TEST(manager.stats().hostFreeNumBlocks == 4);
    BOOST_TEST(manager.stats().cachedNumBlocks == 0);
    BOOST_TEST(probe(manager, text(0, 5)) == 0);
}

BOOST_AUTO_TEST_CASE(malformedSizesAreRefused)
{
    auto config = withHost(2, -1);
    BOOST_CHECK_EXCEPTION((KVCacheManager{config}), InvalidArgumentError, says({"host_blocks", "-1", "0"}));
    config.hostBlocks = 1;
    config.secondaryOffloadMinPriority = 101;
    BOOST_CHECK_EXCEPTION((KVCacheManager{config}), InvalidArgumentError, says({"offload", "101", "100"}));
}

BOOST_AUTO_TEST_CASE(aBlockThatIsStillReadIsNotGivenBackByARewind)
{
    KVCacheManager manager{withHost(2, 1)};
    run(manager, text(0, 2));
    BOOST_REQUIRE(add(manager, 1, text(50, 2), 3).has_value());
    manager.commit(1, 2);
    manager.appendTokens(1, range(60, 1)); // where the cached block lay, which is on its way to the host
    BOOST_REQUIRE(manager.stats().pendingCopies == 1);
    manager.rewind(1, 2);
    BOOST_TEST(manager.blockIds(1).size() == 2u);
    settle(manager);
    manager.appendTokens(1, range(60, 1));
    manager.rewind(1, 2);
    BOOST_TEST(manager.blockIds(1).size() == 1u);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(anEqualBlockOnItsWayToTheHostIsNotTakenInPlaceOfTheOwn)
{
    KVCacheManager manager{withHost(3, 1)};
    add(manager, 1, text(0, 2));
    add(manager, 2, text(0, 2)); // computes the same, since nothing is committed yet
    manager.commit(1, 2);
    manager.freeSequence(1);
    add(manager, 3, text(50, 4));
    BOOST_REQUIRE(manager.stats().pendingCopies == 1);
    auto const before = manager.blockIds(2);
    BOOST_TEST(!manager.commit(2, 2));
    BOOST_TEST(manager.blockIds(2) == before);
    settle(manager);
    manager.freeSequence(2);
    manager.freeSequence(3);
    manager.checkIntegrity();
    BOOST_TEST(probe(manager, text(0, 3)) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
