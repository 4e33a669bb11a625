# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What does a request cost that names an uploaded video by its id?

    python benchmarks/file_repeat.py [--json FILE] [--turns N]

Videos of growing size are uploaded once and asked about by ``file_id``. A repeat is timed from the
application's call to the engine's queue, in processor time of the process, so that what others do
on the machine counts little. It must not depend on the size, and nothing may be decoded.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import av
import click
import httpx
import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.media_hash import ROUNDS, one_processor, post, quietest
from benchmarks.reuse_hit_rate import build_tiny, machine, versions
from tensorrt_llm import LLM
from tensorrt_llm.errors import QueueFullError
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig

SIZES = {"small": (112, 10), "medium": (448, 60), "large": (896, 200)}
"""Side of the pictures in pixels, and how many there are."""

MOST_BYTES = 2**30


def video(side: int, frames: int) -> bytes:
    """An MP4 of noise, which compresses badly."""
    made, noise = io.BytesIO(), np.random.default_rng(0)
    with av.open(made, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = side
        stream.pix_fmt = "yuv420p"
        for _ in range(frames):
            pixels = noise.integers(0, 255, (side, side, 3), dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return made.getvalue()


async def upload(server: OpenAIServer, data: bytes) -> str:
    """Its id."""
    transport = httpx.ASGITransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://t", timeout=None) as client:
        answer = await client.post("/v1/files", files={"file": ("v.mp4", data, "video/mp4")})
    if answer.status_code != 200:
        raise click.ClickException(f"an upload was answered with {answer.text}")
    return answer.json()["id"]


async def measure(server: OpenAIServer, body: bytes, turns: int) -> list[float]:
    """Milliseconds of processor time for each of some repeats."""
    spent = []
    for _ in range(turns):
        start = time.process_time()
        await post(server.app, body)
        spent.append((time.process_time() - start) * 1000)
    return spent


def rows_of(model: str, turns: int) -> list[dict[str, Any]]:
    """One row a size."""

    def full(request: object) -> None:
        raise QueueFullError("measured up to here")

    rows = []
    with LLM(model, kv_cache_config={"max_tokens": 32_768}, max_seq_len=16_384) as llm:
        config = ServerConfig(
            "tiny",
            MediaAccess(allow_loopback=True),
            max_request_bytes=MOST_BYTES,
            max_stored_bytes=MOST_BYTES,
        )
        server = OpenAIServer(llm, config)
        for name, (side, frames) in SIZES.items():
            data = video(side, frames)
            began = time.perf_counter()
            part = {"type": "video_url", "file_id": asyncio.run(upload(server, data))}
            uploaded = (time.perf_counter() - began) * 1000
            words = {"type": "text", "text": "What happens?"}
            asked = {"messages": [{"role": "user", "content": [part, words]}], "max_tokens": 1}
            body = json.dumps(asked).encode()
            answered = asyncio.run(post(server.app, body))
            if answered != 200:
                raise click.ClickException(f"the first request was answered with {answered}")
            decodes = server.media_loader.decodes
            llm.submit = full  # type: ignore[method-assign,assignment]
            rounds, alone = [], []
            for _ in range(ROUNDS):
                rounds.append(asyncio.run(measure(server, body, max(1, turns // ROUNDS))))
                with one_processor():
                    alone.append(asyncio.run(measure(server, body, max(1, turns // ROUNDS))))
            del llm.submit
            rows.append(
                {
                    "video": f"{name}: {frames} frames of {side} x {side}",
                    "mb": round(len(data) / 1e6, 2),
                    "upload_ms": round(uploaded, 1),
                    "cpu_ms": quietest(rounds),
                    "one_processor_ms": quietest(alone),
                    "decodes": server.media_loader.decodes - decodes,
                }
            )
    return rows


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True))
@click.option("--turns", default=200, show_default=True, help="Repeats of each request.")
def main(json_file: str | None, turns: int) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(build_tiny(Path(folder) / "model", "qwen2_vl"), turns)
    report = {"rows": rows, "machine": machine(), "versions": versions()}
    report["command"] = "python benchmarks/file_repeat.py"
    table = Table(box=box.SIMPLE)
    for column in rows[0]:
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if json_file is not None:
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
