// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/blockKey.h"

#include "errorHelpers.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <functional>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

BOOST_AUTO_TEST_SUITE(scope)

BOOST_AUTO_TEST_CASE(equalOnlyIfEveryPartIs)
{
    ReuseScope const base{"tenant", 3, 1, "speech"};
    BOOST_TEST((base == ReuseScope{"tenant", 3, 1, "speech"}));
    BOOST_TEST((ReuseScope{} == ReuseScope{std::nullopt, std::nullopt}));
    std::vector<ReuseScope> const others{{"tenanu", 3, 1, "speech"}, {std::nullopt, 3, 1, "speech"},
        {"tenant", 4, 1, "speech"}, {"tenant", std::nullopt, 1, "speech"}, {"tenant", 3, 2, "speech"},
        {"tenant", 3, 1, "vision"}, {"tenant", 3, 1, ""}};
    BlockKeyHasher hasher;
    for (auto const& other : others)
    {
        BOOST_TEST((base != other));
        BOOST_TEST(!(hasher.hashScope(base) == hasher.hashScope(other)));
    }
    BOOST_TEST((hasher.hashScope(base) == hasher.hashScope({"tenant", 3, 1, "speech"})));
}

BOOST_AUTO_TEST_CASE(textMovesNoBoundaryBetweenParts)
{
    // Framed by length: salt "ab" with mode "c" is not salt "a" with mode "bc".
    BlockKeyHasher hasher;
    BOOST_TEST(!(hasher.hashScope({"ab", 0, 0, "c"}) == hasher.hashScope({"a", 0, 0, "bc"})));
}

