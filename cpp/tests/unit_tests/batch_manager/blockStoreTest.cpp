// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/blockStore.h"

#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

constexpr std::int32_t kTokens = 8;

//! The part of spans that lies in the first \p length tokens.
std::vector<MediaSpan> cut(std::vector<MediaSpan> const& spans, std::int32_t length)
{
    std::vector<MediaSpan> result;
    for (auto span : spans)
    {
        if (span.blockOffset < length)
        {
            span.length = std::min(span.length, length - span.blockOffset);
            result.push_back(span);
        }
    }
    return result;
}

struct Key
{
    std::vector<TokenId> tokens;
    std::vector<MediaSpan> media;
};

Key randomKey(std::mt19937& random)
{
    Key key;
    for (int index = 0; index < kTokens; ++index)
    {
        key.tokens.push_back(random() % 6 == 0 ? 8 : 7);
    }
    for (auto position = static_cast<std::int32_t>(random() % 5); position < kTokens;)
    {
        auto const length = std::min(kTokens - position, static_cast<std::int32_t>(1 + random() % 4));
        key.media.push_back({digest(static_cast<std::uint8_t>(random() % 2)), static_cast<std::int64_t>(random() % 2),
            position, length});
        position += length + static_cast<std::int32_t>(random() % 4);
    }
    return key;
}

} // namespace

BOOST_AUTO_TEST_CASE(aKeyIsReadAsItWasWritten)
{
    std::mt19937 random{3};
    BlockStore store{5, kTokens};
    std::vector<Key> keys(5);
    std::vector<MediaSpan> scratch;
    for (int step = 0; step < 2000; ++step)
    {
        auto const block = static_cast<BlockId>(random() % 5);
        auto& key = keys[static_cast<std::size_t>(block)];
        key = randomKey(random);
        store.setKey(block, {key.tokens, key.media});
        store.checkIntegrity();
        for (BlockId other = 0; other < 5; ++other)
        {
            auto const& expected = keys[static_cast<std::size_t>(other)];
            if (!expected.tokens.empty())
            {
                BOOST_REQUIRE((store.key(other, scratch) == BlockKeyView{expected.tokens, expected.media}));
                BOOST_REQUIRE(
                    store.hasKey(other, {key.tokens, key.media})
                    == (BlockKeyView{expected.tokens, expected.media} == BlockKeyView{key.tokens, key.media}));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(commonTokensIsTheLongestCutThatIsEqual)
{
    std::mt19937 random{4};
    BlockStore store{1, kTokens};
    int numInside = 0;
    for (int step = 0; step < 20000; ++step)
    {
        auto const stored = randomKey(random);
        auto wanted = random() % 2 == 0 ? randomKey(random) : stored;
        if (random() % 2 == 0)
        {
            wanted.tokens[random() % kTokens] = 9;
        }
        auto const length = static_cast<std::int32_t>(1 + random() % kTokens);
        wanted.tokens.resize(static_cast<std::size_t>(length));
        wanted.media = cut(wanted.media, length);
        std::int32_t expected = 0;
        for (std::int32_t common = 1; common <= length; ++common)
        {
            auto const one = cut(stored.media, common);
            auto const other = cut(wanted.media, common);
            auto const size = static_cast<std::size_t>(common);
            if (BlockKeyView{ArrayView<TokenId>{stored.tokens}.slice(0, size), one}
                == BlockKeyView{ArrayView<TokenId>{wanted.tokens}.slice(0, size), other})
            {
                expected = common;
            }
        }
        store.setKey(0, {stored.tokens, stored.media});
        BOOST_REQUIRE(store.commonTokens(0, {wanted.tokens, wanted.media}) == expected);
        numInside += expected > 0 && expected < length ? 1 : 0;
    }
    BOOST_TEST(numInside > 1000);
}

BOOST_AUTO_TEST_CASE(aCutKeyEndsWithItsMedia)
{
    std::mt19937 random{5};
    BlockStore store{2, kTokens};
    std::vector<MediaSpan> scratch;
    for (int step = 0; step < 2000; ++step)
    {
        auto key = randomKey(random);
        auto const block = static_cast<BlockId>(random() % 2);
        store.setKey(block, {key.tokens, key.media});
        auto const length = static_cast<std::int32_t>(1 + random() % (kTokens - 1));
        store.cutTokens(block, static_cast<std::size_t>(length), scratch);
        store.checkIntegrity();
        key.tokens.resize(static_cast<std::size_t>(length));
        key.media = cut(key.media, length);
        BOOST_REQUIRE((store.key(block, scratch) == BlockKeyView{key.tokens, key.media}));
    }
}
