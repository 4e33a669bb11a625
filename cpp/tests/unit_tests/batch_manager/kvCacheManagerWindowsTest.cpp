// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerWindowsTest.cpp
//! Pools of layers whose tokens see only a window: what a sequence holds of them, what a match needs of them.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "managerHelpers.h"
#include "windowHelpers.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

//! Commits up to \p end in steps, from \p begin on.
void write(KVCacheManager& manager, SequenceId id, std::int64_t begin, std::int64_t end, std::int64_t step)
{
    while (begin < end)
    {
        begin = std::min(begin + step, end);
        manager.commit(id, begin);
        manager.checkIntegrity();
    }
}

//! Runs a prompt to its end in steps. \return its cached tokens.
std::int64_t runInSteps(KVCacheManager& manager, Prompt const& prompt, std::int64_t step)
{
    constexpr SequenceId kId = 1000;
    auto const got = add(manager, kId, prompt);
    BOOST_REQUIRE(got.has_value());
    write(manager, kId, got->cachedTokens, static_cast<std::int64_t>(prompt.tokens.size()), step);
    manager.freeSequence(kId);
    return got->cachedTokens;
}

MatchExplanation explain(KVCacheManager& manager, Prompt const& prompt)
{
    return manager.explain(prompt.tokens, prompt.media.view(), prompt.scope);
}

void settle(KVCacheManager& manager)
{
    if (auto const plan = manager.takeCopyPlan(); plan.ticket != 0)
    {
        manager.copiesDone(plan.ticket);
    }
}

std::vector<bool> hasSlot(std::vector<BlockId> const& table)
{
    std::vector<bool> result;
    std::transform(table.begin(), table.end(), std::back_inserter(result), [](BlockId slot) { return slot >= 0; });
    return result;
}

} // namespace

BOOST_AUTO_TEST_SUITE(holding)

BOOST_AUTO_TEST_CASE(aBlockIsReleasedWhenTheLastTokenThatSeesItIsWrittenAndNotBefore)
{
    constexpr std::int64_t kLength = 23;
    for (std::int64_t window = 2; window <= 11; ++window)
    {
        for (std::int64_t step = 1; step <= 6; ++step)
        {
            KVCacheManager manager{config({{window, 20}}, step)};
            add(manager, 1, text(0, kLength));
            for (std::int64_t written = 0; written <= kLength; ++written)
            {
                if (written > 0)
                {
                    manager.commit(1, written);
                }
                std::vector<bool> expected;
                for (std::int64_t block = 0; block < (kLength + kSize - 1) / kSize; ++block)
                {
                    bool needed = false;
                    for (auto token = block * kSize; token < (block + 1) * kSize; ++token)
                    {
                        // Some token to come sees it, or the next step may write it.
                        auto const seen = token < written && token >= written - window + 1;
                        auto const next = token >= written && token < std::min(written + step, kLength);
                        needed = needed || seen || next;
                    }
                    expected.push_back(needed);
                }
                BOOST_TEST_CONTEXT("window " << window << ", step " << step << ", written " << written)
                {
                    BOOST_TEST(hasSlot(manager.blockIds(1, 1)) == expected, boost::test_tools::per_element());
                }
            }
            auto const stats = poolOf(manager);
            BOOST_TEST(stats.releasedBlocks == std::max<std::int64_t>((kLength - window + 1) / kSize, 0));
            BOOST_TEST(stats.maxNumBlocks - stats.freeNumBlocks <= stats.promisedNumBlocks);
        }
    }
}

BOOST_AUTO_TEST_CASE(aPoolFarSmallerThanThePromptServesItInSteps)
{
    // 7 tokens before the next one and 16 to write: 23 in a row touch 7 blocks at most.
    KVCacheManager manager{config({{8, 7}}, 16, 256)};
    auto const prompt = text(0, 400);
    BOOST_TEST(runInSteps(manager, prompt, 16) == 0);
    BOOST_TEST(poolOf(manager).releasedBlocks == 98);
    BOOST_TEST(poolOf(manager).evictedBlocks == 100 - 7);
    BOOST_TEST(runInSteps(manager, prompt, 16) == 396);
    BOOST_TEST(poolOf(manager).promisedNumBlocks == 0);

    // Another does not fit beside it; it does afterwards.
    add(manager, 1, text(1000, 100));
    BOOST_TEST(!add(manager, 2, text(2000, 100)).has_value());
    BOOST_TEST(manager.numSequences() == 1u);
    manager.checkIntegrity();
    write(manager, 1, 0, 100, 16); // near its end a sequence needs less than in the middle
    BOOST_TEST(poolOf(manager).promisedNumBlocks == 2);
    BOOST_TEST(add(manager, 3, text(3000, 9)).has_value());
    BOOST_TEST(!add(manager, 2, text(2000, 100)).has_value());
    manager.freeSequence(3);
    manager.freeSequence(1);
    BOOST_TEST(add(manager, 2, text(2000, 100)).has_value());
}

