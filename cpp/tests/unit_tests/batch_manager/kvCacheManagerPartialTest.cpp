// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

//! \file kvCacheManagerPartialTest.cpp
//! Matches that end inside a block, and what copies of KV they ask for.

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "managerHelpers.h"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <utility>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

KvCacheManagerConfig config(BlockId numBlocks, bool copy = true)
{
    KvCacheManagerConfig result;
    result.numBlocks = numBlocks;
    result.tokensPerBlock = 4;
    result.enablePartialReuse = true;
    result.copyOnPartialReuse = copy;
    return result;
}

Prompt changedAt(std::size_t length, std::size_t position)
{
    auto prompt = text(0, length);
    prompt.tokens[position] = 99;
    return prompt;
}

} // namespace

BOOST_AUTO_TEST_CASE(aRepeatReusesAllButItsLastToken)
{
    for (std::size_t length = 1; length <= 17; ++length)
    {
        KVCacheManager manager{config(8)};
        auto const prompt = text(0, length);
        BOOST_TEST(run(manager, prompt) == 0);
        auto const expected = static_cast<std::int64_t>(length) - 1;
        for (int repeat = 0; repeat < 3; ++repeat)
        {
            BOOST_TEST(probe(manager, prompt) == expected);
            BOOST_TEST(run(manager, prompt) == expected);
            // A whole block comes back as it was, so it is taken over; the head of an incomplete one is copied.
            auto const plan = manager.takeCopyPlan();
            BOOST_TEST(plan.entries.size() == (length > 1 && length % 4 > 1 ? 1u : 0u));
            if (plan.ticket != 0)
            {
                manager.copiesDone(plan.ticket);
            }
            // Nothing is kept twice.
            BOOST_TEST(manager.stats().cachedNumBlocks == static_cast<BlockId>((length + 3) / 4));
            manager.checkIntegrity();
        }
    }
}

