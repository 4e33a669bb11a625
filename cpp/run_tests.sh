#!/usr/bin/env bash
# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0

# Configures, builds and runs the C++ unit tests in a debug build, where every operation checks the invariants.
#   PYTHON=PATH     the interpreter whose pip, cmake and ninja are used; .venv/bin/python unless given
#   SANITIZE=LIST   sanitizers for -fsanitize, for example address,undefined or thread
#   CPP_TESTS=LIST  the test programs to build and run; all unless given
# Arguments go to ctest.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-$PWD/.venv/bin/python}"
sanitize="${SANITIZE:-}"
build="build/cpp-tests${sanitize:+-${sanitize//,/-}}"
# The build tools of the interpreter's environment go before those of the system.
PATH="$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH"

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTRTLLM_BUILD_PYTHON=OFF -DTRTLLM_BUILD_TESTS=ON \
  -DTRTLLM_SANITIZE="$sanitize" -DPython_EXECUTABLE="$python"
read -ra tests <<<"${CPP_TESTS:-}"
cmake --build "$build" --parallel 2 ${tests:+--target "${tests[@]}"}
ctest --test-dir "$build" --output-on-failure --no-tests=error ${tests:+-R "^($(IFS='|'; echo "${tests[*]}"))\$"} "$@"
