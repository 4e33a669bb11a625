# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0

# Gives the interface target trtllm_boost_test: Boost.Test, headers only. A system Boost is taken if it has it, otherwise
# the headers inside the pinned package.

include(fetchPinned)
find_path(TRTLLM_BOOST_SYSTEM_DIR boost/test/included/unit_test.hpp)
mark_as_advanced(TRTLLM_BOOST_SYSTEM_DIR)
set(boost_dir "${TRTLLM_BOOST_SYSTEM_DIR}")
if(NOT boost_dir)
  trtllm_fetch_pinned(boost_dir boost .whl "*/include/boost/*" "*/include/boost")
endif()
message(STATUS "Boost.Test: ${boost_dir}")

add_library(trtllm_boost_test INTERFACE)
target_include_directories(trtllm_boost_test SYSTEM INTERFACE "${boost_dir}")