BOOST_AUTO_TEST_CASE(theWrittenHeadOfTheLastBlockIsKeptAndNothingBehindIt)
{
    KVCacheManager manager{config(8)};
    add(manager, 1, text(0, 11));
    manager.commit(1, 6);
    BOOST_TEST(probe(manager, text(0, 11)) == 4); // not while the block may still be written
    manager.freeSequence(1);
    BOOST_TEST(probe(manager, text(0, 11)) == 6); // tokens 6 to 10 were never written
    BOOST_TEST(probe(manager, text(0, 6)) == 5);
    BOOST_TEST(probe(manager, changedAt(11, 5)) == 5);
    BOOST_TEST(probe(manager, changedAt(11, 3)) == 3);

    // A longer head of the same block is kept beside it, a shorter or equal one is not.
    auto const before = manager.stats().cachedNumBlocks;
    add(manager, 2, text(0, 8));
    manager.commit(2, 7);
    auto const plan = manager.takeCopyPlan();
    manager.copiesDone(plan.ticket);
    manager.freeSequence(2);
    BOOST_TEST(probe(manager, text(0, 11)) == 7);
    BOOST_TEST(manager.stats().cachedNumBlocks == before + 1);
    BOOST_TEST(run(manager, text(0, 6)) == 5);
    manager.copiesDone(manager.takeCopyPlan().ticket);
    BOOST_TEST(manager.stats().cachedNumBlocks == before + 1);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(anIncompleteBlockIsNotKeptWhereItMustNotBeShared)
{
    {
        KVCacheManager manager{config(8)};
        add(manager, 1, text(0, 6));
        manager.commit(1, 6);
        manager.freeSequence(1, false);
        BOOST_TEST(probe(manager, text(0, 6)) == 0);
    }
    {
        auto whole = config(8);
        whole.enablePartialReuse = false;
        KVCacheManager manager{whole};
        BOOST_TEST(run(manager, text(0, 6)) == 0);
        BOOST_TEST(probe(manager, text(0, 6)) == 4);
        BOOST_TEST(manager.stats().cachedNumBlocks == 1);
    }
    {
        // A prompt that holds the filler of incomplete blocks does not match what was never written.
        KVCacheManager manager{config(8)};
        BOOST_TEST(run(manager, text(0, 2)) == 0);
        auto odd = text(0, 8);
        std::fill(odd.tokens.begin() + 2, odd.tokens.end(), kNoToken);
        BOOST_TEST(probe(manager, odd) == 2);
        // Nor does it leave anything to be found behind its own filler, or in it.
        auto longer = text(100, 11);
        std::fill(longer.tokens.begin() + 5, longer.tokens.begin() + 8, kNoToken);
        BOOST_TEST(run(manager, longer) == 0);
        BOOST_TEST(probe(manager, longer) == 4);
        longer.tokens.resize(7);
        BOOST_TEST(run(manager, longer) == 4);
        manager.checkIntegrity();
    }
}

BOOST_AUTO_TEST_CASE(theHeadOfABusyBlockIsCopied)
{
    KVCacheManager manager{config(8)};
    add(manager, 1, text(0, 9));
    manager.commit(1, 9);
    auto const got = add(manager, 2, changedAt(9, 6));
    BOOST_TEST(got->cachedTokens == 6);
    auto const plan = manager.takeCopyPlan();
    BOOST_REQUIRE(plan.entries.size() == 1u);
    BOOST_TEST(plan.ticket == got->ticket);
    BOOST_TEST((plan.entries[0].kind == CopyKind::kPartial));
    BOOST_TEST(plan.entries[0].source == manager.blockIds(1)[1]);
    BOOST_TEST(plan.entries[0].destination == manager.blockIds(2)[1]);
    BOOST_TEST(plan.entries[0].numTokens == 2);
    // Both go on to be findable, and the source was not touched.
    manager.commit(2, 9);
    manager.copiesDone(plan.ticket);
    manager.freeSequence(1);
    manager.freeSequence(2);
    BOOST_TEST(probe(manager, text(0, 9)) == 8);
    BOOST_TEST(probe(manager, changedAt(9, 6)) == 8);
}

BOOST_AUTO_TEST_CASE(withoutCopyingABusyBlockIsNotUsedAndAnIdleOneIsTakenOver)
{
    KVCacheManager manager{config(8, false)};
    add(manager, 1, text(0, 9));
    manager.commit(1, 8); // nothing of the last block is written, so none of it is kept
    BOOST_TEST(probe(manager, changedAt(9, 6)) == 4);
    BOOST_TEST(add(manager, 2, changedAt(9, 6))->cachedTokens == 4);
    manager.freeSequence(2, false);
    auto const block = manager.blockIds(1)[1];
    manager.freeSequence(1);
    BOOST_TEST(add(manager, 3, changedAt(9, 6))->cachedTokens == 6);
    BOOST_TEST(manager.blockIds(3)[1] == block);
    BOOST_TEST(manager.takeCopyPlan().entries.empty());
    BOOST_TEST(probe(manager, text(0, 9)) == 4); // its tail is gone
}

BOOST_AUTO_TEST_CASE(anIdleBlockWithARoomyPoolIsCopiedSoThatBothStay)
{
    KVCacheManager manager{config(8)};
    run(manager, text(0, 9));
    BOOST_TEST(add(manager, 1, changedAt(9, 6))->cachedTokens == 6);
    auto const plan = manager.takeCopyPlan();
    BOOST_TEST(plan.entries.size() == 1u);
    BOOST_TEST(probe(manager, text(0, 9)) == 8);
}

BOOST_AUTO_TEST_CASE(anIdleBlockInAFullPoolIsTakenOver)
{
    KVCacheManager manager{config(4)};
    run(manager, text(0, 8));
    run(manager, text(50, 8));
    BOOST_TEST(manager.stats().cachedNumBlocks == 4);
    BOOST_TEST(add(manager, 1, changedAt(9, 6))->cachedTokens == 6);
    BOOST_TEST(manager.takeCopyPlan().entries.empty());
}

BOOST_AUTO_TEST_CASE(aMatchMayEndInsideAnItem)
{
    Prompt const base{std::vector<TokenId>(13, 7), mediaOf({{0, 3, 8}}), {}};
    auto other = base;
    other.tokens[10] = 8; // row 7 of the item stands for another token id
    auto shifted = base;
    shifted.media = mediaOf({{0, 2, 8}});
    auto changed = base;
    changed.media.digests[0][31] ^= 1;
    auto longer = base; // an equal beginning of a longer item under the same digest
    longer.media = mediaOf({{0, 3, 9}});

    struct Case
    {
        Prompt const* prompt;
        std::int64_t cached;
    };

    for (auto const& [prompt, cached] :
        {Case{&base, 12}, Case{&other, 10}, Case{&shifted, 2}, Case{&changed, 3}, Case{&longer, 11}})
    {
        for (auto const hash : {&xxh3Hash, &constantHash})
        {
            auto options = config(16);
            options.hash = hash;
            KVCacheManager manager{options};
            run(manager, base);
            BOOST_TEST(probe(manager, *prompt) == cached);
            BOOST_TEST(add(manager, 1, *prompt)->cachedTokens == cached);
        }
    }
}

BOOST_AUTO_TEST_CASE(anUnidentifiedItemIsNeverPartOfAPartialMatch)
{
    KVCacheManager manager{config(16)};
    Prompt prompt{std::vector<TokenId>(13, 7), mediaOf({{0, 6, 3}}), {}};
    run(manager, prompt);
    auto unknown = prompt;
    unknown.media.identified[0] = 0;
    BOOST_TEST(probe(manager, unknown) == 4);
    BOOST_TEST(probe(manager, prompt) == 12);
}

BOOST_AUTO_TEST_CASE(scopesDoNotMeetInPartialMatches)
{
    KVCacheManager manager{config(16)};
    run(manager, text(0, 9));
    auto other = changedAt(9, 6);
    BOOST_TEST(probe(manager, other) == 6);
    other.scope.cacheSalt = "x";
    BOOST_TEST(probe(manager, other) == 0);
}

BOOST_AUTO_TEST_CASE(blocksInACopyStayHeldWhenTheSequenceEnds)
{
    KVCacheManager manager{config(8)};
    add(manager, 1, text(0, 9));
    manager.commit(1, 9);
    add(manager, 2, changedAt(9, 6));
    auto const plan = manager.takeCopyPlan();
    manager.freeSequence(2); // aborted before the copy ran
    manager.freeSequence(1);
    auto const used = manager.stats().usedNumBlocks;
    BOOST_TEST(used == 4); // source, its parent and the two blocks of the aborted sequence
    BOOST_TEST(manager.numSequences() == 0u);
    BOOST_TEST(add(manager, 2, text(50, 4)).has_value()); // the id is free
    manager.freeSequence(2, false);
    manager.copiesDone(plan.ticket);
    BOOST_TEST(manager.stats().usedNumBlocks == 0);
    BOOST_TEST(probe(manager, text(0, 9)) == 8);
}

BOOST_AUTO_TEST_SUITE(forkAndRewind)

BOOST_AUTO_TEST_CASE(aForkSharesWholeBlocksAndCopiesTheTail)
{
    KVCacheManager manager{config(8)};
    add(manager, 1, text(0, 6), 6);
    manager.commit(1, 6);
    auto const got = manager.fork(1, 2);
    BOOST_REQUIRE(got.has_value());
    BOOST_TEST(got->cachedTokens == 6);
    BOOST_TEST(manager.blockIds(1)[0] == manager.blockIds(2)[0]);
    BOOST_TEST(manager.blockIds(1)[1] != manager.blockIds(2)[1]);
    auto const plan = manager.takeCopyPlan();
    BOOST_REQUIRE(plan.entries.size() == 1u);
    BOOST_TEST((plan.entries[0].kind == CopyKind::kFork));
    BOOST_TEST(plan.entries[0].source == manager.blockIds(1)[1]);
    BOOST_TEST(plan.entries[0].destination == manager.blockIds(2)[1]);
    BOOST_TEST(plan.entries[0].numTokens == 2);
    // They go different ways; both are found afterwards.
    manager.appendTokens(1, range(60, 3));
    manager.appendTokens(2, range(70, 3));
    manager.commit(1, 8);
    manager.commit(2, 8);
    manager.copiesDone(plan.ticket);
    manager.freeSequence(1);
    manager.freeSequence(2);
    BOOST_TEST(probe(manager, {{0, 1, 2, 3, 4, 5, 60, 61, 1}, {}, {}}) == 8);
    BOOST_TEST(probe(manager, {{0, 1, 2, 3, 4, 5, 70, 71, 1}, {}, {}}) == 8);
}

BOOST_AUTO_TEST_CASE(aTailInACopyIsNotGivenBackForAnEqualBlock)
{
    // What is given back must be there at once, because promises were made on it.
    KVCacheManager manager{8, 4};
    add(manager, 1, text(0, 6), 4);
    manager.commit(1, 6);
    manager.fork(1, 2);
    run(manager, text(0, 9)); // leaves an idle block equal to what 1 is about to fill
    auto const free = manager.stats().freeNumBlocks;
    manager.appendTokens(1, range(6, 2));
    BOOST_TEST(!manager.commit(1, 8));
    BOOST_TEST(manager.stats().freeNumBlocks == free);
    manager.copiesDone(manager.takeCopyPlan().ticket);
    manager.freeSequence(1);
    manager.freeSequence(2);
    BOOST_TEST(manager.stats().freeNumBlocks == 8);
    BOOST_TEST(probe(manager, text(0, 9)) == 8);
}

BOOST_AUTO_TEST_CASE(whatALiveSequenceHasWrittenOfItsLastBlockIsShared)
{
    KVCacheManager manager{config(12)};
    add(manager, 1, text(0, 11), 4);
    manager.commit(1, 11);
    BOOST_TEST(add(manager, 2, text(0, 11))->cachedTokens == 8);
    BOOST_TEST(manager.shareTail(1, 2) == 10); // all but the last token of its prompt
    auto const entry = manager.takeCopyPlan().entries.at(0);
    BOOST_TEST((entry.kind == CopyKind::kPartial && entry.numTokens == 2));
    BOOST_TEST(entry.source == manager.blockIds(1)[2]);
    BOOST_TEST(entry.destination == manager.blockIds(2)[2]);

    // The source may end before the copy has run: its block stays held for as long.
    manager.freeSequence(1);
    BOOST_TEST(manager.stats().usedNumBlocks == 4);
    manager.copiesDone(1);
    BOOST_TEST(manager.stats().usedNumBlocks == 3);
    manager.commit(2, 11);
    manager.checkIntegrity();

    // What differs, or is not written, is not shared.
    add(manager, 3, changedAt(11, 9));
    BOOST_TEST(manager.shareTail(2, 3) == 9);
    add(manager, 4, changedAt(11, 3));
    BOOST_TEST(manager.shareTail(2, 4) == 3); // by the partial match of its first block
    add(manager, 5, text(50, 11));
    manager.commit(5, 9);
    add(manager, 6, text(50, 11));
    BOOST_TEST(manager.shareTail(5, 6) == 9);
    BOOST_CHECK_THROW(manager.shareTail(5, 77), UnknownSequenceError);
    BOOST_CHECK_THROW(manager.shareTail(77, 5), UnknownSequenceError);
}

BOOST_AUTO_TEST_CASE(aTailIsSharedByTheSameEqualityAsABlock)
{
    auto const withItem = [](std::uint8_t item, std::optional<std::string> salt)
    {
        auto prompt = text(0, 7);
        prompt.media = mediaOf({{0, 4, 2}});
        prompt.media.digests[0] = digest(item);
        prompt.scope.cacheSalt = std::move(salt);
        return prompt;
    };
    for (bool const copy : {true, false})
    {
        KVCacheManager manager{config(16, copy)};
        add(manager, 1, withItem(1, std::nullopt));
        manager.commit(1, 7);
        SequenceId next = 2;
        auto const shared = [&](Prompt const& prompt)
        {
            add(manager, next, prompt);
            return manager.shareTail(1, next++);
        };
        BOOST_TEST(shared(withItem(1, std::nullopt)) == (copy ? 6 : 4));
        BOOST_TEST(shared(withItem(2, std::nullopt)) == 4);
        BOOST_TEST(shared(text(0, 7)) == 4);
        BOOST_TEST(shared(withItem(1, "other")) == 0);
        manager.checkIntegrity();
    }
}

BOOST_AUTO_TEST_CASE(aForkAtABlockBorderCopiesNothing)
{
    KVCacheManager manager{config(8)};
    add(manager, 1, text(0, 4), 6);
    manager.commit(1, 4);
    BOOST_TEST(manager.fork(1, 2)->ticket == 0);
    BOOST_TEST(manager.takeCopyPlan().entries.empty());
}

BOOST_AUTO_TEST_CASE(aForkIsRefusedWhereItsEndCannotBePromised)
{
    KVCacheManager manager{config(4)};
    add(manager, 1, text(0, 6), 6); // 11 slots, 3 blocks
    manager.commit(1, 6);
    BOOST_TEST(!manager.fork(1, 2).has_value()); // wants 2 more of 1
    BOOST_TEST(manager.numSequences() == 1u);
    BOOST_CHECK_THROW(manager.fork(1, 1), InvalidArgumentError);
    BOOST_CHECK_THROW(manager.fork(7, 2), UnknownSequenceError);
}

BOOST_AUTO_TEST_CASE(rewindTakesBackARejectedTail)
{
    KVCacheManager manager{config(8)};
    add(manager, 1, text(0, 6), 9);
    manager.commit(1, 6);
    manager.appendTokens(1, range(60, 5)); // drafted, of which one is accepted
    BOOST_TEST(manager.blockIds(1).size() == 3u);
    manager.rewind(1, 7);
    manager.commit(1, 7);
    BOOST_TEST(manager.blockIds(1).size() == 2u);
    BOOST_TEST(manager.stats().reservedNumBlocks == 2);
    manager.appendTokens(1, range(80, 2));
    manager.commit(1, 8);
    BOOST_TEST(probe(manager, {{0, 1, 2, 3, 4, 5, 60, 80, 1}, {}, {}}) == 8);
    BOOST_TEST(probe(manager, {{0, 1, 2, 3, 4, 5, 60, 61, 1}, {}, {}}) == 7);
    BOOST_CHECK_EXCEPTION(manager.rewind(1, 7), InvalidArgumentError, says({"sequence 1", "7", "8 to 9"}));
    BOOST_CHECK_EXCEPTION(manager.rewind(1, 10), InvalidArgumentError, says({"10", "8 to 9"}));
    BOOST_CHECK_THROW(manager.rewind(2, 1), UnknownSequenceError);
}

BOOST_AUTO_TEST_CASE(freeingWithoutKeepingLeavesWhatOthersBuildOn)
{
    KVCacheManager manager{8, 4};
    run(manager, text(0, 5));
    add(manager, 1, text(0, 9));
    manager.commit(1, 9);
    add(manager, 2, text(0, 6));
    manager.freeSequence(1, false);
    BOOST_TEST(probe(manager, text(0, 9)) == 4);
    manager.freeSequence(2);
    BOOST_TEST(manager.stats().cachedNumBlocks == 1);
}

BOOST_AUTO_TEST_CASE(anEqualTailIsStoredOnceAlsoAmongManySiblings)
{
    KvCacheManagerConfig config;
    config.numBlocks = 64;
    config.tokensPerBlock = 4;
    config.enablePartialReuse = true;
    KVCacheManager manager{config};
    constexpr TokenId kSiblings = 3 * RadixBlockTree::kMaxPartialCandidates;
    for (int round = 0; round < 3; ++round)
    {
        for (TokenId other = 0; other < kSiblings; ++other)
        {
            run(manager, {{7, 100 + other, 5}, {}, {}});
            if (auto const ticket = manager.takeCopyPlan().ticket; ticket != 0)
            {
                manager.copiesDone(ticket);
            }
        }
        BOOST_TEST(manager.stats().cachedNumBlocks == kSiblings);
    }
}

BOOST_AUTO_TEST_SUITE_END()
