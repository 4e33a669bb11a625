// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/lazyArray.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace tensorrt_llm::batch_manager;

BOOST_AUTO_TEST_CASE(startsAsZerosOnACacheLine)
{
    for (std::size_t const size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20})
    {
        LazyArray<std::int32_t> array{size};
        BOOST_TEST(array.size() == size);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(array.data()) % 64 == 0u);
        BOOST_TEST((std::count(array.begin(), array.end(), 0) == static_cast<std::ptrdiff_t>(size)));
        if (size > 0)
        {
            array[size - 1] = 5;
            BOOST_TEST(array.end()[-1] == 5);
        }
    }
}

BOOST_AUTO_TEST_CASE(movesWithItsValues)
{
    LazyArray<std::int32_t> first{4};
    first[3] = 9;
    auto const second = std::move(first);
    BOOST_TEST(second[3] == 9);
}
