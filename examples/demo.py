# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``make demo``: the same audio request again and again, with block reuse on, over real HTTP.

    python examples/demo.py

Starts ``trtllm-serve demo``, a small trained Phi-4-multimodal, twice (block reuse on, and off to
compare with), plays one request five times and then others that overlap with it, and prints what
came back: a wrong hit would be a wrong answer. Every promise is checked: the exit status is 0 only
if all were kept. It takes less than a minute on two cores and leaves nothing behind.
"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
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

from examples.demo_media import data_uri
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

SAMPLES = Path(__file__).parent / "demo_model" / "media"
WIDTH = 114


def main() -> int:
    """Runs the demo and returns the exit status."""
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    # A polite end runs the clean-up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(console)
    except KeyboardInterrupt:
        console.print("interrupted; the servers are stopped")
        return 130
    except ServerFailedError as error:
        console.print(f"the demo could not run: {error}", style="red", markup=False)
        return 1


def _run(console: Console) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trtllm-demo-")))
        media = read_media(shutil.copytree(SAMPLES, folder / "media"))
        servers = [
            stack.enter_context(LocalServer(_arguments(folder, reuse), folder / f"{reuse}.log"))
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


def read_media(folder: Path) -> Media:
    """The sample files and what is right to say of them."""
    right = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    clip_a = folder / "clip_a.wav"
    return Media(
        clip_a_path=str(clip_a),
        clip_a_data=data_uri(clip_a, "audio/wav"),
        clip_b=str(folder / "clip_b.wav"),
        picture_1=str(folder / "picture_1.png"),
        picture_2=str(folder / "picture_2.png"),
        says_a=f"I hear {right['clip_a.wav']}.",
        says_b=f"I hear {right['clip_b.wav']}.",
        shows_1=f"I see {right['picture_1.png']}.",
        shows_2=f"I see {right['picture_2.png']}.",
    )


def _arguments(folder: Path, reuse: str) -> list[str]:
    return [
        *("demo", "--allowed_local_media_path", str(folder)),
        *("--kv_cache_free_gpu_memory_fraction", "0.5"),
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
    for head in (*heads, "right", "as\nfirst", "as reuse\noff"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    for row in rows:
        answer = row.on
        table.add_row(
            row.name,
            str(answer.status),
            f"{1e3 * answer.seconds:.0f} ms",
            str(answer.prompt_tokens),
            str(answer.cached_tokens),
            _yes(answer.text == row.right),
            "" if row.first is None else _yes(answer.text == row.first.text),
            _yes(answer.text == row.off.text),
            answer.text,
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
