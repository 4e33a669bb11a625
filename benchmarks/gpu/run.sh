#!/usr/bin/env bash
# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the extension with the machine's own python3 and torch, runs the tests marked gpu, measures, and writes JSON.
#
#   benchmarks/gpu/run.sh OUTPUT_FOLDER [build|tests|measure]...     all three by default
#
# Needs torch built for CUDA, triton, transformers, and the packages of pyproject.toml. The build folder is build/gpu;
# where there is no network, CMAKE_INCLUDE_PATH may name a folder with xxhash.h.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
steps=("${@:-}")
[[ -n "${steps[0]}" ]] || steps=(build tests measure)
export HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1

for step in "${steps[@]}"; do
  case $step in
    build)
      # Into a folder of its own, so that nothing of the machine's environment changes; the tests and the benchmark run
      # from the source tree, which gets the extension module alone.
      python3 -m pip install -q --no-build-isolation --no-deps --no-index --upgrade --target build/gpu/site \
        -C build-dir=build/gpu/cmake .
      cp build/gpu/site/tensorrt_llm/bindings/*.so tensorrt_llm/bindings/
      ;;
    tests)
      # What another version of a library warns of is no finding here.
      python3 -m pytest -q -m gpu -o filterwarnings=default -p no:cacheprovider --timeout 240 tests/unittest/_torch \
        tests/unittest/executor 2>&1 | tee "$out/gpu-tests.txt"
      ;;
    measure)
      python3 benchmarks/gpu/measure.py --json "$out/h200-phi4mm.json" 2>&1 | tee "$out/measure.txt"
      ;;
    *)
      echo "unknown step: $step" >&2
      exit 2
      ;;
  esac
done
