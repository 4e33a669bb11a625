# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-bench``: measures a checkpoint on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tensorrt_llm.errors import ConfigurationError, EngineError
from tensorrt_llm.llmapi.checkpoint import check_checkpoint
from tensorrt_llm.version import __version__

_Function = TypeVar("_Function", bound=Callable[..., Any])


@click.group()
@click.version_option(__version__, prog_name="trtllm-bench")
def main() -> None:
    """Measures how a checkpoint is served on this machine."""


def bench_options(function: _Function) -> _Function:
    """Gives a command the options that all benchmarks have."""
    function = click.option(
        "--scale",
        type=click.IntRange(1, 100),
        default=1,
        show_default=True,
        help="Times as many requests.",
    )(function)
    return click.option(
        "--json",
        "json_file",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        help="Write the figures to FILE.",
    )(function)


@main.command()
@click.argument("model", type=click.Path())
@bench_options
def reuse(model: str, json_file: Path | None, scale: int) -> None:
    """Plays four workloads with and without block reuse.

    MODEL is the folder of a Phi-4-multimodal checkpoint. The table says how many prompt tokens were
    found in the cache, how many could have been, and how many answers differ from those without
    reuse; if there is one, the exit code is 1.
    """
    try:
        check_checkpoint(model)
        play_and_tell(model, json_file, scale)
    except (ConfigurationError, EngineError) as error:
        raise click.ClickException(str(error)) from None


def play_and_tell(model: str, json_file: Path | None, scale: int) -> None:
    """Runs the reuse benchmark and prints its figures.

    Args:
        model: Folder of the checkpoint.
        json_file: Where to write them as well.
        scale: Times as many requests.

    Raises:
        click.ClickException: If an answer with reuse differs from the one without.
    """
    # Imported here: torch takes seconds, and wrong options are told before.
    from tensorrt_llm.bench.reuse import report, run, table_of

    rows = run(model, scale)
    click.echo(table_of(rows))
    if json_file is not None:
        json_file.write_text(json.dumps(report(rows), indent=2) + "\n", encoding="utf-8")
    if any(row.wrong_hits for row in rows):
        raise click.ClickException("there are wrong hits")
