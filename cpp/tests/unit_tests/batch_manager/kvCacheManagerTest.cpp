// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "managerHelpers.h"

#include <boost/test/unit_test.hpp>

#include <limits>
#include <set>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

constexpr std::int32_t kTokensPerBlock = 4;

} // namespace

BOOST_AUTO_TEST_SUITE(construction)

BOOST_AUTO_TEST_CASE(wantsAPoolAndAPowerOfTwo)
{
    BOOST_CHECK_EXCEPTION((KVCacheManager{0, 4}), InvalidArgumentError, says({"num_blocks", "0", "1"}));
    for (auto const size : {-4, 0, 1, 3, 12})
    {
        BOOST_CHECK_EXCEPTION((KVCacheManager{1, size}), InvalidArgumentError,
            says({"tokens_per_block", std::to_string(size), "power of two"}));
    }
    KVCacheManager const manager{3, 2};
    BOOST_TEST(manager.numBlocks() == 3);
    BOOST_TEST(manager.tokensPerBlock() == 2);
    BOOST_TEST(manager.enableBlockReuse());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(matching)

BOOST_AUTO_TEST_CASE(aRepeatReusesWholeBlocksBelowTheLastToken)
{
    for (std::size_t length = 1; length <= 17; ++length)
    {
        KVCacheManager manager{8, kTokensPerBlock};
        auto const prompt = text(0, length);
        BOOST_TEST(run(manager, prompt) == 0);
        auto const expected = static_cast<std::int64_t>((length - 1) / 4 * 4);
        BOOST_TEST(probe(manager, prompt) == expected);
        BOOST_TEST(run(manager, prompt) == expected);
    }
}

BOOST_AUTO_TEST_CASE(aLongerPromptReusesTheWholeShorterOne)
{
    KVCacheManager manager{8, kTokensPerBlock};
    run(manager, text(0, 8));
    BOOST_TEST(run(manager, text(0, 20)) == 8);
}

BOOST_AUTO_TEST_CASE(nothingIsFindableBeforeItsKvIsWritten)
{
    KVCacheManager manager{16, kTokensPerBlock};
    auto const prompt = text(0, 17);
    add(manager, 1, prompt);
    BOOST_TEST(probe(manager, prompt) == 0);
    manager.commit(1, 7);
    BOOST_TEST(probe(manager, prompt) == 4);
    manager.commit(1, 12);
    BOOST_TEST(probe(manager, prompt) == 12);
    manager.freeSequence(1); // aborted: the block of tokens 12..15 was never written
    BOOST_TEST(probe(manager, prompt) == 12);
    BOOST_TEST(manager.stats().cachedNumBlocks == 3);
    BOOST_TEST(manager.stats().freeNumBlocks == 16);
}

BOOST_AUTO_TEST_CASE(generatedTokensAreFoundByTheNextTurn)
{
    KVCacheManager manager{8, kTokensPerBlock};
    add(manager, 1, text(0, 5), 4);
    manager.appendTokens(1, range(5, 3));
    manager.commit(1, 8);
    manager.freeSequence(1);
    BOOST_TEST(probe(manager, text(0, 12)) == 8);
}

BOOST_AUTO_TEST_CASE(liveSequencesShareBlocks)
{
    KVCacheManager manager{8, kTokensPerBlock};
    auto const prompt = text(0, 9);
    add(manager, 1, prompt);
    manager.commit(1, 9);
    BOOST_TEST(add(manager, 2, prompt)->cachedTokens == 8);
    BOOST_TEST(manager.blockIds(1)[0] == manager.blockIds(2)[0]);
    BOOST_TEST(manager.blockIds(1)[1] == manager.blockIds(2)[1]);
    BOOST_TEST(manager.blockIds(1)[2] != manager.blockIds(2)[2]);
    BOOST_TEST(manager.stats().usedNumBlocks == 4);
}

BOOST_AUTO_TEST_CASE(anEqualBlockCommittedTwiceIsKeptOnce)
{
    KVCacheManager manager{8, kTokensPerBlock};
    auto const prompt = text(0, 9);
    add(manager, 1, prompt);
    add(manager, 2, prompt);
    BOOST_TEST(!manager.commit(1, 9));
    BOOST_TEST(manager.stats().usedNumBlocks == 6);
    BOOST_TEST(manager.commit(2, 9));
    BOOST_TEST(manager.stats().usedNumBlocks == 4);
    BOOST_TEST(manager.blockIds(2)[1] == manager.blockIds(1)[1]);
    BOOST_TEST(!manager.commit(2, 9));
    manager.freeSequence(1);
    manager.freeSequence(2);
    BOOST_TEST(manager.stats().cachedNumBlocks == 2);
}

BOOST_AUTO_TEST_CASE(reuseOffMatchesAndKeepsNothing)
{
    KVCacheManager manager{8, kTokensPerBlock, false};
    auto const prompt = text(0, 9);
    BOOST_TEST(run(manager, prompt) == 0);
    BOOST_TEST(run(manager, prompt) == 0);
    BOOST_TEST(manager.stats().cachedNumBlocks == 0);
    BOOST_TEST(manager.stats().freeNumBlocks == 8);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(nearMisses)

namespace
{

//! 24 tokens: an item of 5 rows at 5..9, one of 6 rows at 12..14 and 16..18.
Prompt basePrompt()
{
    return {std::vector<TokenId>(24, 7), mediaOf({{0, 5, 5}, {1, 12, 3}, {1, 16, 3}}),
        ReuseScope{"tenant", 3, 1, "speech"}};
}

struct NearMiss
{
    char const* name;
    void (*change)(Prompt&);
    std::int64_t shared; //!< tokens before the first block that differs
};

constexpr NearMiss kNearMisses[] = {
    {"token in block 0", [](Prompt& p) { p.tokens[0] = 8; }, 0},
    {"token in block 3", [](Prompt& p) { p.tokens[15] = 8; }, 12},
    {"first half of a digest", [](Prompt& p) { p.media.digests[0][0] ^= 1; }, 4},
    {"second half of a digest", [](Prompt& p) { p.media.digests[0][31] ^= 1; }, 4},
    {"digest of the second item", [](Prompt& p) { p.media.digests[1][16] ^= 128; }, 12},
    {"row offset", [](Prompt& p) { p.media.runLengths = {5, 4, 2}; }, 12},
    {"offset in the block", [](Prompt& p) { p.media.runPositions[0] = 6; }, 4},
    {"length in a later block", [](Prompt& p) { p.media = mediaOf({{0, 5, 4}, {1, 12, 3}, {1, 16, 3}}); }, 8},
    {"run split", [](Prompt& p) { p.media = mediaOf({{0, 5, 2}, {0, 7, 3}, {1, 12, 3}, {1, 16, 3}}); }, 4},
    {"item order", [](Prompt& p) { std::swap(p.media.digests[0], p.media.digests[1]); }, 4},
    {"media against text", [](Prompt& p) { p.media = {}; }, 4},
    {"one item fewer", [](Prompt& p) { p.media = mediaOf({{0, 5, 5}}); }, 12},
    {"salt", [](Prompt& p) { p.scope.cacheSalt = "tenanu"; }, 0},
    {"no salt", [](Prompt& p) { p.scope.cacheSalt.reset(); }, 0},
    {"adapter id", [](Prompt& p) { p.scope.adapterId = 4; }, 0},
    {"no adapter", [](Prompt& p) { p.scope.adapterId.reset(); }, 0},
    {"adapter version", [](Prompt& p) { p.scope.adapterVersion = 2; }, 0},
    {"adapter mode", [](Prompt& p) { p.scope.adapterMode = "vision"; }, 0},
};

} // namespace

BOOST_AUTO_TEST_CASE(mustNotShareAndMustShare)
{
    for (auto const hash : {&xxh3Hash, &crowdedHash, &constantHash})
    {
        for (auto const& miss : kNearMisses)
        {
            BOOST_TEST_CONTEXT(miss.name)
            {
                KVCacheManager manager{32, kTokensPerBlock, true, hash};
                auto const base = basePrompt();
                auto other = basePrompt();
                miss.change(other);
                BOOST_TEST(run(manager, base) == 0);
                BOOST_TEST(probe(manager, other) == miss.shared);
                BOOST_TEST(run(manager, other) == miss.shared);
                // The twins: equal in every part, so both share all that may be shared.
                BOOST_TEST(run(manager, base) == 20);
                BOOST_TEST(run(manager, other) == 20);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(theParentIsPartOfTheKey)
{
    for (auto const hash : {&xxh3Hash, &constantHash})
    {
        KVCacheManager manager{16, kTokensPerBlock, true, hash};
        // The second blocks are equal in tokens, their parents are not.
        run(manager, {{1, 1, 1, 1, 5, 5, 5, 5, 9}, {}, {}});
        BOOST_TEST(run(manager, {{2, 2, 2, 2, 5, 5, 5, 5, 9}, {}, {}}) == 0);
        BOOST_TEST(run(manager, {{1, 1, 1, 1, 5, 5, 5, 5, 9}, {}, {}}) == 8);
        BOOST_TEST(probe(manager, {{5, 5, 5, 5, 9}, {}, {}}) == 0);
    }
}

BOOST_AUTO_TEST_CASE(anItemWithoutIdentityEndsSharing)
{
    KVCacheManager manager{32, kTokensPerBlock};
    auto unknown = basePrompt();
    unknown.media.identified[1] = 0; // first token at 12
    BOOST_TEST(run(manager, unknown) == 0);
    BOOST_TEST(manager.stats().cachedNumBlocks == 3);
    BOOST_TEST(run(manager, unknown) == 12);
    BOOST_TEST(manager.stats().cachedNumBlocks == 3);
    // Nor does it take what an identified twin left, nor pass as text.
    BOOST_TEST(run(manager, basePrompt()) == 12);
    BOOST_TEST(run(manager, basePrompt()) == 20);
    BOOST_TEST(run(manager, unknown) == 12);
}

BOOST_AUTO_TEST_CASE(anUnidentifiedFirstBlockSharesNothing)
{
    KVCacheManager manager{8, kTokensPerBlock};
    Prompt prompt{std::vector<TokenId>(12, 7), mediaOf({{0, 3, 2}}), {}};
    prompt.media.identified[0] = 0;
    run(manager, prompt);
    BOOST_TEST(run(manager, prompt) == 0);
    BOOST_TEST(manager.stats().cachedNumBlocks == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(capacity)

BOOST_AUTO_TEST_CASE(theLastNewTokenNeedsNoSlot)
{
    KVCacheManager manager{2, kTokensPerBlock};
    // 5 + 4 - 1 = 8 slots fit two blocks; one more token does not.
    BOOST_CHECK_EXCEPTION(
        add(manager, 1, text(0, 5), 5), CapacityExceededError, says({"3 blocks", "9 tokens", "pool has 2"}));
    BOOST_TEST(add(manager, 1, text(0, 5), 4)->numBlocks == 2);
    manager.appendTokens(1, range(5, 4));
    BOOST_TEST(manager.blockIds(1).size() == 2u);
    manager.commit(1, 8);
    BOOST_CHECK_EXCEPTION(manager.commit(1, 9), InvalidArgumentError, says({"sequence 1", "9", "8"}));
    BOOST_CHECK_EXCEPTION(
        manager.appendTokens(1, range(9, 1)), CapacityExceededError, says({"sequence 1", "1 tokens", "9"}));
}

BOOST_AUTO_TEST_CASE(whatWasAdmittedCanFinish)
{
    KVCacheManager manager{4, 2};
    BOOST_TEST(add(manager, 1, text(0, 2), 3).has_value()); // 2 blocks, one of them promised
    BOOST_TEST(manager.stats().reservedNumBlocks == 1);
    BOOST_TEST(!add(manager, 2, text(10, 5), 1).has_value()); // 3 blocks
    BOOST_TEST(manager.numSequences() == 1u);
    BOOST_TEST(add(manager, 2, text(10, 3), 2).has_value()); // 2 blocks
    BOOST_TEST(manager.stats().freeNumBlocks == 1);
    BOOST_TEST(!add(manager, 3, text(20, 1), 1).has_value()); // the last one is promised
    manager.appendTokens(1, range(2, 2));
    BOOST_TEST(manager.blockIds(1).size() == 2u);
    BOOST_TEST(manager.stats().reservedNumBlocks == 0);
}

BOOST_AUTO_TEST_CASE(matchedIdleBlocksCountAgainstThePromise)
{
    KVCacheManager manager{4, 2};
    run(manager, text(0, 5));                                // leaves two cached blocks
    BOOST_TEST(add(manager, 1, text(50, 3), 2).has_value()); // 2 of 4 blocks
    // 4 + 3 - 1 = 6 slots, 3 blocks: 1 matched (idle) and 2 new, but only 2 blocks are not held.
    BOOST_TEST(!add(manager, 2, text(0, 4), 3).has_value());
    BOOST_TEST(add(manager, 2, text(0, 4), 1)->cachedTokens == 2);
}

BOOST_AUTO_TEST_CASE(evictionGivesUpLeavesOldestFirst)
{
    KVCacheManager manager{6, 2};
    run(manager, text(0, 5));  // two blocks cached
    run(manager, text(10, 5)); // two more
    run(manager, text(0, 5));  // the first chain is now the more recent
    add(manager, 1, text(20, 6));
    BOOST_TEST(manager.stats().evictedBlocks == 1);
    BOOST_TEST(probe(manager, text(10, 5)) == 2); // the deepest of the older chain went
    BOOST_TEST(probe(manager, text(0, 5)) == 4);
    manager.freeSequence(1);
}

BOOST_AUTO_TEST_CASE(matchedBlocksAreNotEvictedForTheSameSequence)
{
    KVCacheManager manager{3, 2};
    run(manager, text(0, 6));
    BOOST_TEST(manager.stats().cachedNumBlocks == 3);
    auto prompt = text(0, 5);
    prompt.tokens[4] = 99;
    BOOST_TEST(add(manager, 1, prompt)->cachedTokens == 4);
    auto const tableOfOne = manager.blockIds(1);
    BOOST_TEST((std::set<BlockId>(tableOfOne.begin(), tableOfOne.end()).size()) == 3u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(misuse)

BOOST_AUTO_TEST_CASE(errorsChangeNothing)
{
    KVCacheManager manager{4, kTokensPerBlock};
    auto const prompt = text(0, 6);
    add(manager, 1, prompt);
    manager.commit(1, 5);
    auto const before = manager.stats();
    auto malformed = prompt;
    malformed.media = mediaOf({{0, 4, 3}});
    BOOST_CHECK_EXCEPTION(add(manager, 1, prompt), InvalidArgumentError, says({"sequence 1", "live"}));
    BOOST_CHECK_EXCEPTION(add(manager, 2, text(0, 0)), InvalidArgumentError, says({"0", "1"}));
    BOOST_CHECK_EXCEPTION(add(manager, 2, prompt, -1), InvalidArgumentError, says({"sequence 2", "-1"}));
    BOOST_CHECK_EXCEPTION(add(manager, 2, prompt, INT64_MAX), InvalidArgumentError, says({"sequence 2"}));
    BOOST_CHECK_EXCEPTION(add(manager, 2, malformed), InvalidMediaRunsError, says({"run 0", "3 tokens at 4", "6"}));
    BOOST_CHECK_EXCEPTION(probe(manager, malformed), InvalidMediaRunsError, says({"run 0", "3 tokens at 4", "6"}));
    BOOST_CHECK_EXCEPTION(
        manager.freeBatch(std::vector<SequenceId>{1, 1}), InvalidArgumentError, says({"sequence 1", "entry 1", "2"}));
    BOOST_CHECK_EXCEPTION(manager.commit(1, 4), InvalidArgumentError, says({"4", "5 to 6"}));
    BOOST_CHECK_EXCEPTION(manager.commit(1, 7), InvalidArgumentError, says({"7", "5 to 6"}));
    BOOST_CHECK_EXCEPTION(manager.commit(2, 1), UnknownSequenceError, says({"sequence 2", "1 live"}));
    BOOST_CHECK_THROW(manager.appendTokens(2, range(0, 1)), UnknownSequenceError);
    BOOST_CHECK_THROW(manager.freeSequence(2), UnknownSequenceError);
    BOOST_CHECK_THROW((void)manager.blockIds(2), UnknownSequenceError);
    BOOST_TEST(manager.numSequences() == 1u);
    BOOST_TEST(manager.stats().freeNumBlocks == before.freeNumBlocks);
    BOOST_TEST(manager.stats().allocTotalBlocks == before.allocTotalBlocks);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_CASE(batchesAreAllOrNothing)
{
    KVCacheManager manager{16, 2};
    add(manager, 1, text(0, 2), 2);
    add(manager, 2, text(10, 4), 1);
    using Ids = std::vector<SequenceId>;
    using Counts = std::vector<std::int64_t>;
    manager.appendBatch(Ids{1, 2}, range(70, 2));
    BOOST_CHECK_THROW(manager.appendBatch(Ids{1, 2}, range(0, 2)), CapacityExceededError); // 2 is at its end
    manager.appendTokens(1, range(80, 1)); // so 1 has room for one still
    BOOST_CHECK_EXCEPTION(manager.appendBatch(Ids{1, 2}, range(0, 1)), InvalidArgumentError, says({"2 ids", "1"}));
    BOOST_CHECK_EXCEPTION(
        manager.commitBatch(Ids{1, 1}, Counts{1, 2}), InvalidArgumentError, says({"sequence 1", "entry 1", "2"}));
    BOOST_CHECK_THROW(manager.commitBatch(Ids{1, 2}, Counts{2, 5}), InvalidArgumentError);
    BOOST_TEST(manager.stats().cachedNumBlocks == 0);
    BOOST_CHECK_THROW(manager.commitBatch(Ids{1, 9}, Counts{2, 1}), UnknownSequenceError);
    bool changed[2];
    manager.commitBatch(Ids{1, 2}, Counts{3, 4}, changed);
    BOOST_TEST(!changed[0]);
    BOOST_TEST(!changed[1]);
    BOOST_TEST(manager.stats().cachedNumBlocks == 3);
    add(manager, 3, text(10, 4), 1);
    manager.commitBatch(Ids{1, 3}, Counts{3, 4}, changed);
    BOOST_TEST(!changed[0]);
    BOOST_TEST(changed[1]);
    BOOST_TEST((manager.blockIds(2) == manager.blockIds(3)));
}

// The place of a token is taken before it is known; it is found only under the id that it got.
BOOST_AUTO_TEST_CASE(growsByTokensThatAreNamedLater)
{
    KVCacheManager manager{8, 2};
    ReuseScope const scope;
    add(manager, 1, text(10, 3), 4);
    add(manager, 2, text(20, 4), 3);
    using Ids = std::vector<SequenceId>;
    using Counts = std::vector<std::int64_t>;
    using Tokens = std::vector<TokenId>;
    auto const free = manager.stats().freeNumBlocks;
    manager.growBatch(Ids{1, 2});
    BOOST_TEST(manager.stats().freeNumBlocks == free - 1); // 1 has room in its last block, 2 has not
    auto const unnamed = says({"sequence 1", "no id yet"});
    BOOST_CHECK_EXCEPTION(manager.growBatch(Ids{2, 1}), InvalidArgumentError, says({"sequence 2", "no id yet"}));
    BOOST_CHECK_EXCEPTION(manager.appendBatch(Ids{1}, Tokens{7}), InvalidArgumentError, unnamed);
    BOOST_CHECK_EXCEPTION(static_cast<void>(manager.fork(1, 9)), InvalidArgumentError, unnamed);
    BOOST_CHECK_EXCEPTION(manager.commit(1, 4), InvalidArgumentError, says({"commit of 4", "0 to 3"}));
    manager.commitBatch(Ids{1, 2}, Counts{3, 4});
    BOOST_CHECK_EXCEPTION(manager.nameBatch(Ids{1, 2}, Tokens{7}), InvalidArgumentError, says({"2 ids", "1"}));
    BOOST_CHECK_THROW(manager.nameBatch(Ids{1, 3}, Tokens{7, 7}), UnknownSequenceError);
    manager.nameBatch(Ids{1, 2}, Tokens{70, 80});
    BOOST_CHECK_EXCEPTION(
        manager.nameBatch(Ids{1}, Tokens{7}), InvalidArgumentError, says({"sequence 1", "an id already"}));
    manager.commitBatch(Ids{1, 2}, Counts{4, 5});
    auto const probe = [&](Tokens tokens)
    {
        return manager.probe(tokens, nullptr, scope);
    };
    BOOST_TEST(probe({10, 11, 12, 70, 1}) == 4);
    BOOST_TEST(probe({10, 11, 12, 71, 1}) == 2);
    // One that ends before its token is known leaves what it has written, and no more.
    manager.growBatch(Ids{1, 2});
    manager.freeSequence(1);
    BOOST_TEST(probe({10, 11, 12, 70, kNoToken, 1}) == 4);
    // One that goes back may grow again.
    manager.rewind(2, 5);
    manager.growBatch(Ids{2});
    manager.nameBatch(Ids{2}, Tokens{81});
    manager.commit(2, 6);
    BOOST_TEST(probe({20, 21, 22, 23, 80, 81, 1}) == 6);
    // The last new token has no slot.
    manager.growBatch(Ids{2});
    manager.nameBatch(Ids{2}, Tokens{82});
    BOOST_CHECK_THROW(manager.growBatch(Ids{2}), CapacityExceededError);
    manager.freeSequence(2);
    BOOST_TEST(manager.stats().usedNumBlocks == 0);
    manager.checkIntegrity();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(state)

BOOST_AUTO_TEST_CASE(batchesDoWhatSingleCallsDo)
{
    KVCacheManager manager{8, 2};
    ReuseScope const scope;
    auto const one = text(0, 5);
    auto const two = text(10, 8);
    auto const request = [&](SequenceId id, Prompt const& prompt)
    {
        return SequenceRequest{id, prompt.tokens, prompt.media.view(), &scope, 1};
    };
    std::int64_t cached[3];
    using Requests = std::vector<SequenceRequest>;
    BOOST_CHECK_EXCEPTION(manager.addSequenceBatch(Requests{request(4, one), request(4, two)}, cached),
        InvalidArgumentError, says({"sequence 4", "2"}));
    BOOST_CHECK_THROW(
        manager.addSequenceBatch(Requests{request(4, one), request(5, text(0, 0))}, cached), InvalidArgumentError);
    BOOST_TEST(manager.numSequences() == 0u);
    manager.addSequenceBatch(Requests{request(1, one), request(2, two), request(3, two)}, cached);
    BOOST_TEST(cached[0] == 0);
    BOOST_TEST(cached[1] == 0);
    BOOST_TEST(cached[2] == -1); // the pool has one block left
    manager.commit(1, 5);
    manager.freeBatch(std::vector<SequenceId>{2, 1});
    BOOST_TEST(manager.numSequences() == 0u);
    manager.addSequenceBatch(Requests{request(1, one)}, cached);
    BOOST_TEST(cached[0] == 4);
}

BOOST_AUTO_TEST_CASE(tablesArePaddedToTheLongest)
{
    KVCacheManager manager{8, 2};
    add(manager, 5, text(0, 5));
    add(manager, 6, text(10, 1));
    auto const tables = manager.blockTables(std::vector<SequenceId>{6, 5});
    BOOST_TEST(tables.numRows == 2u);
    BOOST_TEST(tables.numColumns == 3u);
    auto const& five = manager.blockIds(5);
    BOOST_TEST(
        (tables.blocks == std::vector<BlockId>{manager.blockIds(6)[0], kNoBlock, kNoBlock, five[0], five[1], five[2]}));
    auto const none = manager.blockTables(std::vector<SequenceId>{});
    BOOST_TEST(none.numRows == 0u);
    BOOST_TEST(none.numColumns == 0u);
}

BOOST_AUTO_TEST_CASE(resetDropsWhatIsFindableForGood)
{
    KVCacheManager manager{16, 2};
    run(manager, text(50, 5));
    add(manager, 1, text(0, 5), 4);
    manager.commit(1, 5);
    BOOST_TEST(manager.resetReuseState() == 2);
    BOOST_TEST(manager.stats().cachedNumBlocks == 0);
    BOOST_TEST(probe(manager, text(0, 5)) == 0);
    BOOST_TEST(probe(manager, text(50, 5)) == 0);
    // What it still computes builds on KV from before, so it stays unfindable.
    manager.appendTokens(1, range(5, 2));
    manager.commit(1, 7);
    BOOST_TEST(probe(manager, text(0, 9)) == 0);
    manager.freeSequence(1);
    BOOST_TEST(manager.stats().freeNumBlocks == 16);
    BOOST_TEST(run(manager, text(0, 5)) == 0);
    BOOST_TEST(run(manager, text(0, 5)) == 4);
    BOOST_TEST(manager.resetReuseState() == 2);
}

BOOST_AUTO_TEST_CASE(statsCountWhatHappened)
{
    KVCacheManager manager{8, 2};
    BOOST_TEST(manager.stats().cacheHitRate() == 0.0);
    run(manager, text(0, 5));
    run(manager, text(0, 5));
    auto const stats = manager.stats();
    BOOST_TEST(stats.maxNumBlocks == 8);
    BOOST_TEST(stats.tokensPerBlock == 2);
    BOOST_TEST(stats.allocTotalBlocks == 6);
    BOOST_TEST(stats.allocNewBlocks == 4);
    BOOST_TEST(stats.reusedBlocks == 2);
    BOOST_TEST(stats.missedBlocks == 4);
    BOOST_TEST(stats.cacheHitRate() == 2.0 / 6.0);
    BOOST_TEST(stats.usedNumBlocks == 0);
    BOOST_TEST(stats.freeNumBlocks == 8);
    BOOST_TEST(stats.cachedNumBlocks == 2);
}

BOOST_AUTO_TEST_CASE(aPromiseIsRaisedWhileThePoolCanKeepIt)
{
    KVCacheManager manager{4, 4};
    add(manager, 1, text(0, 4), 1); // 4 slots, 1 block
    add(manager, 2, text(50, 4), 1);
    BOOST_CHECK_THROW(manager.appendTokens(1, range(0, 2)), CapacityExceededError);
    BOOST_TEST(manager.extendSequence(1, 2)); // 5 slots, 2 blocks
    BOOST_TEST(manager.extendSequence(1, 1)); // held already
    BOOST_TEST(manager.stats().reservedNumBlocks == 1);
    manager.appendTokens(1, range(0, 1));
    BOOST_TEST(manager.blockIds(1).size() == 2u);
    BOOST_TEST(manager.extendSequence(2, 5));
    BOOST_TEST(!manager.extendSequence(1, 6)); // 9 slots, a block that is not there
    BOOST_TEST(manager.stats().reservedNumBlocks == 1);
    manager.freeSequence(2);
    BOOST_TEST(manager.extendSequence(1, 6));
    manager.checkIntegrity();
    BOOST_CHECK_EXCEPTION(manager.extendSequence(1, 14), CapacityExceededError, says({"sequence 1", "17", "5", "4"}));
    BOOST_CHECK_THROW(manager.extendSequence(9, 1), UnknownSequenceError);
    for (auto const number : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()})
    {
        BOOST_CHECK_EXCEPTION(
            manager.extendSequence(1, number), InvalidArgumentError, says({"sequence 1", std::to_string(number)}));
    }
    manager.appendTokens(1, range(0, 5));
    BOOST_CHECK_EXCEPTION(manager.extendSequence(1, 7), InvalidArgumentError, says({"sequence 1", "10"}));
}

BOOST_AUTO_TEST_SUITE_END()
