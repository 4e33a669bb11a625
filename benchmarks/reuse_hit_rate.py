# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-bench reuse`` with a tiny checkpoint that is made for it.

python benchmarks/reuse_hit_rate.py [--json FILE] [--model FOLDER] [--scale N]
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

import click
from transformers.utils import logging as transformers_logging

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tensorrt_llm.bench.reuse import machine, versions
from tensorrt_llm.commands.bench import bench_options, play_and_tell

__all__ = ["build_tiny", "machine", "versions"]


def build_tiny(out: Path, family: str = "phi4mm") -> str:
    """Writes a family's tiny checkpoint."""
    script = Path(__file__).resolve().parents[1] / "examples" / "tiny_checkpoints.py"
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build(family, out, 0)
    return str(out)


@click.command(help=__doc__.split("\n\n")[0])
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False),
    help="Phi-4-multimodal checkpoint; a tiny one is made by default.",
)
@bench_options
def main(model: str | None, json_file: Path | None, scale: int) -> None:
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        play_and_tell(model or build_tiny(Path(folder) / "phi4mm"), json_file, scale)


if __name__ == "__main__":
    main()
