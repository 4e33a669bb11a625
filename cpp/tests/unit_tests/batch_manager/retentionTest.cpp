// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/retention.h"

#include "errorHelpers.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <set>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

BOOST_AUTO_TEST_CASE(aBlockTakesTheRangeOfItsFirstToken)
{
    RetentionConfig const config{{{2, 10, {80, 500}}, {20, std::nullopt, {0, std::nullopt}}}, {60, 7}};
    config.check();
    BOOST_TEST(config.of(1, 30).priority == kDefaultPriority);
    BOOST_TEST(config.of(2, 30).priority == 80);
    BOOST_TEST(*config.of(9, 30).durationMs == 500);
    BOOST_TEST(config.of(10, 30).priority == kDefaultPriority);
    BOOST_TEST(config.of(29, 30).priority == 0);
    BOOST_TEST(config.of(30, 30).priority == 60);
    BOOST_TEST(*config.of(30, 30).durationMs == 7);
}

BOOST_AUTO_TEST_CASE(malformedRangesNameTheRangeAndBothNumbers)
{
    using Ranges = std::vector<TokenRangeRetention>;
    auto const refuse = [](Ranges ranges, BlockRetention decode, std::vector<std::string> parts)
    {
        BOOST_CHECK_EXCEPTION((RetentionConfig{ranges, decode}.check()), InvalidArgumentError, says(parts));
    };
    refuse({{-1, 4, {}}}, {}, {"range 0", "-1", "0"});
    refuse({{0, 4, {}}, {3, 9, {}}}, {}, {"range 1", "3", "4"});
    refuse({{0, std::nullopt, {}}, {3, 9, {}}}, {}, {"range 0", "1 more"});
    refuse({{4, 4, {}}}, {}, {"range 0", "ends at 4", "starts at 4"});
    refuse({{0, 4, {101, std::nullopt}}}, {}, {"range 0", "101", "100"});
    refuse({{0, 4, {-1, std::nullopt}}}, {}, {"range 0", "-1", "0"});
    refuse({{0, 4, {5, 0}}}, {}, {"range 0", "0 ms", "1"});
    refuse({}, {101, std::nullopt}, {"decode", "101"});
}

BOOST_AUTO_TEST_CASE(theClockMatchesAMap)
{
    constexpr BlockId kBlocks = 9;
    std::mt19937 random{5};
    RetentionClock clock{kBlocks};
    std::map<BlockId, std::int64_t> durations;
    std::map<BlockId, std::int64_t> expiries;
    std::int64_t now = 0;
    int numExpired = 0;
    for (int step = 0; step < 20000; ++step)
    {
        auto const block = static_cast<BlockId>(random() % kBlocks);
        switch (random() % 4)
        {
        case 0:
            clock.stop(block);
            expiries.erase(block);
            break;
        case 1:
            if (expiries.count(block) == 0)
            {
                auto const duration = static_cast<std::int64_t>(random() % 30);
                clock.setDuration(block, duration == 0 ? std::nullopt : std::optional<std::int64_t>{duration});
                durations[block] = duration;
            }
            break;
        case 2:
            clock.start(block);
            if (durations[block] != 0)
            {
                expiries.emplace(block, now + durations[block]);
            }
            break;
        case 3:
            now += static_cast<std::int64_t>(random() % 4);
            clock.advance(now);
            clock.advance(now - 3); // a clock that goes back is not followed
            std::set<BlockId> expected;
            for (auto entry = expiries.begin(); entry != expiries.end();)
            {
                auto const over = entry->second <= now;
                if (over)
                {
                    expected.insert(entry->first);
                    durations[entry->first] = 0;
                }
                entry = over ? expiries.erase(entry) : std::next(entry);
            }
            std::set<BlockId> found;
            for (auto over = clock.popExpired(); over != kNoBlock; over = clock.popExpired())
            {
                BOOST_REQUIRE(found.insert(over).second);
            }
            BOOST_REQUIRE((found == expected));
            numExpired += static_cast<int>(found.size());
            break;
        }
    }
    BOOST_TEST(numExpired > 500);
}