BOOST_AUTO_TEST_CASE(emptySaltIsRejected)
{
    BOOST_CHECK_EXCEPTION(
        (ReuseScope{std::string{}, std::nullopt}), InvalidArgumentError, says({"cache_salt", "0", "1"}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout)

BOOST_AUTO_TEST_CASE(rowsCountOverTheRunsOfTheirItem)
{
    // Item 0 has rows 0..4 at 1..5 and rows 5..6 at 9..10; item 1 stands between.
    MediaLayout const layout{mediaOf({{0, 1, 5}, {1, 6, 2}, {0, 9, 2}}), 14};
    auto const tokens = range(0, 14);
    PromptKeys keys;
    keys.build(tokens, 4, 4, layout);
    using Spans = std::vector<MediaSpan>;
    auto const spansOf = [&](std::size_t block)
    {
        return Spans{keys[block].media.begin(), keys[block].media.end()};
    };
    BOOST_TEST(keys.size() == 4u);
    BOOST_TEST((spansOf(0) == Spans{{digest(1), 0, 1, 3}}));
    BOOST_TEST((spansOf(1) == Spans{{digest(1), 3, 0, 2}, {digest(2), 0, 2, 2}}));
    BOOST_TEST((spansOf(2) == Spans{{digest(1), 5, 1, 2}}));
    BOOST_TEST(spansOf(3).empty());
    BOOST_TEST(keys[3].tokens.size() == 2u);
    BOOST_TEST(keys.numWhole() == 3u);
    // A cut in the middle of a run ends the last span there.
    keys.build(ArrayView<TokenId>{tokens}.slice(0, 7), 4, 2, layout);
    BOOST_TEST((spansOf(1) == Spans{{digest(1), 3, 0, 2}, {digest(2), 0, 2, 1}}));
}

BOOST_AUTO_TEST_CASE(aChainOfHashesIsWhatHashingBlockByBlockGives)
{
    MediaLayout const layout{mediaOf({{0, 0, 9}, {1, 9, 1}, {2, 11, 1}, {1, 12, 3}}), 20};
    auto const tokens = range(0, 20);
    for (auto const function : {&xxh3Hash, &crowdedHash})
    {
        BlockKeyHasher hasher{function};
        PromptKeys keys;
        keys.build(tokens, 2, 10, layout);
        keys.hash(0, 10, {5, 6}, hasher);
        std::vector<BlockHash> expected;
        BlockHash parent{5, 6};
        for (std::size_t block = 0; block < 10; ++block)
        {
            parent = hasher.hashBlock(parent, keys[block]);
            BOOST_TEST((keys.hashOf(block) == parent));
            expected.push_back(parent);
        }
        // In stretches, as a match asks for them.
        keys.build(tokens, 2, 10, layout);
        keys.hash(4, 7, expected[3], hasher);
        keys.hash(7, 10, keys.hashOf(6), hasher);
        for (std::size_t block = 4; block < 10; ++block)
        {
            BOOST_TEST((keys.hashOf(block) == expected[block]));
        }
    }
    PromptKeys keys;
    BOOST_TEST(keys.size() == 0u);
}

BOOST_AUTO_TEST_CASE(firstTokenWithoutIdentity)
{
    auto media = mediaOf({{0, 1, 2}, {1, 5, 2}, {0, 8, 1}});
    BOOST_TEST((MediaLayout{media, 10}.firstUnidentified() == std::nullopt));
    media.identified[1] = 0;
    BOOST_TEST((MediaLayout{media, 10}.firstUnidentified() == std::optional<std::int64_t>{5}));
}

BOOST_AUTO_TEST_CASE(malformedRunsNameTheRuleAndBothNumbers)
{
    struct Case
    {
        std::function<void(MediaRuns&)> spoil;
        std::vector<std::string> parts;
    };

    std::vector<Case> const cases{
        {[](MediaRuns& m) { m.identified.pop_back(); }, {"identified", "1", "2"}},
        {[](MediaRuns& m) { m.itemRows.push_back(1); }, {"item_rows", "3", "2"}},
        {[](MediaRuns& m) { m.runPositions.pop_back(); }, {"run_positions", "2", "3"}},
        {[](MediaRuns& m) { m.runLengths.push_back(1); }, {"run_lengths", "4", "3"}},
        {[](MediaRuns& m) { m.runItems[1] = 2; }, {"run 1", "item 2 of 2"}},
        {[](MediaRuns& m) { m.runItems[1] = -1; }, {"run 1", "item -1 of 2"}},
        {[](MediaRuns& m) { m.runLengths[0] = 0; }, {"run 0", "length 0"}},
        {[](MediaRuns& m) { m.runLengths[0] = -3; }, {"run 0", "length -3"}},
        {[](MediaRuns& m) { m.runPositions[0] = -1; }, {"run 0", "position -1"}},
        {[](MediaRuns& m) { m.runPositions[1] = 3; }, {"run 1", "3", "4"}},
        {[](MediaRuns& m) { std::swap(m.runPositions[1], m.runPositions[2]); }, {"run 2", "5", "12"}},
        {[](MediaRuns& m) { m.runPositions[2] = 11; }, {"run 2", "2 tokens at 11", "12"}},
        {[](MediaRuns& m) { m.runPositions[2] = INT64_MAX; }, {"run 2", "12"}},
        {[](MediaRuns& m) { m.runLengths[2] = INT64_MAX; }, {"run 2", "12"}},
        {[](MediaRuns& m) { m.itemRows[0] = 6; }, {"item 0", "5", "6"}},
        {[](MediaRuns& m) { m.runItems[1] = 0; }, {"item 0", "7", "5"}},
        {[](MediaRuns& m)
            {
                m.digests.push_back(digest(9));
                m.identified.push_back(1);
                m.itemRows.push_back(0);
            },
            {"item 2", "0"}},
    };
    auto const good = mediaOf({{0, 1, 3}, {1, 5, 2}, {0, 10, 2}});
    BOOST_CHECK_NO_THROW((MediaLayout{good, 12}));
    for (std::size_t index = 0; index < cases.size(); ++index)
    {
        BOOST_TEST_CONTEXT("case " << index)
        {
            auto media = good;
            cases[index].spoil(media);
            BOOST_CHECK_EXCEPTION((MediaLayout{media, 12}), InvalidMediaRunsError, says(cases[index].parts));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(key)

BOOST_AUTO_TEST_CASE(equalityAndHashSeeEveryPart)
{
    auto const tokens = range(10, 4);
    std::vector<MediaSpan> const media{{digest(1), 3, 0, 2}, {digest(2), 0, 3, 1}};
    BlockKeyHasher hasher;
    BlockHash const parent{1, 2};
    auto const base = hasher.hashBlock(parent, {tokens, media});

    auto const sameTokens = tokens;
    auto const sameMedia = media;
    BOOST_TEST((BlockKeyView{tokens, media} == BlockKeyView{sameTokens, sameMedia}));
    BOOST_TEST((base == hasher.hashBlock(parent, {sameTokens, sameMedia})));
    BOOST_TEST(!(base == hasher.hashBlock({1, 3}, {tokens, media})));
    BOOST_TEST(!(base == hasher.hashBlock({2, 2}, {tokens, media})));

    auto const differs = [&](std::vector<TokenId> const& otherTokens, std::vector<MediaSpan> const& otherMedia)
    {
        BOOST_TEST(!(BlockKeyView{tokens, media} == BlockKeyView{otherTokens, otherMedia}));
        BOOST_TEST(!(base == hasher.hashBlock(parent, {otherTokens, otherMedia})));
    };
    for (std::size_t index = 0; index < tokens.size(); ++index)
    {
        auto other = tokens;
        other[index] += 1;
        differs(other, media);
    }
    for (std::size_t byte = 0; byte < MediaDigest{}.size(); ++byte)
    {
        auto other = media;
        other[1].digest[byte] ^= 1;
        differs(tokens, other);
    }
    std::vector<std::function<void(std::vector<MediaSpan>&)>> const changes{
        [](auto& spans) { spans[0].rowOffset += 1; },
        [](auto& spans) { spans[1].rowOffset += std::int64_t{1} << 32; },
        [](auto& spans) { spans[1].blockOffset -= 1; },
        [](auto& spans) { spans[0].length -= 1; },
        [](auto& spans) { std::swap(spans[0].digest, spans[1].digest); },
        [](auto& spans) { spans.pop_back(); },
        [](auto& spans) { spans.clear(); },
        [](auto& spans) { spans = {{digest(1), 3, 0, 1}, {digest(1), 4, 1, 1}, {digest(2), 0, 3, 1}}; },
    };
    for (auto const& change : changes)
    {
        auto other = media;
        change(other);
        differs(tokens, other);
    }
}

BOOST_AUTO_TEST_CASE(theHashFunctionIsInjectable)
{
    BlockKeyHasher hasher{&constantHash};
    auto const one = range(1, 4);
    auto const two = range(2, 4);
    BOOST_TEST((hasher.hashBlock({0, 0}, {one, {}}) == hasher.hashBlock({0, 0}, {two, {}})));
    BOOST_TEST((hasher.hashScope({}) == hasher.hashScope({"salt", 1})));
}

BOOST_AUTO_TEST_SUITE_END()
