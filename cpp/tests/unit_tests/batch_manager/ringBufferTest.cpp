// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/ringBuffer.h"

#include <boost/test/unit_test.hpp>

#include <deque>
#include <random>

using namespace tensorrt_llm::batch_manager;

BOOST_AUTO_TEST_SUITE(ringBuffer)

BOOST_AUTO_TEST_CASE(behavesAsADequeWhateverItsSizeAndWrap)
{
    RingBuffer<int> ring;
    std::deque<int> expected;
    std::mt19937 random{7};
    std::uint64_t popped = 0;
    std::size_t largest = 0;
    for (int step = 0; step < 20000; ++step)
    {
        // Grows and shrinks in long waves, so that it wraps at every size.
        auto const pushes = random() % 100 < (step / 1000 % 2 == 0 ? 60u : 40u);
        if (pushes || expected.empty())
        {
            ring.push(step);
            expected.push_back(step);
        }
        else
        {
            BOOST_REQUIRE(ring.front() == expected.front());
            ring.pop();
            expected.pop_front();
            ++popped;
        }
        largest = std::max(largest, ring.size());
        BOOST_REQUIRE(ring.size() == expected.size());
        BOOST_REQUIRE(ring.empty() == expected.empty());
        BOOST_REQUIRE(ring.begin() == popped);
        if (!expected.empty())
        {
            auto const index = random() % expected.size();
            BOOST_REQUIRE(ring[popped + index] == expected[index]);
            BOOST_REQUIRE(ring.back() == expected.back());
        }
    }
    BOOST_TEST(largest > 128u); // it has grown twice
}

BOOST_AUTO_TEST_SUITE_END()