BOOST_AUTO_TEST_CASE(aRequestThatAPoolCanNeverHoldIsRefusedWithBothNumbers)
{
    KVCacheManager manager{config({{4, 9}, {8, 6}}, 16, 256)};
    BOOST_CHECK_EXCEPTION(add(manager, 1, text(0, 400)), CapacityExceededError,
        says({"sequence 1 needs 7 blocks", "400 tokens", "pool 2 of window 8", "has 6"}));
    BOOST_TEST(manager.numSequences() == 0u);
    BOOST_TEST(manager.stats().freeNumBlocks == 256);
    BOOST_TEST(add(manager, 1, text(0, 24)).has_value()); // short enough to need no more
    // Without a bound of steps the whole prompt is written at once.
    KVCacheManager atOnce{config({{8, 6}}, 0, 256)};
    BOOST_CHECK_EXCEPTION(add(atOnce, 1, text(0, 25)), CapacityExceededError, says({"needs 7", "pool 1", "has 6"}));
    BOOST_TEST(runInSteps(atOnce, text(0, 24), 24) == 0);
}

BOOST_AUTO_TEST_CASE(generatedTokensMoveTheWindowToo)
{
    KVCacheManager manager{config({{5, 4}}, 1)};
    add(manager, 1, text(0, 5), 30);
    write(manager, 1, 0, 5, 1);
    for (std::int64_t written = 6; written <= 30; ++written)
    {
        manager.appendTokens(1, range(static_cast<TokenId>(written - 1), 1));
        BOOST_TEST(manager.blockIds(1, 1).at(static_cast<std::size_t>((written - 1) / kSize)) != kNoBlock);
        manager.commit(1, written);
    }
    BOOST_TEST(poolOf(manager).releasedBlocks == (30 - 5 + 1) / kSize);
    BOOST_TEST(poolOf(manager).evictedBlocks > 0);
    manager.freeSequence(1);
    BOOST_TEST(probe(manager, text(0, 29)) == 28);
}

BOOST_AUTO_TEST_CASE(rewindGivesBackWhatTheTailTook)
{
    KVCacheManager manager{config({{5, 8}}, 12)};
    add(manager, 1, text(0, 6), 12);
    manager.commit(1, 6);
    auto const before = poolOf(manager).freeNumBlocks;
    manager.appendTokens(1, range(50, 9));
    BOOST_TEST(poolOf(manager).freeNumBlocks == before - 2);
    manager.rewind(1, 7);
    BOOST_TEST(poolOf(manager).freeNumBlocks == before);
    // What the token after the committed ones sees is still there.
    auto const expected = std::vector<bool>{true, true};
    BOOST_TEST(hasSlot(manager.blockIds(1, 1)) == expected, boost::test_tools::per_element());
    manager.appendTokens(1, range(60, 9));
    manager.commit(1, 15);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(wrongCallsChangeNothing)
{
    KVCacheManager manager{config({{5, 8}}, 3)};
    add(manager, 1, text(0, 9));
    BOOST_CHECK_EXCEPTION(manager.commit(1, 4), InvalidArgumentError, says({"sequence 1", "4 new", "3"}));
    BOOST_CHECK_EXCEPTION(static_cast<void>(manager.blockIds(1, 2)), InvalidArgumentError, says({"pool is 2", "1"}));
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(manager.blockTables(std::vector<SequenceId>{1}, -1)), InvalidArgumentError, says({"-1"}));
    manager.commit(1, 3);
    BOOST_CHECK_EXCEPTION((KVCacheManager{config({{1, 8}}, 3)}), InvalidArgumentError, says({"window_size is 1"}));
    // Without window pools there is no bound.
    KVCacheManager plain{config({}, 3)};
    BOOST_TEST(run(plain, text(0, 9)) == 0);
    BOOST_CHECK_EXCEPTION(static_cast<void>(plain.blockIds(7, 1)), InvalidArgumentError, says({"pool is 1", "to 0"}));
}

