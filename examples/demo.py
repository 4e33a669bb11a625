# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``make demo``: the same audio request again and again, with block reuse on, over real HTTP.

    python examples/demo.py

Builds a tiny Phi-4-multimodal, starts ``trtllm-serve`` twice (block reuse on, and off to compare
with), plays one request five times and then others that overlap with it, and prints what came back.
Every promise is checked: the exit status is 0 only if all were kept. It takes less than a minute
on two cores and leaves nothing behind.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.demo_media import data_uri, write_clip, write_picture
from examples.demo_requests import (
    TOKENS_PER_BLOCK,
    Media,
    Row,
    Session,
    broken_promises,
    play,
    summary,
)
from examples.demo_server import LocalServer, ServerFailedError

CHECKPOINT_SCRIPT = Path(__file__).with_name("tiny_checkpoints.py")


def main() -> int:
    """Runs the demo and returns the exit status."""
    console = Console(highlight=False, soft_wrap=True)
    # A polite end runs the clean-up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(console)
    except KeyboardInterrupt:
        console.print("interrupted; the servers are stopped")
        return 130
    except (ServerFailedError, subprocess.CalledProcessError) as error:
        console.print(f"the demo could not run: {error}", style="red", markup=False)
        return 1


def _run(console: Console) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trtllm-demo-")))
        model = _build_model(console, folder)
        media = _make_media(folder)
        servers = [
            stack.enter_context(
                LocalServer(_arguments(model, folder, reuse), folder / f"{reuse}.log")
            )
            for reuse in ("enable_block_reuse", "no_enable_block_reuse")
        ]
        _wait_for(console, servers)
        rows = _play(console, servers, media)
        console.print(_table(rows))
        broken = broken_promises(rows)
        if broken:
            _report(console, broken, servers)
            return 1
        console.print(summary(rows))
        return 0


def _build_model(console: Console, folder: Path) -> Path:
    model = folder / "tiny-phi4mm"
    with console.status("building a tiny Phi-4-multimodal checkpoint"):
        built = subprocess.run(
            [sys.executable, str(CHECKPOINT_SCRIPT), "phi4mm", str(model)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            start_new_session=True,
        )
    console.print(built.stdout.strip(), markup=False)
    return model


def _make_media(folder: Path) -> Media:
    clip_a = write_clip(folder / "a.wav", seed=1)
    clip_b = write_clip(folder / "b.wav", seed=2)
    return Media(
        clip_a_path=str(clip_a),
        clip_a_data=data_uri(clip_a, "audio/wav"),
        clip_b=str(clip_b),
        picture_1=str(write_picture(folder / "1.png", seed=3)),
        picture_2=str(write_picture(folder / "2.png", seed=4)),
    )


def _arguments(model: Path, folder: Path, reuse: str) -> list[str]:
    return [
        *(str(model), "--trust_remote_code"),
        *("--allowed_local_media_path", str(folder)),
        *("--max_seq_len", "8192", "--kv_cache_free_gpu_memory_fraction", "0.5"),
        *("--tokens_per_block", str(TOKENS_PER_BLOCK)),
        f"--{reuse}",
    ]


def _wait_for(console: Console, servers: list[LocalServer]) -> None:
    console.print("starting it twice, with block reuse on, and off to compare with:")
    console.print(f"  {shlex.join(['trtllm-serve', *servers[0].command[1:]])}", markup=False)
    began = time.monotonic()
    with console.status("loading the model"):
        for server in servers:
            server.wait_until_ready()
    console.print(f"ready after {time.monotonic() - began:.1f} s\n")


def _play(console: Console, servers: list[LocalServer], media: Media) -> list[Row]:
    with (
        console.status("asking") as status,
        Session(servers[0].url) as on,
        Session(servers[1].url) as off,
    ):
        return play(on, off, media, lambda name: status.update(f"asking: {name}"))


def _table(rows: list[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("request", no_wrap=True)
    heads = ("HTTP", "first\ntoken", "prompt\ntokens", "cached\ntokens")
    for head in (*heads, "as\nfirst", "as reuse\noff"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        answer = row.on
        table.add_row(
            row.name,
            str(answer.status),
            f"{1e3 * answer.seconds:.0f} ms",
            str(answer.prompt_tokens),
            str(answer.cached_tokens),
            "" if row.first is None else _yes(answer.text == row.first.text),
            _yes(answer.text == row.off.text),
        )
    return table


def _yes(value: bool) -> str:
    return "yes" if value else "NO"


def _report(console: Console, broken: list[str], servers: list[LocalServer]) -> None:
    console.print("what broke:", style="red")
    for line in broken:
        console.print(f"  {line}", style="red", markup=False)
    for server in servers:
        console.print(f"\nend of the log of {' '.join(server.command)}:", markup=False)
        console.print(server.log_tail(), markup=False)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
