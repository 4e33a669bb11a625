// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/kvCacheEvents.h"

#include "managerHelpers.h"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

namespace
{

KvCacheManagerConfig config(BlockId numBlocks, std::size_t maxEvents = 100)
{
    KvCacheManagerConfig result;
    result.numBlocks = numBlocks;
    result.tokensPerBlock = 2;
    result.eventBufferMaxSize = maxEvents;
    return result;
}

std::vector<KvCacheEvent> take(KVCacheManager& manager)
{
    manager.flushEvents();
    return manager.takeEvents(1000);
}

std::string hexadecimal(BlockName const& name)
{
    std::string text;
    for (auto const byte : name)
    {
        constexpr char const* kDigits = "0123456789abcdef";
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(names)

BOOST_AUTO_TEST_CASE(vectors)
{
    // The same as in docs/kv-cache.md, made with Python's hashlib from the layout described there.
    auto const plain = nameRoot({});
    BOOST_TEST(hexadecimal(plain) == "1ae0f812009a9da8a4d1671dd652198760c2e5fe0e29d3e3a2ac3c9e161ef200");
    BOOST_TEST(hexadecimal(nameRoot({"tenant", 3, 1, "speech"}))
               == "8ffffc738d8b670044eabc4c05286663d1d9698d8794d18666e1125c90f9431d");
    auto const tokens = range(1, 4);
    auto const text = nameBlock(plain, {tokens, {}});
    BOOST_TEST(hexadecimal(text) == "6259850602e32732694ebd3538f26bbaceb936e4fa2c86b02c94cbe8a428c3fa");
    std::vector<MediaSpan> const media{{digest(0xab), 5, 1, 3}};
    BOOST_TEST(hexadecimal(nameBlock(text, {tokens, media}))
               == "dc3632faf7cc56e7e6c738ac6996ba205ee5a1102c9f660a1d42040a934fb3e1");
}

BOOST_AUTO_TEST_CASE(everyPartIsNamed)
{
    auto const tokens = range(1, 4);
    std::vector<MediaSpan> const media{{digest(1), 5, 1, 2}};
    std::set<BlockName> seen;
    auto const isNew = [&](BlockName const& name)
    {
        return seen.insert(name).second;
    };
    BlockName const parent{1};
    BOOST_TEST(isNew(nameBlock(parent, {tokens, media})));
    BOOST_TEST(!isNew(nameBlock(parent, {tokens, media})));
    BOOST_TEST(isNew(nameBlock(BlockName{2}, {tokens, media})));
    BOOST_TEST(isNew(nameBlock(parent, {range(2, 4), media})));
    BOOST_TEST(isNew(nameBlock(parent, {tokens, {}})));
    for (auto const& change :
        std::vector<MediaSpan>{{digest(2), 5, 1, 2}, {digest(1), 6, 1, 2}, {digest(1), 5, 0, 2}, {digest(1), 5, 1, 3}})
    {
        std::vector<MediaSpan> const other{change};
        BOOST_TEST(isNew(nameBlock(parent, {tokens, other})));
    }
    auto halves = media;
    halves[0].digest[31] ^= 1;
    BOOST_TEST(isNew(nameBlock(parent, {tokens, halves})));
    for (auto const& scope : std::vector<ReuseScope>{{}, {"a", std::nullopt}, {std::nullopt, 0}, {std::nullopt, 1},
             {std::nullopt, 1, 1}, {std::nullopt, std::nullopt, 0, "a"}, {"a", 1, 0, "b"}, {"ab", 1}})
    {
        BOOST_TEST(isNew(nameRoot(scope)));
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(eventLog)

BOOST_AUTO_TEST_CASE(aPromptsLife)
{
    KVCacheManager manager{config(2)};
    auto events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST((events[0].kind == KvCacheEventKind::kCreated));
    BOOST_TEST((events[0].numBlocksPerLevel == std::vector<std::int64_t>{2, 0}));
    Prompt prompt = text(7, 4);
    prompt.scope.cacheSalt = "tenant";
    prompt.media = mediaOf({{0, 1, 2}});
    prompt.media.uuids = {std::optional<std::string>{"my \"cat\"\n"}};
    run(manager, prompt);
    events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0].id == 1);
    BOOST_TEST(*events[0].cacheSalt == "tenant");
    BOOST_TEST(!events[0].parent.has_value());
    BOOST_REQUIRE(events[0].stored.size() == 2u);
    auto const first = nameBlock(nameRoot(prompt.scope), {range(7, 2), std::vector<MediaSpan>{{digest(1), 0, 1, 1}}});
    auto const second = nameBlock(first, {range(9, 2), std::vector<MediaSpan>{{digest(1), 1, 0, 1}}});
    BOOST_TEST((events[0].stored[0].name == first));
    BOOST_TEST((events[0].stored[1].name == second));
    BOOST_TEST(*events[0].uuids[1] == "my \"cat\"\n");
    BOOST_TEST(toJson(events[0], 4).find(R"("start_offset":1,"uuid":"my \"cat\"\u000a")") != std::string::npos);
    BOOST_TEST(toJson(events[0], 4).find(R"("cache_salt":"tenant")") != std::string::npos);
    run(manager, text(50, 4));
    events = take(manager);
    BOOST_REQUIRE(events.size() == 2u);
    BOOST_TEST((events[0].names == std::vector<BlockName>{second, first}));
    BOOST_TEST((events[1].kind == KvCacheEventKind::kStored));
    manager.resetReuseState();
    BOOST_TEST(take(manager)[0].names.size() == 2u);
}

BOOST_AUTO_TEST_CASE(anIncompleteBlockIsNamedByWhatIsWritten)
{
    auto withTails = config(4);
    withTails.tokensPerBlock = 4;
    withTails.enablePartialReuse = true;
    KVCacheManager manager{withTails};
    auto prompt = text(7, 4);
    prompt.media = mediaOf({{0, 1, 3}});
    add(manager, 1, prompt);
    manager.commit(1, 3);
    manager.freeSequence(1);
    auto const events = take(manager);
    BOOST_REQUIRE(events.size() == 2u);
    auto const expected =
        nameBlock(nameRoot(prompt.scope), {range(7, 3), std::vector<MediaSpan>{{digest(1), 0, 1, 2}}});
    BOOST_TEST((events[1].stored[0].name == expected));
}

BOOST_AUTO_TEST_CASE(whatComesAndGoesBeforeAnybodyAsksIsNotMentioned)
{
    KVCacheManager manager{config(2)};
    take(manager);
    run(manager, text(0, 4));
    manager.flushEvents();
    run(manager, text(50, 4));
    auto const events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0].id == 1);
    BOOST_TEST(events[0].tokens[0] == 50);
}

BOOST_AUTO_TEST_CASE(eachBlockHasItsOwnTokensAlsoBeforeAnIncompleteOne)
{
    auto options = config(4);
    options.tokensPerBlock = 4;
    options.enablePartialReuse = true;
    KVCacheManager manager{options};
    take(manager);
    run(manager, text(10, 10));
    auto const events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_REQUIRE(events[0].stored.size() == 3u);
    BOOST_TEST(events[0].stored[0].numTokens == 4u);
    BOOST_TEST(events[0].stored[2].numTokens == 2u);
    auto const json = toJson(events[0], 16);
    auto const firstOf = [](TokenId token)
    {
        return R"("tokens":[{"type":"unique_token","token_id":)" + std::to_string(token) + ",";
    };
    for (auto const token : {10, 14, 18})
    {
        BOOST_TEST((json.find(firstOf(token)) != std::string::npos));
    }
}

BOOST_AUTO_TEST_CASE(onlyWhatIsFlushedIsGivenOut)
{
    KVCacheManager manager{config(4)};
    take(manager);
    run(manager, text(0, 2));
    BOOST_TEST(manager.takeEvents(10).empty());
    manager.flushEvents();
    run(manager, text(50, 2));
    BOOST_TEST(manager.takeEvents(10).size() == 1u);
    BOOST_TEST(take(manager).size() == 1u);
}

BOOST_AUTO_TEST_CASE(aChainGoesOnInTheSameEventUntilAFlush)
{
    KVCacheManager manager{config(8)};
    take(manager);
    add(manager, 1, text(0, 6));
    manager.commit(1, 2);
    manager.commit(1, 4);
    auto events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0].stored.size() == 2u);
    auto const second = events[0].stored[1].name;
    manager.commit(1, 6);
    events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST((*events[0].parent == second));
}

