// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/slotTable.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <random>
#include <set>

using namespace tensorrt_llm::batch_manager;

namespace
{

//! Every entry that find passes for a hash.
std::set<BlockId> entries(SlotTable const& table, std::uint64_t hash)
{
    std::set<BlockId> found;
    while (table.find(hash, [&](BlockId block) { return found.count(block) == 0 && found.insert(block).second; })
           != kNoBlock)
    {
    }
    return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(thePredicateDecidesAmongEqualHashes)
{
    SlotTable table{4};
    table.insert(7, 0);
    table.insert(7, 3);
    BOOST_TEST(table.find(7, [](BlockId block) { return block == 3; }) == 3);
    BOOST_TEST(table.find(7, [](BlockId block) { return block == 1; }) == kNoBlock);
    table.replace(7, 3, 1);
    BOOST_TEST(table.find(7, [](BlockId block) { return block == 1; }) == 1);
    BOOST_TEST(table.count() == 2);
    table.clear();
    BOOST_TEST(table.count() == 0);
}

BOOST_AUTO_TEST_CASE(randomChangesMatchAMap)
{
    constexpr BlockId kBlocks = 40;
    // Few homes and few upper halves, at the end of the table too, so that probes are long and wrap around.
    for (std::uint64_t const spread : {1U, 3U, 1000U})
    {
        std::mt19937_64 random{spread};
        SlotTable table{kBlocks};
        std::map<BlockId, std::uint64_t> model;
        for (int step = 0; step < 20000; ++step)
        {
            auto const block = static_cast<BlockId>(random() % kBlocks);
            if (auto const known = model.find(block); known != model.end())
            {
                table.erase(known->second, block);
                model.erase(known);
            }
            else
            {
                auto const hash = (~(random() % spread)) << 32 | random() % 2;
                table.insert(hash, block);
                model[block] = hash;
            }
            if (step % 8 == 0)
            {
                BOOST_REQUIRE(table.count() == static_cast<std::int64_t>(model.size()));
                for (auto const& [id, hash] : model)
                {
                    BOOST_REQUIRE(entries(table, hash).count(id) == 1u);
                }
            }
        }
    }
}
