// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/kvCacheManager.h"

#include "managerHelpers.h"

#include <boost/test/unit_test.hpp>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

//! 13 tokens with an item of 6 rows at 5.
Prompt basePrompt()
{
    return {std::vector<TokenId>(13, 7), mediaOf({{0, 5, 6}}), ReuseScope{"tenant", 3, 1, "speech"}};
}

void expectStop(
    KVCacheManager& manager, Prompt const& prompt, MatchStop stop, std::int64_t block, std::int64_t position)
{
    auto const got = manager.explain(prompt.tokens, prompt.media.view(), prompt.scope);
    BOOST_TEST(nameOf(got.stop) == nameOf(stop));
    BOOST_TEST(got.block == block);
    BOOST_TEST(got.position == position);
    BOOST_TEST(got.cachedTokens == probe(manager, prompt));
}

} // namespace

BOOST_AUTO_TEST_CASE(everyReasonIsNamed)
{
    for (auto const partial : {false, true})
    {
        KvCacheManagerConfig options;
        options.numBlocks = 16;
        options.tokensPerBlock = 4;
        options.enablePartialReuse = partial;
        KVCacheManager manager{options};
        auto const base = basePrompt();
        expectStop(manager, base, MatchStop::kUnknown, 0, 0);
        run(manager, base);
        expectStop(manager, base, MatchStop::kComplete, 3, 12);
        auto other = base;
        other.tokens[10] = 8;
        expectStop(manager, other, MatchStop::kTokens, 2, 10);
        other = base;
        other.media.digests[0][31] ^= 1;
        expectStop(manager, other, MatchStop::kMediaIdentity, 1, 5);
        other = base;
        other.media = {};
        expectStop(manager, other, MatchStop::kMediaIdentity, 1, 5);
        other = base;
        other.media = mediaOf({{0, 4, 6}});
        expectStop(manager, other, MatchStop::kMediaIdentity, 1, 4);
        other.media = mediaOf({{0, 0, 1}, {0, 5, 6}}); // the same item, one row further
        other.tokens[0] = 7;
        expectStop(manager, other, MatchStop::kMediaIdentity, 0, 0);
        other = base;
        other.media = mediaOf({{0, 5, 2}, {0, 7, 4}});
        expectStop(manager, other, MatchStop::kMediaRuns, 1, 7);
        other = base;
        other.media.identified[0] = 0;
        expectStop(manager, other, MatchStop::kUnidentified, 1, 5);
        other = base;
        other.scope.cacheSalt = "other";
        expectStop(manager, other, MatchStop::kSalt, 0, 0);
        other = base;
        other.scope.adapterVersion = 2;
        expectStop(manager, other, MatchStop::kAdapter, 0, 0);
        other = base;
        other.scope.adapterMode = "vision";
        expectStop(manager, other, MatchStop::kAdapterMode, 0, 0);
    }
}

BOOST_AUTO_TEST_CASE(anotherRowOfTheSameItem)
{
    KVCacheManager manager{16, 4};
    run(manager, {std::vector<TokenId>(9, 7), mediaOf({{0, 1, 2}, {0, 4, 4}}), {}});
    Prompt other{std::vector<TokenId>(9, 7), mediaOf({{0, 1, 2}, {0, 4, 4}}), {}};
    expectStop(manager, other, MatchStop::kComplete, 2, 8);
    run(manager, {std::vector<TokenId>(9, 7), mediaOf({{0, 4, 4}}), {}});
    other.media = mediaOf({{1, 1, 2}, {0, 4, 4}});
    other.media.digests[1] = digest(1);
    other.media.digests[0] = digest(1);
    expectStop(manager, other, MatchStop::kMediaOffset, 1, 4);
}

BOOST_AUTO_TEST_CASE(notCommittedAndEvicted)
{
    KVCacheManager manager{4, 2};
    add(manager, 1, text(0, 4));
    expectStop(manager, text(0, 5), MatchStop::kNotCommitted, 0, 0);
    manager.commit(1, 2);
    expectStop(manager, text(0, 5), MatchStop::kNotCommitted, 1, 2);
    expectStop(manager, text(5, 5), MatchStop::kTokens, 0, 0);
    manager.commit(1, 4);
    manager.freeSequence(1);
    run(manager, text(50, 6));
    expectStop(manager, text(0, 5), MatchStop::kEvicted, 1, 2);
}

BOOST_AUTO_TEST_CASE(anIncompleteBlockEndsWithoutADifference)
{
    KvCacheManagerConfig config;
    config.numBlocks = 8;
    config.tokensPerBlock = 4;
    config.enablePartialReuse = true;
    KVCacheManager manager{config};
    run(manager, text(0, 6));
    expectStop(manager, text(0, 9), MatchStop::kUnknown, 1, 6);
    auto other = text(0, 9);
    other.tokens[5] = 99;
    expectStop(manager, other, MatchStop::kTokens, 1, 5);
}

BOOST_AUTO_TEST_CASE(reuseOff)
{
    KVCacheManager manager{4, 2, false};
    expectStop(manager, text(0, 4), MatchStop::kReuseDisabled, 0, 0);
}
