# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Does a test fail for each part of the block key that is left out?

    python scripts/mutate_block_key.py [--only NAME]...

Breaks a copy of the C++ sources in one place at a time, builds the tests that are to notice, and
prints a table: the mutation, and the first test program that failed. Ends with status 1 if any
mutation was not noticed. The sources themselves are never touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "mutants"
TESTS = ("blockKeyTest", "blockStoreTest", "kvCacheManagerTest", "kvCacheEventsTest")
SOURCES = "cpp/tensorrt_llm/batch_manager"
KEY, STORE, TREE = (
    f"{SOURCES}/blockKey.cpp",
    f"{SOURCES}/blockStore.cpp",
    f"{SOURCES}/radixBlockTree.cpp",
)
ADMISSION, LIFETIME = (
    f"{SOURCES}/kvCacheManagerAdmission.cpp",
    f"{SOURCES}/kvCacheManagerLifetime.cpp",
)
EVENTS = f"{SOURCES}/kvCacheEvents.cpp"


@dataclass(frozen=True)
class Mutation:
    """One place, and what stands there instead."""

    name: str
    file: str
    old: str
    new: str


DIGEST_IS_EQUAL = "return digest == other.digest && rowOffset"
HALF = "return std::equal(digest.begin(){0}, digest.end(){1}, other.digest.begin(){0}) && rowOffset"

MUTATIONS = (
    Mutation("digest, second half", KEY, DIGEST_IS_EQUAL, HALF.format("", " - 16")),
    Mutation("digest, first half", KEY, DIGEST_IS_EQUAL, HALF.format(" + 16", "")),
    Mutation("row offset", KEY, "rowOffset == other.rowOffset", "true"),
    Mutation("offset in the block", KEY, "blockOffset == other.blockOffset", "true"),
    Mutation("length", KEY, "&& length == other.length", ""),
    Mutation(
        "tokens",
        STORE,
        "|| std::memcmp(tokens(block), key.tokens.data(), mTokensPerBlock * sizeof(TokenId)) != 0",
        "",
    ),
    Mutation("media", STORE, "record.numSpans != key.media.size()", "false"),
    Mutation("parent", TREE, "record.parent == parent && mStore", "mStore"),
    Mutation("salt", KEY, "return cacheSalt == other.cacheSalt && ", "return "),
    Mutation("adapter id", KEY, "adapterId == other.adapterId && ", ""),
    Mutation("adapter version", KEY, "adapterVersion == other.adapterVersion", "true"),
    Mutation("adapter mode", KEY, "&& adapterMode == other.adapterMode", ""),
    Mutation("equality at all (hash decides)", TREE, " && mStore.hasKey(block, key)", ""),
    Mutation(
        "hash: digest", KEY, "spans.size() * sizeof(MediaSpan));\n    return {", "8);\n    return {"
    ),
    Mutation("hash: parent", KEY, "mixed(parent * odd + own)", "mixed(odd + own)"),
    Mutation(
        "last token is computed",
        ADMISSION,
        "(length - 1) / tokensPerBlock()",
        "length / tokensPerBlock()",
    ),
    Mutation(
        "findable before it is written",
        LIFETIME,
        "auto const full = numWritten / tokensPerBlock();",
        "auto const full = sequence.numTokens / tokensPerBlock();",
    ),
    Mutation(
        "items without identity",
        ADMISSION,
        "media.firstUnidentified().value_or(",
        "std::optional<std::int64_t>{}.value_or(",
    ),
    Mutation("name: parent", EVENTS, "writer.bytes(parent.data(), parent.size());", ""),
    Mutation("name: row offset", EVENTS, "static_cast<std::uint64_t>(span.rowOffset), 8", "0, 8"),
    Mutation("name: salt", EVENTS, "writer.text(scope.cacheSalt.value_or(std::string{}));", ""),
)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def build() -> str:
    """Builds the tests; gives what went wrong."""
    made = run("cmake", "--build", str(COPY / "build"), "--parallel", "2", "--target", *TESTS)
    return "" if made.returncode == 0 else made.stdout + made.stderr


def prepare() -> None:
    """A copy of the sources, with its own build folder, which is kept between runs."""
    COPY.mkdir(parents=True, exist_ok=True)
    shutil.copy2(ROOT / "CMakeLists.txt", COPY)
    for source in sorted((ROOT / "cpp").rglob("*")):
        target = COPY / source.relative_to(ROOT)
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DTRTLLM_BUILD_PYTHON=OFF", "-DTRTLLM_BUILD_TESTS=ON"]
    options += [f"-DPython_EXECUTABLE={sys.executable}"]
    made = run("cmake", "-S", str(COPY), "-B", str(COPY / "build"), "-G", "Ninja", *options)
    problem = (made.stdout + made.stderr if made.returncode else "") or build()
    if problem:
        raise SystemExit(f"the unchanged copy does not build:\n{problem}")


def first_failure() -> str | None:
    """The first test program that fails, or that crashes or hangs."""
    for test in TESTS:
        program = COPY / "build" / "cpp" / "tests" / test
        try:
            finished = subprocess.run([str(program)], capture_output=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            return f"{test} (hangs)"
        if finished.returncode != 0:
            return test
    return None


def try_mutation(mutation: Mutation) -> str | None:
    """Who noticed, or None."""
    original = (ROOT / mutation.file).read_text()
    if original.count(mutation.old) != 1:
        raise SystemExit(
            f"{mutation.name}: {original.count(mutation.old)} places in {mutation.file}, expected 1"
        )
    target = COPY / mutation.file
    target.write_text(original.replace(mutation.old, mutation.new))
    try:
        problem = build()
        if problem:
            raise SystemExit(f"{mutation.name}: the mutant does not build:\n{problem}")
        return first_failure()
    finally:
        target.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="a mutation's name; may be given again")
    wanted = parser.parse_args().only
    prepare()
    failed = first_failure()
    if failed:
        raise SystemExit(f"{failed} fails without any mutation")
    missed = 0
    print(f"{'left out':32} noticed by", flush=True)
    for mutation in MUTATIONS:
        if wanted and mutation.name not in wanted:
            continue
        noticed = try_mutation(mutation)
        missed += noticed is None
        print(f"{mutation.name:32} {noticed or 'NOBODY'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
