#!/usr/bin/env bash
# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0

# Builds the libFuzzer target with clang and runs it for the given number of seconds (60). What it finds stays in
# build/cpp-fuzzer/corpus, an input that fails in build/cpp-fuzzer.
#   PYTHON=PATH   the interpreter whose cmake and ninja are used; .venv/bin/python unless given
#   CLANGXX=PATH  the compiler; clang++, or the newest clang++-N, unless given

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-$PWD/.venv/bin/python}"
compiler="${CLANGXX:-$(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -V | head -n 1 || true)}"
if [[ -z "$compiler" ]]; then
  echo "run_fuzzer.sh: no clang++ here; install clang or set CLANGXX" >&2
  exit 1
fi
build="build/cpp-fuzzer"
PATH="$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH"

cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DTRTLLM_BUILD_PYTHON=OFF -DTRTLLM_BUILD_FUZZER=ON -DTRTLLM_SANITIZE=address,undefined -DPython_EXECUTABLE="$python"
cmake --build "$build" --parallel 2
mkdir -p "$build/corpus" "$build/seeds"
# An operation takes some ten bytes and a fault takes many operations, so it starts from long inputs and keeps them long.
"$python" -c '
import pathlib, random, sys
for seed in range(64):
    pathlib.Path(sys.argv[1], str(seed)).write_bytes(random.Random(seed).randbytes(4096))
' "$build/seeds"
cd "$build"
cpp/kvCacheManagerFuzzer -max_total_time="${1:-60}" -max_len=4096 -len_control=0 -print_final_stats=1 corpus seeds