BOOST_AUTO_TEST_CASE(tablesOfSeveralSequences)
{
    KVCacheManager manager{config({{5, 8}}, 4)};
    add(manager, 1, text(0, 13));
    add(manager, 2, text(50, 3));
    write(manager, 1, 0, 12, 4);
    auto const tables = manager.blockTables(std::vector<SequenceId>{1, 2}, 1);
    BOOST_TEST(tables.numRows == 2u);
    BOOST_TEST(tables.numColumns == 4u);
    auto const first = manager.blockIds(1, 1);
    auto const second = manager.blockIds(2, 1);
    std::vector<BlockId> const expected{
        kNoBlock, kNoBlock, first[2], first[3], second[0], kNoBlock, kNoBlock, kNoBlock};
    BOOST_TEST(tables.blocks == expected, boost::test_tools::per_element());
    BOOST_TEST(manager.blockIds(1)[0] != kNoBlock); // the primary pool keeps all
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(matching)

BOOST_AUTO_TEST_CASE(aMatchNeedsOnlyWhatTheNextTokenSees)
{
    KVCacheManager manager{config({{5, 8}}, 4)};
    BOOST_TEST(runInSteps(manager, text(0, 17), 4) == 0);
    BOOST_TEST(probe(manager, text(0, 17)) == 16);
    BOOST_TEST(probe(manager, text(0, 13)) == 12);
    runInSteps(manager, text(100, 17), 4); // five slots, four of them empty: block 0 loses its own
    BOOST_TEST(poolOf(manager).evictedBlocks == 1);
    BOOST_TEST(probe(manager, text(0, 17)) == 16); // the last token sees block 3
    BOOST_TEST(probe(manager, text(0, 13)) == 12); // ... block 2
    BOOST_TEST(probe(manager, text(0, 9)) == 8);   // ... block 1
    BOOST_TEST(probe(manager, text(0, 5)) == 0);   // ... block 0
    auto const stop = explain(manager, text(0, 5));
    BOOST_TEST(nameOf(stop.stop) == "window");
    BOOST_TEST(stop.block == 0);
    BOOST_TEST(stop.position == 0);
    BOOST_TEST(nameOf(explain(manager, text(0, 9)).stop) == "complete");
    auto other = text(0, 17);
    other.tokens[6] = 99;
    BOOST_TEST(probe(manager, other) == 0);
    BOOST_TEST(nameOf(explain(manager, other).stop) == "window");
    // Computed again, it is whole again, and the primary pool has nothing twice.
    auto const cached = manager.stats().cachedNumBlocks;
    BOOST_TEST(runInSteps(manager, text(0, 5), 4) == 0);
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    BOOST_TEST(manager.stats().cachedNumBlocks == cached);
}

BOOST_AUTO_TEST_CASE(everyPoolHasASay)
{
    // The second pool is as in the case before; the first never runs short.
    KVCacheManager manager{config({{9, 60}, {5, 8}}, 4)};
    runInSteps(manager, text(0, 17), 4);
    runInSteps(manager, text(100, 17), 4);
    BOOST_TEST(poolOf(manager, 1).evictedBlocks == 0);
    BOOST_TEST(poolOf(manager, 2).evictedBlocks == 1);
    BOOST_TEST(probe(manager, text(0, 17)) == 16);
    BOOST_TEST(probe(manager, text(0, 5)) == 0);
    // The first pool's window of 9 reaches two blocks back where the second's reaches one.
    auto const got = add(manager, 1, text(0, 17));
    BOOST_TEST(got->cachedTokens == 16);
    auto const wide = std::vector<bool>{false, false, true, true, true};
    auto const narrow = std::vector<bool>{false, false, false, true, true};
    BOOST_TEST(hasSlot(manager.blockIds(1, 1)) == wide, boost::test_tools::per_element());
    BOOST_TEST(hasSlot(manager.blockIds(1, 2)) == narrow, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(twoThatComputeTheSameShareOneSlot)
{
    KVCacheManager manager{config({{9, 16}}, 8)};
    add(manager, 1, text(0, 12));
    add(manager, 2, text(0, 12));
    write(manager, 1, 0, 8, 8);
    BOOST_TEST(poolOf(manager).freeNumBlocks == 16 - 3 - 2);
    BOOST_TEST(manager.commit(2, 8));
    BOOST_TEST(poolOf(manager).freeNumBlocks == 16 - 3 - 1);
    auto const first = manager.blockIds(1, 1);
    auto const second = manager.blockIds(2, 1);
    BOOST_TEST(first[0] == second[0]);
    BOOST_TEST(first[1] == second[1]);
    BOOST_TEST(first[2] != second[2]);
    manager.freeSequence(1);
    BOOST_TEST(manager.blockIds(2, 1)[1] == first[1]); // still held
    manager.checkIntegrity();
    manager.freeSequence(2);
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 2);
    BOOST_TEST(poolOf(manager).freeNumBlocks == 16);
}

BOOST_AUTO_TEST_CASE(whatMustNotBeSharedIsNot)
{
    for (int same = 0; same <= 1; ++same)
    {
        KVCacheManager manager{config({{5, 30}}, 4)};
        auto first = text(0, 9);
        auto second = text(0, 9);
        first.media = mediaOf({{0, 1, 3}});
        second.media = mediaOf({{0, 1, 3}});
        second.media.digests[0] = digest(same != 0 ? 1 : 9);
        runInSteps(manager, first, 4);
        add(manager, 1, first);
        auto const got = add(manager, 2, second);
        BOOST_TEST(got->cachedTokens == (same != 0 ? 8 : 0));
        BOOST_TEST((manager.blockIds(1, 1)[1] == manager.blockIds(2, 1)[1]) == (same != 0));
    }
}

BOOST_AUTO_TEST_CASE(withReuseOffNothingIsKept)
{
    auto off = config({{5, 8}}, 4);
    off.enableBlockReuse = false;
    KVCacheManager manager{off};
    runInSteps(manager, text(0, 17), 4);
    BOOST_TEST(poolOf(manager).releasedBlocks == 3);
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 0);
    BOOST_TEST(runInSteps(manager, text(0, 17), 4) == 0);
}

BOOST_AUTO_TEST_CASE(resetFreesWhatNobodyHolds)
{
    KVCacheManager manager{config({{5, 12}}, 4)};
    runInSteps(manager, text(0, 17), 4);
    add(manager, 1, text(0, 17));
    auto const table = manager.blockIds(1, 1);
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 3);
    manager.resetReuseState();
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 0);
    BOOST_TEST(manager.blockIds(1, 1) == table, boost::test_tools::per_element());
    manager.commit(1, 17);
    manager.freeSequence(1);
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 0);
    BOOST_TEST(poolOf(manager).freeNumBlocks == 12);
    BOOST_TEST(probe(manager, text(0, 17)) == 0);
}

