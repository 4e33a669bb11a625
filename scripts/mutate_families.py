# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Leaves out each rule about what an item's rows and keys depend on, and sees that a test fails.

    python scripts/mutate_families.py [--only NAME]...

Each rule stands in one place of the source and has one test that is to notice. A copy of the tree
is made (``build/family_mutants``), the tests are run there once as it is, and then one rule at a
time is taken out of the copy. Prints a table: the rule, and the test that failed. Ends with status
1 if any rule could be left out. The sources themselves are never touched.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "family_mutants"
FOLDERS = ("tensorrt_llm", "tests", "examples", "benchmarks", "scripts")

# An editable installation finds the package in the tree it was installed from, before any path.
HERE_FIRST = """
import sys

sys.meta_path[:] = [
    finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"
]
"""


@dataclass(frozen=True)
class Mutation:
    """A rule.

    Attributes:
        name: What it says.
        file: Where it stands, below ``tensorrt_llm``.
        old: The words that say it.
        new: What stands there without it.
        test: The one that notices, below ``tests/unittest``.
    """

    name: str
    file: str
    old: str
    new: str
    test: str


PHI = "inputs/processors/phi4mm.py"
ROTARY = "_torch/models/rotary.py"
SCOPE = "_torch/pyexecutor/resource_manager.py"
LLAVA = "inputs/processors/llava_onevision.py"
VIDEO = "inputs/multimodal_data.py"
PLACES = "inputs/positions.py"
QWEN2 = "inputs/processors/qwen2_vl.py"

PHI_SOUND = (
    "inputs/processors/test_phi4mm.py::test_sound_alone_and_sound_beside_a_picture_are_two_items"
)
ADAPTERS = "executor/test_executor_lora.py::"
OF_VIDEO = "inputs/processors/test_qwen_video.py::"
IDENTITY = (
    "inputs/test_identity_matrix.py::test_two_payloads_are_one_item_exactly_when_they_mean_the_same"
)
STOCK_PLACES = (
    "_torch/models/test_modeling_qwen2_vl.py::test_positions_and_delta_are_those_of_the_stock_model"
)

MUTATIONS = (
    Mutation(
        "sound: its projection is in the key",
        PHI,
        '{"projection": projection, "processor"',
        '{"processor"',
        PHI_SOUND,
    ),
    Mutation(
        "sound: a picture beside it decides",
        PHI,
        '"vision" if "image" in present else "speech")',
        '"speech")',
        PHI_SOUND,
    ),
    Mutation(
        "sound: the encoder is told which",
        PHI,
        '{"audio_projection_mode": projection}',
        '{"audio_projection_mode": "speech"}',
        PHI_SOUND,
    ),
    Mutation(
        "sound: a clip is extracted alone",
        PHI,
        "features = extractor(samples, sampling_rate=extractor.sampling_rate, "
        'return_tensors="pt")\n        return {name: features[name] for',
        "features = extractor([samples, np.tile(samples, 2)], "
        "sampling_rate=extractor.sampling_rate, "
        'return_tensors="pt")\n        return {name: features[name][:1] for',
        "inputs/processors/test_phi4mm.py::test_clips_are_extracted_alone_as_the_stock_class_does",
    ),
    Mutation(
        "longrope: one set of factors for life",
        ROTARY,
        "    rotary.rope_type = _PINNED\n",
        "",
        "_torch/models/test_modeling_phi4mm.py::test_a_long_neighbour_does_not_change_a_short_request",
    ),
    Mutation(
        "longrope: that of the longest sequence",
        ROTARY,
        "seq_len=max_seq_len",
        "seq_len=1",
        "_torch/models/test_rotary.py::test_one_set_of_factors_serves_every_length",
    ),
    Mutation(
        "adapter: chosen by what is there",
        PHI,
        'if "image" in present:',
        'if "image" in present and "audio" not in present:',
        PHI_SOUND,
    ),
    Mutation(
        "adapter: the family's is in the key",
        SCOPE,
        "adapter_mode=request.request.prompt.adapter_mode",
        'adapter_mode=""',
        "executor/test_executor_multimodal.py::"
        "test_text_before_media_is_shared_within_an_adapter_mode_only",
    ),
    Mutation(
        "adapter: the caller's is in the key",
        SCOPE,
        # Both are halves of one digest; either alone tells two adapters apart.
        "adapter_id=None if adapter is None else adapter.adapter_id,\n        "
        "adapter_version=0 if adapter is None else adapter.version",
        "adapter_id=None",
        f"{ADAPTERS}test_adapters_and_none_run_in_one_step_and_share_only_with_their_own",
    ),
    Mutation(
        "adapter: what an encoder made with it",
        "_torch/pyexecutor/item_encoder.py",
        'b"".join(adapter.digest for adapter in adapters) or None',
        "None",
        f"{ADAPTERS}test_rows_of_media_are_shared_unless_the_encoder_is_adapted",
    ),
    Mutation(
        "tiles: for every picture",
        LLAVA,
        "grid = best_grid(image.height, image.width, settings.grids)",
        "grid = (settings.tile, settings.tile)",
        "inputs/processors/test_llava_onevision.py::"
        "test_a_picture_is_cut_into_tiles_whatever_stands_beside_it",
    ),
    Mutation(
        "tiles: how they are cut is in the key",
        LLAVA,
        'context={"processor": self._fingerprint},',
        "context={},",
        "inputs/processors/test_settings_count.py::"
        "test_other_settings_make_other_identities[llava_onevision]",
    ),
    Mutation(
        "rows of a picture see each other",
        "_torch/models/modeling_gemma3.py",
        'bidirectional_modalities = frozenset({"image"})',
        "bidirectional_modalities = frozenset()",
        "_torch/models/test_modeling_gemma3.py::test_without_either_rule_the_logits_are_wrong[both]",
    ),
    Mutation(
        "so a chunk ends in no picture",
        "_torch/pyexecutor/llm_request.py",
        "tokens = max(0, run.position - self.num_written)",
        "pass",
        "_torch/pyexecutor/test_llm_request.py::"
        "test_a_chunk_ends_before_a_run_that_does_not_fit_or_behind_it",
    ),
    Mutation(
        "but a prefix that is found may",
        "_torch/pyexecutor/model_engine.py",
        "if run.position < chunk.end and chunk.begin < run.position + run.length",
        "if run.position < chunk.end and chunk.begin <= run.position",
        "executor/test_executor_families.py::"
        "test_reuse_that_ends_before_inside_and_after_an_item[gemma3]",
    ),
    Mutation(
        "video: which frames is in the key",
        VIDEO,
        "        frame_indices=video.frame_indices,\n",
        "",
        IDENTITY,
    ),
    Mutation(
        "video: when they are shown is in the key",
        VIDEO,
        "        timestamps=video.timestamps,\n",
        "",
        f"{OF_VIDEO}test_all_of_a_video_and_its_own_options_count",
    ),
    Mutation(
        "video: its rate is in the key",
        VIDEO,
        "        fps=video.fps,\n",
        "",
        f"{OF_VIDEO}test_all_of_a_video_and_its_own_options_count",
    ),
    Mutation(
        "video: the rate decides places",
        QWEN2,
        "step = np.float32(rate) * np.float32(seconds_per_group(video, self._video_settings))",
        "pass",
        STOCK_PLACES,
    ),
    Mutation(
        "video: times stand in the prompt",
        "inputs/processors/qwen3_vl.py",
        "{(group[0] + group[-1]) / 2:.1f}",
        "0.0",
        f"{OF_VIDEO}test_ids_of_qwen3_are_those_of_the_stock_processor",
    ),
    Mutation(
        "grid: a picture's size is in the key",
        "inputs/payload_form.py",
        "shape=shape, dtype=dtype, mode=mode, size=size)",
        "dtype=dtype, mode=mode)",
        IDENTITY,
    ),
    Mutation(
        "grid: rows stand on its lines",
        PLACES,
        "np.divmod(np.arange(height * width, dtype=np.int32), width)",
        "np.divmod(np.arange(height * width, dtype=np.int32), height)",
        STOCK_PLACES,
    ),
    Mutation(
        "grid: text goes on at its far edge",
        PLACES,
        "return ItemPositions(relative, max(height, width))",
        "return ItemPositions(relative, height * width)",
        "inputs/processors/test_qwen2_vl.py::"
        "test_places_follow_the_shape_also_where_a_repeat_is_not_preprocessed",
    ),
)