BOOST_AUTO_TEST_CASE(ofABlockWhoseStoredEventWasDroppedNothingIsToldButItStillNamesItsChildren)
{
    KVCacheManager manager{config(2, 1)};
    run(manager, text(0, 2));
    manager.flushEvents();
    run(manager, text(0, 4)); // the child's event drops the parent's
    BOOST_TEST(manager.stats().droppedEvents == 2);
    auto events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    auto const parent = nameBlock(nameRoot({}), {range(0, 2), {}});
    auto const child = nameBlock(parent, {range(2, 2), {}});
    BOOST_TEST(events[0].id == 2);
    BOOST_TEST((*events[0].parent == parent));
    BOOST_TEST((events[0].stored[0].name == child));
    manager.resetReuseState();
    events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST((events[0].names == std::vector<BlockName>{child}));
}

BOOST_AUTO_TEST_CASE(aFullBufferDropsTheOldestAndCounts)
{
    KVCacheManager manager{config(8, 2)};
    for (TokenId first = 0; first < 4; ++first)
    {
        run(manager, text(100 * first, 2));
        manager.flushEvents();
    }
    BOOST_TEST(manager.stats().droppedEvents == 3);
    auto const events = manager.takeEvents(1);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0].id == 3);
    BOOST_TEST(manager.takeEvents(5).size() == 1u);
}

BOOST_AUTO_TEST_CASE(updatesTellLevelAndPriority)
{
    auto options = config(1);
    options.hostBlocks = 1;
    KVCacheManager manager{options};
    run(manager, text(0, 2));
    take(manager);
    add(manager, 1, text(50, 2));
    auto events = take(manager);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0].level->first == 0);
    BOOST_TEST(events[0].level->second == 1);
    manager.freeSequence(1, false);
    manager.copiesDone(manager.takeCopyPlan().ticket);
    auto const prompt = text(0, 3);
    RetentionConfig const retention{{{0, std::nullopt, {80, std::nullopt}}}, {}};
    options.numBlocks = 2;
    KVCacheManager other{options};
    run(other, text(0, 2));
    take(other);
    SequenceRequest request{1, prompt.tokens, {}, &prompt.scope, 1};
    request.retention = &retention;
    other.addSequence(request);
    events = take(other);
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0].priority->first == 35);
    BOOST_TEST(events[0].priority->second == 80);
}

BOOST_AUTO_TEST_CASE(nothingIsRecordedWhereNobodyListens)
{
    KVCacheManager manager{config(4, 0)};
    run(manager, text(0, 4));
    BOOST_TEST(take(manager).empty());
}

BOOST_AUTO_TEST_SUITE_END()