BOOST_AUTO_TEST_CASE(aBlockOnTheHostKeepsItsSlot)
{
    for (BlockId const slots : {30, 5})
    {
        auto hosted = config({{5, slots}}, 4, 5);
        hosted.hostBlocks = 8;
        KVCacheManager manager{hosted};
        runInSteps(manager, text(0, 17), 4);
        runInSteps(manager, text(100, 17), 4);
        settle(manager);
        BOOST_TEST(manager.stats().hostCachedNumBlocks > 0);
        // Where window slots are scarce, those of the first prompt went to the second.
        BOOST_TEST(probe(manager, text(0, 17)) == (slots == 30 ? 16 : 0));
        BOOST_TEST(nameOf(explain(manager, text(0, 17)).stop) == (slots == 30 ? "complete" : "window"));
        BOOST_TEST(runInSteps(manager, text(0, 17), 4) == (slots == 30 ? 16 : 0));
        BOOST_TEST((manager.stats().onboardedBlocks > 0) == (slots == 30));
        settle(manager);
        manager.checkIntegrity();
    }
}

BOOST_AUTO_TEST_CASE(whatIsNotKeptFreesItsSlots)
{
    KVCacheManager manager{config({{5, 8}}, 4)};
    add(manager, 1, text(0, 17));
    write(manager, 1, 0, 17, 4);
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 3);
    manager.freeSequence(1, false);
    BOOST_TEST(poolOf(manager).cachedNumBlocks == 0);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(copying)

