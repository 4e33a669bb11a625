# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0

# trtllm_fetch_pinned(OUT name suffix pattern file)
#
# Sets OUT to the include directory for header-only dependency `name`: the directory below which `file` lies inside the one
# package that `name`-requirements.txt, beside this module, names with its hash. pip fetches it from whatever index it is
# configured for, checks the hash and builds nothing. `suffix` is the archive's, `pattern` what to unpack of it. The result
# stays in the build directory, so only the first configure needs an index.
function(trtllm_fetch_pinned OUT name suffix pattern file)
  set(requirements "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}-requirements.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${requirements}")
  file(SHA256 "${requirements}" pin)
  string(SUBSTRING "${pin}" 0 16 pin)
  set(root "${CMAKE_BINARY_DIR}/_deps/${name}-${pin}")
  if(NOT EXISTS "${root}/unpacked")
    message(STATUS "${name}: fetching the pinned package")
    file(REMOVE_RECURSE "${root}")
    file(MAKE_DIRECTORY "${root}")
    # A source archive is asked for its name and version by its own build tool, which is setuptools: no isolation, no fetch.
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation
              --no-binary xxhash --require-hashes --requirement "${requirements}" --dest "${root}"
      RESULT_VARIABLE status
      OUTPUT_VARIABLE output
      ERROR_VARIABLE output)
    file(GLOB archive "${root}/*${suffix}")
    if(NOT status EQUAL 0 OR NOT archive)
      message(FATAL_ERROR "${name}: no suitable header on this system, and pip could not fetch the package in "
                          "${requirements}:\n${output}\nInstall the header or configure a package index.")
    endif()
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${root}" PATTERNS "${pattern}")
    file(REMOVE "${archive}")
    file(TOUCH "${root}/unpacked")
  endif()
  file(GLOB directory "${root}/${file}")
  list(LENGTH directory count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${name}: ${count} files match ${file} below ${root}, expected 1")
  endif()
  get_filename_component(directory "${directory}" DIRECTORY)
  set(${OUT} "${directory}" PARENT_SCOPE)
endfunction()
