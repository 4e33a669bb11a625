# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How fast is media identified, and what does a repeat cost?

    python benchmarks/media_hash.py [--json FILE] [--vllm-python PYTHON] [--seconds S]

The first table gives the rate of a payload's digest beside that of the bare hash over as many
contiguous bytes, and of the bare hash over a packed copy, which is made anew each time. Where
``make peers`` has made vLLM's environment, or ``--vllm-python`` names the Python of another one,
its hasher gets the same objects in the same run. Bare hashes and vLLM's use one thread; our BLAKE3
uses idle processors from 2 MiB on, so on a quiet machine it passes the bare one there.

The second table gives the processor time of a request whose media was sent before, from the body of
the HTTP request up to the engine's queue, where it is refused; client and network do not count. A
request with the same question and no media is there for comparison.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import blake3
import click
import numpy as np
import torch
import xxhash
from PIL import Image
from rich import box
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rivals import Rival, RivalFailed, interpreter

MIB = 2**20
SEED = 7
# Enough that one slow turn of a busy machine does not decide.
ROUNDS = 5
JPEG_BYTES = 1_600_000
WAV_SECONDS = 16
RATE = 16_000

RAW: dict[str, Callable[[Any], bytes]] = {
    "blake3": lambda data: blake3.blake3(data).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
    "xxh3_128": lambda data: xxhash.xxh3_128_digest(data),
}


def objects() -> Iterator[tuple[str, str, Any]]:
    """Name, modality and object of every item: what vLLM's hasher takes as well."""
    rng = np.random.default_rng(SEED)
    yield "audio 16 s float32", "audio", rng.standard_normal(16 * RATE).astype(np.float32)
    yield "PIL RGB 1344x1344", "image", noise(1344)
    array = rng.standard_normal((4096, 4096)).astype(np.float32)
    yield "ndarray 64 MiB, C order", "image", array
    yield "ndarray 64 MiB, Fortran order", "image", np.asfortranarray(array)
    yield "ndarray 64 MiB, every other column", "image", np.repeat(array, 2, axis=1)[:, ::2]
    frames = rng.integers(0, 256, (1344, 1344, 3), dtype=np.uint8)
    yield "uint8 1344x1344x3, Fortran order", "image", np.asfortranarray(frames)
    yield "tensor 32 MiB, bfloat16", "image", torch.from_numpy(array).bfloat16()