def prepare() -> None:
    """A fresh copy of the tree, with the compiled module beside its Python half."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, COPY / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", COPY)
    (COPY / "sitecustomize.py").write_text(HERE_FIRST)
    compiled = importlib.util.find_spec("tensorrt_llm.bindings._bindings")
    if compiled is None or compiled.origin is None:
        raise SystemExit("the compiled module is not installed: make setup")
    shutil.copy2(compiled.origin, COPY / "tensorrt_llm" / "bindings")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python with the copy's package."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(COPY),
        "PYTHONDONTWRITEBYTECODE": "1",
        # An engine of its own would be another process that has to find the copy.
        "TLLM_WORKER_USE_SINGLE_PROCESS": "1",
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=COPY, env=environment, capture_output=True, text=True, check=False
    )


def failure(*tests: str) -> str | None:
    """The first test that fails.

    Raises:
        SystemExit: If the tests could not be run: that shows nothing.
    """
    finished = run(
        *("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"),
        *(f"tests/unittest/{test}" for test in tests),
    )
    if finished.returncode == 0:
        return None
    failed = [line for line in finished.stdout.splitlines() if line.startswith("FAILED ")]
    if finished.returncode != 1 or not failed:
        raise SystemExit(
            f"{tests} did not run:\n{finished.stdout[-4000:]}{finished.stderr[-2000:]}"
        )
    return failed[0].removeprefix("FAILED ").split(" - ")[0].removeprefix("tests/unittest/")


def try_mutation(mutation: Mutation) -> str | None:
    """Who noticed, or None."""
    target = COPY / "tensorrt_llm" / mutation.file
    original = target.read_text()
    if original.count(mutation.old) != 1:
        raise SystemExit(
            f"{mutation.name}: {original.count(mutation.old)} places in {mutation.file}, expected 1"
        )
    target.write_text(original.replace(mutation.old, mutation.new))
    try:
        return failure(mutation.test)
    finally:
        target.write_text(original)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="a rule's name; may be given again")
    wanted = parser.parse_args().only
    chosen = [one for one in MUTATIONS if not wanted or one.name in wanted]
    prepare()
    found = run("-c", "import tensorrt_llm; print(tensorrt_llm.__file__)").stdout.strip()
    if Path(found).parent != COPY / "tensorrt_llm":
        raise SystemExit(f"the copy is not what is tested, but {found}")
    failed = failure(*dict.fromkeys(one.test for one in chosen))
    if failed:
        raise SystemExit(f"{failed} fails without any mutation")
    missed = 0
    print(f"{'left out':42} noticed by", flush=True)
    for mutation in chosen:
        noticed = try_mutation(mutation)
        missed += noticed is None
        print(f"{mutation.name:42} {noticed or 'NOBODY'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