BOOST_AUTO_TEST_CASE(aForkSharesTheWindowAndCopiesItsTail)
{
    KVCacheManager manager{config({{5, 12}, {9, 12}}, 4)};
    add(manager, 1, text(0, 14), 4);
    write(manager, 1, 0, 14, 4);
    auto const got = manager.fork(1, 2);
    BOOST_REQUIRE(got.has_value());
    auto const plan = manager.takeCopyPlan();
    BOOST_TEST(plan.ticket == got->ticket);
    BOOST_REQUIRE(plan.entries.size() == 3u);
    for (std::int32_t pool = 0; pool <= 2; ++pool)
    {
        auto const& entry = plan.entries[static_cast<std::size_t>(pool)];
        BOOST_TEST((entry.kind == CopyKind::kFork));
        BOOST_TEST(entry.pool == pool);
        BOOST_TEST(entry.source == manager.blockIds(1, pool)[3]);
        BOOST_TEST(entry.destination == manager.blockIds(2, pool)[3]);
        BOOST_TEST(entry.source != entry.destination);
        BOOST_TEST(entry.numTokens == 2);
        BOOST_TEST(manager.blockIds(1, pool)[2] == manager.blockIds(2, pool)[2]);
    }
    manager.copiesDone(plan.ticket);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(aForkThatAPoolCannotPromiseChangesNothing)
{
    // What is left to one sequence here is two slots: a fork needs two more, and two for the copy.
    for (BlockId const slots : {5, 6})
    {
        KVCacheManager manager{config({{5, slots}}, 4)};
        add(manager, 1, text(0, 14), 3);
        write(manager, 1, 0, 14, 4);
        BOOST_TEST(poolOf(manager).promisedNumBlocks == 2);
        BOOST_TEST(manager.fork(1, 2).has_value() == (slots == 6));
        BOOST_TEST(manager.numSequences() == (slots == 6 ? 2u : 1u));
        BOOST_TEST(manager.takeCopyPlan().entries.size() == (slots == 6 ? 2u : 0u));
        manager.checkIntegrity();
    }
}

BOOST_AUTO_TEST_CASE(slotsInACopyAreNotHandedOutWhateverEnds)
{
    KVCacheManager manager{config({{5, 6}}, 4)};
    add(manager, 1, text(0, 14), 3);
    write(manager, 1, 0, 14, 4);
    manager.fork(1, 2);
    auto const source = manager.blockIds(1, 1)[3];
    auto const destination = manager.blockIds(2, 1)[3];
    auto const plan = manager.takeCopyPlan();
    manager.freeSequence(2, false);
    manager.freeSequence(1, false);
    manager.checkIntegrity();
    // Two blocks of its own, and what the ended ones and the copy hold: more do not fit now.
    BOOST_TEST(!add(manager, 3, text(100, 9)).has_value());
    manager.copiesDone(plan.ticket);
    manager.checkIntegrity();
    BOOST_TEST(poolOf(manager).promisedNumBlocks == 0);
    BOOST_TEST(poolOf(manager).freeNumBlocks == 6);
    BOOST_TEST(add(manager, 3, text(100, 9)).has_value());
    BOOST_TEST(source != destination);
}

BOOST_AUTO_TEST_CASE(aSlotInACopyOutlivesTheWindow)
{
    KVCacheManager manager{config({{2, 12}}, 8)};
    add(manager, 1, text(0, 6), 20);
    manager.commit(1, 6);
    manager.fork(1, 2);
    auto const source = manager.blockIds(1, 1)[1];
    auto const destination = manager.blockIds(2, 1)[1];
    auto const plan = manager.takeCopyPlan(); // and it takes its time
    std::set<BlockId> handedOut;
    for (TokenId token = 0; token < 12; ++token)
    {
        manager.appendTokens(1, range(token, 1));
        manager.commit(1, 7 + token);
        manager.appendTokens(2, range(50 + token, 1));
        manager.commit(2, 7 + token);
        for (auto const id : {1, 2})
        {
            auto const table = manager.blockIds(id, 1);
            handedOut.insert(table.begin() + 2, table.end());
        }
    }
    BOOST_TEST(handedOut.count(source) == 0u);
    BOOST_TEST(handedOut.count(destination) == 0u);
    manager.copiesDone(plan.ticket);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(aPartialMatchCopiesInEveryPool)
{
    auto partial = config({{5, 12}}, 4);
    partial.enablePartialReuse = true;
    KVCacheManager manager{partial};
    runInSteps(manager, text(0, 12), 4);
    auto other = text(0, 12);
    other.tokens[6] = 99;
    BOOST_TEST(probe(manager, other) == 6);
    auto const got = add(manager, 1, other);
    BOOST_TEST(got->cachedTokens == 6);
    auto const plan = manager.takeCopyPlan();
    BOOST_REQUIRE(plan.entries.size() == 2u);
    BOOST_TEST(plan.entries[1].pool == 1);
    BOOST_TEST((plan.entries[1].kind == CopyKind::kPartial));
    BOOST_TEST(plan.entries[1].destination == manager.blockIds(1, 1)[1]);
    BOOST_TEST(plan.entries[1].numTokens == 2);
    manager.copiesDone(plan.ticket);
    write(manager, 1, 6, 12, 4);
    manager.freeSequence(1);
    BOOST_TEST(probe(manager, other) == 11);
    BOOST_TEST(probe(manager, text(0, 12)) == 11);
}

BOOST_AUTO_TEST_CASE(aBlockThatIsTakenOverKeepsItsSlot)
{
    auto partial = config({{5, 12}}, 4);
    partial.enablePartialReuse = true;
    KVCacheManager manager{partial};
    add(manager, 1, text(0, 12));
    write(manager, 1, 0, 12, 4);
    auto const slot = manager.blockIds(1, 1)[2];
    manager.freeSequence(1);
    auto const got = add(manager, 2, text(0, 12)); // its own last block, of which the last token is computed again
    BOOST_TEST(got->cachedTokens == 11);
    BOOST_TEST(manager.takeCopyPlan().entries.empty());
    BOOST_TEST(manager.blockIds(2, 1)[2] == slot);
    manager.commit(2, 12);
    manager.freeSequence(2);
    BOOST_TEST(probe(manager, text(0, 12)) == 11);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(anIncompleteTailGetsItsSlotBack)
{
    auto partial = config({{5, 7}}, 4);
    partial.enablePartialReuse = true;
    KVCacheManager manager{partial};
    BOOST_TEST(runInSteps(manager, text(0, 7), 4) == 0);
    BOOST_TEST(probe(manager, text(0, 7)) == 6);
    runInSteps(manager, text(100, 28), 4); // takes every slot
    BOOST_TEST(probe(manager, text(0, 7)) == 0);
    BOOST_TEST(nameOf(explain(manager, text(0, 7)).stop) == "window");
    auto const cached = manager.stats().cachedNumBlocks;
    BOOST_TEST(runInSteps(manager, text(0, 7), 4) == 0);
    BOOST_TEST(manager.stats().cachedNumBlocks == cached); // nothing is kept twice
    BOOST_TEST(probe(manager, text(0, 7)) == 6);
    settle(manager);
}

BOOST_AUTO_TEST_CASE(aPartialMatchWithoutRoomForItsCopyFallsBackToTheBlocksThatAWindowHas)
{
    // The token after the partial match sees that block only; the one after the whole blocks sees one that is gone.
    for (BlockId const slots : {4, 5})
    {
        auto partial = config({{2, slots}}, 4);
        partial.enablePartialReuse = true;
        KVCacheManager manager{partial};
        runInSteps(manager, text(0, 12), 4);
        add(manager, 1, text(0, 13), 2); // holds the block that the other would copy
        runInSteps(manager, text(100, 8), 4);
        BOOST_TEST(poolOf(manager).evictedBlocks == 6 - slots);
        auto other = text(0, 12);
        other.tokens[10] = 99;
        BOOST_TEST(probe(manager, other) == 10);
        auto const got = add(manager, 2, other);
        BOOST_REQUIRE(got.has_value());
        BOOST_TEST(got->cachedTokens == (slots == 5 ? 10 : 0));
        settle(manager);
        write(manager, 2, got->cachedTokens, 12, 4);
        manager.freeSequence(2);
        manager.freeSequence(1);
        BOOST_TEST(probe(manager, other) == 11);
    }
}

BOOST_AUTO_TEST_SUITE_END()
