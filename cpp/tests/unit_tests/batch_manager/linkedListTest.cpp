// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/linkedList.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

using namespace tensorrt_llm::batch_manager;

namespace
{

//! The list from its first to its last entry, and that it reads the same backwards.
template <typename LinksOf>
std::deque<BlockId> entries(LinkedList const& list, LinksOf const& linksOf)
{
    std::deque<BlockId> forwards;
    for (auto id = list.first(); id != kNoBlock; id = linksOf(id).next)
    {
        forwards.push_back(id);
    }
    std::deque<BlockId> backwards;
    for (auto id = list.last(); id != kNoBlock; id = linksOf(id).previous)
    {
        backwards.push_front(id);
    }
    BOOST_TEST(forwards == backwards);
    return forwards;
}

} // namespace

BOOST_AUTO_TEST_SUITE(linkedList)

BOOST_AUTO_TEST_CASE(twoListsOverTheSameRecordsBehaveAsDeques)
{
    // What a record that is on no list holds must not matter.
    std::vector<ListLinks> links(12, {77, 78});
    auto const linksOf = [&](BlockId id) -> ListLinks&
    {
        return links[static_cast<std::size_t>(id)];
    };
    std::array<LinkedList, 2> lists;
    std::array<std::deque<BlockId>, 2> expected;
    std::mt19937 random{11};
    std::array<int, 4> removedAt{}; // only entry, first, last, between
    for (int step = 0; step < 20000; ++step)
    {
        auto const id = static_cast<BlockId>(random() % links.size());
        std::size_t on = 0;
        while (on < 2 && std::count(expected[on].begin(), expected[on].end(), id) == 0)
        {
            ++on;
        }
        if (on < 2)
        {
            auto& there = expected[on];
            ++removedAt[there.size() == 1 ? 0 : there.front() == id ? 1 : there.back() == id ? 2 : 3];
            there.erase(std::find(there.begin(), there.end(), id));
            lists[on].remove(id, linksOf);
        }
        else if (random() % 2 == 0)
        {
            lists[step % 2].pushFront(id, linksOf);
            expected[step % 2].push_front(id);
        }
        else
        {
            lists[step % 2].pushBack(id, linksOf);
            expected[step % 2].push_back(id);
        }
        for (std::size_t index = 0; index < lists.size(); ++index)
        {
            BOOST_TEST_REQUIRE(entries(lists[index], linksOf) == expected[index]);
            BOOST_TEST(lists[index].size() == static_cast<BlockId>(expected[index].size()));
            BOOST_TEST(lists[index].empty() == expected[index].empty());
        }
    }
    for (auto const count : removedAt)
    {
        BOOST_TEST(count > 100);
    }
}

BOOST_AUTO_TEST_SUITE_END()
