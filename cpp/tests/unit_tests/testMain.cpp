// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0

// The one place where the test framework itself is compiled; every test program links it.
#define BOOST_TEST_MODULE tensorrt_llm
#include <boost/test/included/unit_test.hpp>
