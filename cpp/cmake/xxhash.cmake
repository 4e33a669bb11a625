# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0

# Gives the interface target trtllm_xxhash: the directory of xxhash.h, version 0.8 or later (the first with a stable
# 128-bit XXH3). A system header is taken if there is a suitable one, otherwise the one inside the pinned source package.

include(fetchPinned)
set(TRTLLM_XXHASH_MINIMUM 0.8.0)

# Sets OUT to the version that the header file says, or to the empty string.
function(trtllm_xxhash_version OUT header)
  set(version "")
  if(EXISTS "${header}")
    foreach(part MAJOR MINOR RELEASE)
      file(STRINGS "${header}" line REGEX "^#[ \t]*define[ \t]+XXH_VERSION_${part}[ \t]+[0-9]+" LIMIT_COUNT 1)
      if(line MATCHES "XXH_VERSION_${part}[ \t]+([0-9]+)")
        list(APPEND version "${CMAKE_MATCH_1}")
      endif()
    endforeach()
    string(JOIN "." version ${version})
  endif()
  set(${OUT} "${version}" PARENT_SCOPE)
endfunction()

find_path(TRTLLM_XXHASH_SYSTEM_DIR xxhash.h)
mark_as_advanced(TRTLLM_XXHASH_SYSTEM_DIR)
set(xxhash_dir "${TRTLLM_XXHASH_SYSTEM_DIR}")
trtllm_xxhash_version(xxhash_version "${xxhash_dir}/xxhash.h")
if(NOT xxhash_version OR xxhash_version VERSION_LESS TRTLLM_XXHASH_MINIMUM)
  trtllm_fetch_pinned(xxhash_dir xxhash .tar.gz "*/deps/xxhash/*" "*/deps/xxhash/xxhash.h")
  trtllm_xxhash_version(xxhash_version "${xxhash_dir}/xxhash.h")
endif()
message(STATUS "xxhash.h ${xxhash_version}: ${xxhash_dir}")

add_library(trtllm_xxhash INTERFACE)
target_include_directories(trtllm_xxhash SYSTEM INTERFACE "${xxhash_dir}")
