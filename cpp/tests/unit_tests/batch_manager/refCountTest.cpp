// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorrt_llm/batch_manager/refCount.h"

#include <boost/test/unit_test.hpp>

#include <cstdint>

using namespace tensorrt_llm::batch_manager;

BOOST_AUTO_TEST_CASE(countsHolders)
{
    RefCount count;
    BOOST_TEST(count.value() == 0u);
    BOOST_TEST(count.acquire() == 1u);
    BOOST_TEST(count.acquire() == 2u);
    BOOST_TEST(count.release() == 1u);
    BOOST_TEST(count.value() == 1u);
}

BOOST_AUTO_TEST_CASE(belowZeroThrowsAndLeavesTheValue)
{
    RefCount count;
    BOOST_CHECK_THROW(count.release(), InternalStateError);
    BOOST_TEST(count.value() == 0u);
    BOOST_TEST(count.acquire() == 1u);
}

BOOST_AUTO_TEST_CASE(pastTheTopThrowsAndLeavesTheValue)
{
    BasicRefCount<std::uint8_t> count;
    for (int holder = 0; holder < 255; ++holder)
    {
        count.acquire();
    }
    BOOST_CHECK_THROW(count.acquire(), InternalStateError);
    BOOST_TEST(int{count.value()} == 255);
    BOOST_TEST(int{count.release()} == 254);
}
