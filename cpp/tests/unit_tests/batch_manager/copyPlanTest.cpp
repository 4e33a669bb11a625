// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/copyPlan.h"

#include "errorHelpers.h"
#include "testHelpers.h"

#include <boost/test/unit_test.hpp>

using namespace tensorrt_llm::batch_manager;
using namespace tensorrt_llm::batch_manager::testing;

BOOST_AUTO_TEST_CASE(plansAreTakenOnceAndDoneInOrder)
{
    CopyLedger ledger;
    BOOST_TEST(ledger.take().ticket == 0);
    BOOST_TEST(ledger.isDone(0));
    ledger.add({CopyKind::kPartial, 1, 2, 3}, 1);
    ledger.add({CopyKind::kOffload, 4, 0, 8}, kNoBlock);
    BOOST_TEST(ledger.next() == 1);
    BOOST_CHECK_EXCEPTION(
        ledger.done(1, [](std::int32_t, BlockId) {}), InvalidArgumentError, says({"ticket 1", "1 to 0"}));
    auto const first = ledger.take();
    BOOST_TEST(first.ticket == 1);
    BOOST_REQUIRE(first.entries.size() == 2u);
    BOOST_TEST(first.entries[1].source == 4);
    ledger.add({CopyKind::kOnboard, 0, 5, 8}, 7);
    auto const second = ledger.take();
    BOOST_TEST(second.ticket == 2);
    BOOST_TEST(ledger.numPending() == 3u);
    std::vector<BlockId> letGo;
    ledger.done(1, [&](std::int32_t, BlockId block) { letGo.push_back(block); });
    BOOST_TEST((letGo == std::vector<BlockId>{1}));
    BOOST_TEST(ledger.isDone(1));
    BOOST_TEST(!ledger.isDone(2));
    BOOST_CHECK_EXCEPTION(
        ledger.done(1, [](std::int32_t, BlockId) {}), InvalidArgumentError, says({"ticket 1", "2 to 2"}));
    ledger.done(2, [&](std::int32_t, BlockId block) { letGo.push_back(block); });
    BOOST_TEST((letGo == std::vector<BlockId>{1, 7}));
    BOOST_TEST(ledger.numPending() == 0u);
}

BOOST_AUTO_TEST_CASE(aCopyInAWindowPoolHoldsBothItsEndsThere)
{
    CopyLedger ledger;
    ledger.add({CopyKind::kFork, 1, 2, 3}, 1);
    ledger.add({CopyKind::kFork, 5, 6, 3, 2}, 5, 6);
    auto const plan = ledger.take();
    BOOST_TEST(plan.entries[0].pool == 0);
    BOOST_TEST(plan.entries[1].pool == 2);
    BOOST_TEST(ledger.numPending() == 2u);
    std::vector<std::pair<std::int32_t, BlockId>> const expected{{0, 1}, {2, 5}, {2, 6}};
    std::vector<std::pair<std::int32_t, BlockId>> held;
    auto const note = [&](std::int32_t pool, BlockId block)
    {
        held.emplace_back(pool, block);
    };
    ledger.forEachHeld(note);
    BOOST_TEST((held == expected));
    held.clear();
    ledger.done(plan.ticket, note);
    BOOST_TEST((held == expected));
}