def noise(side: int) -> Image.Image:
    """An RGB picture that no encoder makes small."""
    pixels = np.random.default_rng(SEED).integers(0, 256, (side, side, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def best_seconds(work: Callable[[], object], seconds: float) -> float:
    """Least time of one turn; on a shared machine that is what the work itself takes."""
    best = float("inf")
    for _ in range(ROUNDS):
        end = time.perf_counter() + seconds / ROUNDS
        while True:
            start = time.perf_counter()
            work()
            now = time.perf_counter()
            best = min(best, now - start)
            if now >= end:
                break
    return best


def packed(item: Any) -> np.ndarray:
    """The object's values as one contiguous array of bytes."""
    if isinstance(item, torch.Tensor):
        item = item.contiguous().view(torch.uint8).numpy()
    return np.ascontiguousarray(np.asarray(item)).reshape(-1).view(np.uint8)


def hash_rows(seconds: float, vllm: dict[str, Any]) -> list[dict[str, Any]]:
    """Rates of every item under every algorithm, in 10^9 bytes of packed values a second."""
    from tensorrt_llm.inputs.multimodal_data import HASH_ALGORITHMS, MediaHasher

    rows = []
    for name, _, item in objects():
        bare = packed(item)
        payload = as_payload(item)
        for algorithm in HASH_ALGORITHMS:
            hasher, raw = MediaHasher(algorithm), RAW[algorithm]
            times: dict[str, Callable[[], object]] = {
                "gb_per_s": partial(hasher.payload_digest, *payload),
                "raw_gb_per_s": partial(raw, bare.data),
                "copy_gb_per_s": partial(hash_copy, raw, item),
            }
            rates = {
                key: round(bare.nbytes / best_seconds(work, seconds) / 1e9, 3)
                for key, work in times.items()
            }
            theirs = vllm.get(f"{name}/{algorithm}")
            ratio = round(rates["gb_per_s"] / theirs, 2) if theirs else None
            row = {"item": name, "algorithm": algorithm, **rates}
            rows.append({**row, "vllm_gb_per_s": theirs, "ratio": ratio})
    return rows


def as_payload(item: Any) -> tuple[str, Any]:
    """The object as our hasher takes it, and the modality it is then of."""
    from tensorrt_llm.inputs.multimodal_data import AudioData, EmbeddingData
    from tensorrt_llm.inputs.video_data import VideoClip

    if isinstance(item, Image.Image):
        return "image", item
    if item.ndim == 1:
        return "audio", AudioData(item, RATE)
    if item.ndim == 2:
        return "image", EmbeddingData(item)
    # A video of one frame: how an array of bytes is hashed as it lies.
    return "video", VideoClip(item[None], (0,), (0.0,), 1.0, 1.0, 1)


def hash_copy(raw: Callable[[Any], bytes], item: Any) -> bytes:
    """Hash of a packed copy, as hashers make that need one."""
    if isinstance(item, torch.Tensor):
        item = item.contiguous().view(torch.uint8).numpy()
    return raw(item.tobytes())


def vllm_rates(python: str | None, seconds: float) -> dict[str, Any]:
    """vLLM's rates by item and algorithm and its version, measured by its own Python, if any."""
    chosen = python or interpreter("vLLM")
    if chosen is None:
        click.echo("vLLM not run: its environment is absent (make peers)", err=True)
        return {}
    try:
        options = ["--inside-vllm", "--seconds", str(seconds)]
        with Rival(chosen, "benchmarks.media_hash", *options) as rival:
            return rival.told
    except RivalFailed as failure:
        click.echo(f"vLLM not run: {failure}", err=True)
        return {}


def inside_vllm(seconds: float) -> None:
    """Runs in vLLM's environment; prints the rates."""
    import vllm
    from vllm.multimodal.hasher import MultiModalHasher

    rates: dict[str, Any] = {"version": vllm.__version__}
    for name, modality, item in objects():
        for algorithm in ("blake3", "sha256"):
            work = partial(
                MultiModalHasher.hash_kwargs, algorithm, model_id="m", **{modality: item}
            )
            spent = best_seconds(work, seconds)
            rates[f"{name}/{algorithm}"] = round(packed(item).nbytes / spent / 1e9, 3)
    print(json.dumps(rates))


def jpeg() -> bytes:
    """The first JPEG of noise, by rising quality, that has ``JPEG_BYTES``."""
    picture = noise(1344)
    for quality in range(50, 101):
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality)
        if buffer.tell() >= JPEG_BYTES:
            break
    return buffer.getvalue()


def wav() -> bytes:
    """A clip of ``WAV_SECONDS``, 16 bits, one channel."""
    import soundfile

    samples = np.random.default_rng(SEED).uniform(-0.5, 0.5, WAV_SECONDS * RATE)
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()


def bodies(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Chat requests: each medium as a ``data:`` URI and as a local file, and none."""
    question = {"type": "text", "text": "What is it?"}
    for name, part, mime, data in (
        ("1.6 MB JPEG", "image_url", "image/jpeg", jpeg()),
        ("16 s WAV", "audio_url", "audio/wav", wav()),
    ):
        path = folder / f"{part}.bin"
        path.write_bytes(data)
        uri = f"data:{mime};base64,{base64.b64encode(data).decode()}"
        for form, url in (("data: URI", uri), ("local file", str(path))):
            yield f"{name}, {form}", chat_body([{"type": part, part: {"url": url}}, question])
    yield "no media", chat_body([question])


def chat_body(content: list[dict[str, Any]]) -> bytes:
    """A request for one token."""
    messages = [{"role": "user", "content": content}]
    return json.dumps({"model": "tiny", "max_tokens": 1, "messages": messages}).encode()


async def post(app: Any, body: bytes) -> int:
    """Hands a body to an ASGI application; gives the status."""
    statuses: list[int] = []
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not pending:
            await asyncio.sleep(3600)
        return pending.pop()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    path = "/v1/chat/completions"
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST"},
        **{"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""},
        **{"headers": headers, "client": ("127.0.0.1", 1), "server": ("t", 80), "scheme": "http"},
    }
    await app(scope, receive, send)
    return statuses[0]


def repeat_rows(model: str, turns: int) -> list[dict[str, Any]]:
    """Processor time of repeats, the median over ``turns``."""
    from tensorrt_llm import LLM
    from tensorrt_llm.errors import QueueFullError
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig

    def full(request: object) -> None:
        raise QueueFullError("measured up to here")

    async def measure(server: OpenAIServer, llm: LLM, body: bytes) -> tuple[list[float], int]:
        answered = await post(server.app, body)
        if answered != 200:
            raise click.ClickException(f"the first request was answered with {answered}")
        llm.submit = full  # type: ignore[method-assign,assignment]
        decodes, spent = server.media_loader.decodes, []
        for _ in range(turns):
            start = time.process_time()
            await post(server.app, body)
            spent.append((time.process_time() - start) * 1000)
        del llm.submit
        return spent, server.media_loader.decodes - decodes

    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        LLM(model, kv_cache_config={"max_tokens": 16_384}, max_seq_len=8192) as llm,
    ):
        access = MediaAccess(allowed_local_media_path=Path(folder))
        server = OpenAIServer(llm, ServerConfig("tiny", access))
        for name, body in bodies(Path(folder)):
            spent, decodes = asyncio.run(measure(server, llm, body))
            rows.append(
                {
                    "item": name,
                    "cpu_ms": round(statistics.median(spent), 3),
                    "least_cpu_ms": round(min(spent), 3),
                    "decodes": decodes,
                }
            )
    return rows


def show(report: dict[str, Any], console: Console) -> None:
    """Prints both tables."""
    for title, rows in (("GB/s", report["rows"]), ("repeats", report["repeat"])):
        table = Table(title=title, box=box.SIMPLE)
        for column in rows[0]:
            table.add_column(column.replace("_", " "))
        for row in rows:
            table.add_row(*("not run" if value is None else str(value) for value in row.values()))
        console.print(table)


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True))
@click.option("--vllm-python", help="Python of an environment with vLLM.")
@click.option("--seconds", default=1.0, show_default=True, help="Time for each rate.")
@click.option("--turns", default=50, show_default=True, help="Repeats of each request.")
@click.option("--inside-vllm", "inside", is_flag=True, hidden=True)
def main(
    json_file: str | None, vllm_python: str | None, seconds: float, turns: int, inside: bool
) -> None:
    torch.set_num_threads(1)
    if inside:
        inside_vllm(seconds)
        return
    from benchmarks.reuse_hit_rate import build_tiny, machine, versions

    with tempfile.TemporaryDirectory() as folder:
        repeat = repeat_rows(build_tiny(Path(folder) / "phi4mm"), turns)
    theirs = vllm_rates(vllm_python, seconds)
    rows = hash_rows(seconds, theirs)
    known = {**versions(), "vllm": theirs.get("version")}
    report = {"rows": rows, "repeat": repeat, "machine": machine(), "versions": known}
    report["command"] = "python benchmarks/media_hash.py"
    show(report, Console(width=None if sys.stdout.isatty() else 120))
    if json_file is not None:
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
