# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Does a test fail for each part of the block key, and of what guards its use, that is left out?

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
TESTS = (
    "blockKeyTest",
    "blockStoreTest",
    "kvCacheManagerTest",
    "kvCacheEventsTest",
    "kvCacheManagerPartialTest",
    "kvCacheManagerTiersTest",
    "kvCacheManagerMemoryFuzzTest",
)
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
BLOCKS = f"{SOURCES}/kvCacheManagerBlocks.cpp"
STORE_HEADER = "cpp/include/tensorrt_llm/batch_manager/blockStore.h"
# The test that is likely to notice, built and run before the others.
LIKELY = {
    KEY: "blockKeyTest",
    STORE: "blockStoreTest",
    STORE_HEADER: "blockStoreTest",
    TREE: "kvCacheManagerTest",
    ADMISSION: "kvCacheManagerPartialTest",
    LIFETIME: "kvCacheManagerTest",
    BLOCKS: "kvCacheManagerTiersTest",
    EVENTS: "kvCacheEventsTest",
}


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
        STORE_HEADER,
        "&& std::memcmp(own, key.tokens.data(), mTokensPerBlock * sizeof(TokenId)) == 0",
        "",
    ),
    Mutation("media", STORE_HEADER, "numSpans == key.media.size()", "true"),
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
    Mutation(
        "items without identity, generated",
        LIFETIME,
        "std::min(full, sequence.shareableBlocks)",
        "full",
    ),
    Mutation(
        "items without identity, partial",
        ADMISSION,
        "std::min(mMatch.shareableBlocks, blocksFor(length))",
        "blocksFor(length)",
    ),
    Mutation("partial: media", STORE, "    return cut;", "    return common;"),
    Mutation(
        "partial: last token is computed",
        ADMISSION,
        "static_cast<std::size_t>(length - 1 - begin)",
        "static_cast<std::size_t>(length - begin)",
    ),
    Mutation("taken over: leaves only", ADMISSION, "idle && mTree.isLeaf(block)", "idle"),
    Mutation(
        "taken over: nobody holds it",
        ADMISSION,
        "record.state == BlockState::kCached && !record.onHost;",
        "!record.onHost;",
    ),
    Mutation(
        "kept tail: written tokens only",
        LIFETIME,
        "mStore.cutTokens(tail, static_cast<std::size_t>(numTokens), mSpans);",
        "",
    ),
    Mutation(
        "kept tail: identity",
        LIFETIME,
        "numTokens <= 0 || static_cast<std::int64_t>(index) >= ending.shareableBlocks",
        "numTokens <= 0",
    ),
    Mutation(
        "kept tail: media is cut",
        STORE,
        "span.length = std::min(span.length, end - span.blockOffset);",
        "",
    ),
    Mutation("freed without keeping", LIFETIME, "!ending.keep && mPolicy", "false && mPolicy"),
    Mutation(
        "fork: copy of what is written",
        LIFETIME,
        "    if (tailTokens != 0)",
        "    if (tailTokens < 0)",
    ),
    Mutation(
        "fork: written blocks only are shared",
        LIFETIME,
        "static_cast<std::size_t>(from.numWritten / tokensPerBlock())",
        "static_cast<std::size_t>(from.numTokens / tokensPerBlock())",
    ),
    Mutation(
        "rewind: not below what is committed",
        LIFETIME,
        "std::max(target.promptLength, target.numWritten)",
        "target.promptLength",
    ),
    Mutation(
        "copies: rewind keeps what is read",
        LIFETIME,
        "mCopies.isDone(target.ticket) && target",
        "target",
    ),
    Mutation(
        "copies: the ended wait", LIFETIME, "mCopies.isDone(ending.ticket)", "ending.ticket >= 0"
    ),
    Mutation(
        "copies: new blocks wait",
        BLOCKS,
        "sequence.ticket = mCopies.next(); // what lay there is being read",
        "",
    ),
    Mutation(
        "copies: equal block being offloaded",
        LIFETIME,
        "stillCopiedToHost || ownIsInCopy",
        "ownIsInCopy",
    ),
    Mutation(
        "tiers: what is on the host is fetched", ADMISSION, "onboard(mMatch.blocks[index]);", ""
    ),
    Mutation(
        "tiers: least priority",
        BLOCKS,
        "cached && mStore[block].level >= mOffloadMinPriority",
        "cached",
    ),
    Mutation(
        "retention: falls back",
        BLOCKS,
        "    mStore[block].priority = kDefaultPriority;\n    auto const level",
        "    auto const level",
    ),
    Mutation(
        "retention: of what is found", ADMISSION, "added.retention && index", "false && index"
    ),
    Mutation(
        "reset: sequences forget",
        LIFETIME,
        "        sequence.shareableBlocks = 0;\n",
        "",
    ),
    Mutation("name: parent", EVENTS, "writer.bytes(parent.data(), parent.size());", ""),
    Mutation("name: row offset", EVENTS, "static_cast<std::uint64_t>(span.rowOffset), 8", "0, 8"),
    Mutation("name: salt", EVENTS, "writer.text(scope.cacheSalt.value_or(std::string{}));", ""),
)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def build(*tests: str) -> str:
    """Builds tests; gives what went wrong."""
    made = run("cmake", "--build", str(COPY / "build"), "--parallel", "2", "--target", *tests)
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
    problem = (made.stdout + made.stderr if made.returncode else "") or build(*TESTS)
    if problem:
        raise SystemExit(f"the unchanged copy does not build:\n{problem}")


def first_failure(likely: str = TESTS[0]) -> str | None:
    """The first test program that fails, crashes or hangs; the likely one is tried first."""
    environment = {**os.environ, "TRTLLM_FUZZ_STEPS": "500"}
    for test in sorted(TESTS, key=lambda name: name != likely):
        problem = build(test)
        if problem:
            raise SystemExit(f"{test} does not build:\n{problem}")
        program = COPY / "build" / "cpp" / "tests" / test
        try:
            finished = subprocess.run(
                [str(program)], env=environment, capture_output=True, check=False, timeout=120
            )
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
        return first_failure(LIKELY[mutation.file])
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
