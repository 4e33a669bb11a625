# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How fast is media identified, and what does a repeat cost?

    python benchmarks/media_hash.py [--json FILE] [--vllm-python PYTHON] [--seconds S]

The first table gives the rate of a payload's digest beside that of the bare hash over as many
contiguous bytes, and of the bare hash over a packed copy, which is made anew each time. Where
``make peers`` has made vLLM's environment, or ``--vllm-python`` names the Python of another one,
its hasher gets the same objects in the same run, in turns with ours. Bare hashes and vLLM's use one
thread; our BLAKE3 uses idle processors from 2 MiB on, so on a quiet machine it passes the bare one
there.

The second table gives the processor time of a request whose media was sent before, from the body of
the HTTP request up to the engine's queue, where it is refused; client and network do not count.
``cpu_ms`` is the median over the quietest of ten rounds; ``one_processor_ms`` the same while all
threads of the door are kept on one processor, for to wake an idle one takes time too. A request
with the same question and no media is there for comparison.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
ROUNDS = 10
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


class Least:
    """Least seconds of one turn of each work; on a shared machine that is what it takes itself.

    Works take turns, so that a slow minute hurts all of them.

    Attributes:
        best: By the name of the work.
    """

    def __init__(self, works: Mapping[str, Callable[[], object]]) -> None:
        self._works = works
        self.best = dict.fromkeys(works, float("inf"))

    def add_round(self, seconds: float) -> None:
        """Gives each work so much time."""
        for name, work in self._works.items():
            end = time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                work()
                now = time.perf_counter()
                self.best[name] = min(self.best[name], now - start)
                if now >= end:
                    break


def packed(item: Any) -> np.ndarray:
    """The object's values as one contiguous array of bytes."""
    if isinstance(item, torch.Tensor):
        item = item.contiguous().view(torch.uint8).numpy()
    return np.ascontiguousarray(np.asarray(item)).reshape(-1).view(np.uint8)


def hash_rows(seconds: float, theirs: Rival | None) -> list[dict[str, Any]]:
    """Rates of every item under every algorithm, in 10^9 bytes of packed values a second.

    Args:
        seconds: Time for each rate.
        theirs: vLLM's hasher, if it is there. Rounds of ours and of its take turns.

    Raises:
        RivalFailed: If it ends before its time.
    """
    from tensorrt_llm.inputs.multimodal_data import HASH_ALGORITHMS, MediaHasher

    works: dict[str, Callable[[], object]] = {}
    sizes: dict[str, int] = {}
    for name, _, item in objects():
        bare = packed(item)
        for algorithm in HASH_ALGORITHMS:
            hasher, raw, row = MediaHasher(algorithm), RAW[algorithm], f"{name}/{algorithm}"
            works[f"{row}/gb_per_s"] = partial(hasher.payload_digest, *as_payload(item))
            works[f"{row}/raw_gb_per_s"] = partial(raw, bare.data)
            works[f"{row}/copy_gb_per_s"] = partial(hash_copy, raw, item)
            sizes[row] = bare.nbytes
    least = Least(works)
    for _ in range(ROUNDS):
        least.add_round(seconds / ROUNDS)
        if theirs is not None:
            theirs.round()
    rows = []
    for row, size in sizes.items():
        name, used = row.rsplit("/", 1)
        rates = {
            key: round(size / least.best[f"{row}/{key}"] / 1e9, 3)
            for key in ("gb_per_s", "raw_gb_per_s", "copy_gb_per_s")
        }
        of_raw = round(rates["gb_per_s"] / rates["raw_gb_per_s"], 3)
        vllm = theirs.told.get(row) if theirs is not None else None
        ratio = round(rates["gb_per_s"] / vllm, 2) if vllm else None
        figures = {**rates, "of_raw": of_raw, "vllm_gb_per_s": vllm, "ratio": ratio}
        rows.append({"item": name, "algorithm": used, **figures})
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


def measured_rows(python: str | None, seconds: float) -> tuple[list[dict[str, Any]], str | None]:
    """The rows, and vLLM's version if its hasher was measured, by its own Python, in the run."""
    chosen = python or interpreter("vLLM")
    if chosen is None:
        click.echo("vLLM not run: its environment is absent (make peers)", err=True)
        return hash_rows(seconds, None), None
    try:
        options = ["--inside-vllm", "--seconds", str(seconds)]
        with Rival(chosen, "benchmarks.media_hash", *options) as rival:
            return hash_rows(seconds, rival), rival.told["version"]
    except RivalFailed as failure:
        click.echo(f"vLLM not run: {failure}", err=True)
        return hash_rows(seconds, None), None


def inside_vllm(seconds: float) -> None:
    """Runs in vLLM's environment: measures a round for every line it reads, prints the rates."""
    import vllm
    from vllm.multimodal.hasher import MultiModalHasher

    works: dict[str, Callable[[], object]] = {}
    sizes: dict[str, int] = {}
    for name, modality, item in objects():
        for algorithm in ("blake3", "sha256"):
            works[f"{name}/{algorithm}"] = partial(
                MultiModalHasher.hash_kwargs, algorithm, model_id="m", **{modality: item}
            )
            sizes[f"{name}/{algorithm}"] = packed(item).nbytes
    least = Least(works)
    print(json.dumps({"version": vllm.__version__}), flush=True)
    for _ in sys.stdin:
        least.add_round(seconds / ROUNDS)
        rates = {row: round(size / least.best[row] / 1e9, 3) for row, size in sizes.items()}
        print(json.dumps({"version": vllm.__version__, **rates}), flush=True)


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


def quietest(rounds: list[list[float]]) -> float:
    """The least median of a round."""
    return round(min(statistics.median(turns) for turns in rounds), 3)


@contextmanager
def one_processor() -> Iterator[None]:
    """Keeps all threads of this process on one processor, where the system lets it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    threads = [int(name) for name in os.listdir("/proc/self/task")]

    def keep(processors: set[int]) -> None:
        for thread in threads:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, processors)

    keep({max(allowed)})
    try:
        yield
    finally:
        keep(allowed)


def repeat_rows(model: str, turns: int) -> list[dict[str, Any]]:
    """Processor time of repeats: medians over all turns, and over those of the quietest round.

    Args:
        model: Folder of the checkpoint.
        turns: Turns of each request in all rounds.
    """
    from tensorrt_llm import LLM
    from tensorrt_llm.errors import QueueFullError
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig

    def full(request: object) -> None:
        raise QueueFullError("measured up to here")

    async def measure(server: OpenAIServer, body: bytes) -> list[float]:
        spent = []
        for _ in range(max(1, turns // ROUNDS)):
            start = time.process_time()
            await post(server.app, body)
            spent.append((time.process_time() - start) * 1000)
        return spent

    with (
        tempfile.TemporaryDirectory() as folder,
        LLM(model, kv_cache_config={"max_tokens": 16_384}, max_seq_len=8192) as llm,
    ):
        access = MediaAccess(allowed_local_media_path=Path(folder))
        server = OpenAIServer(llm, ServerConfig("tiny", access))
        asked = dict(bodies(Path(folder)))
        for body in asked.values():
            answered = asyncio.run(post(server.app, body))
            if answered != 200:
                raise click.ClickException(f"a first request was answered with {answered}")
        llm.submit = full  # type: ignore[method-assign,assignment]
        rounds: dict[str, list[list[float]]] = {name: [] for name in asked}
        alone: dict[str, list[list[float]]] = {name: [] for name in asked}
        decodes = dict.fromkeys(asked, 0)
        for _ in range(ROUNDS):
            for name, body in asked.items():
                before = server.media_loader.decodes
                rounds[name].append(asyncio.run(measure(server, body)))
                with one_processor():
                    alone[name].append(asyncio.run(measure(server, body)))
                decodes[name] += server.media_loader.decodes - before
        del llm.submit
    return [
        {
            "item": name,
            # Others on the machine make a turn longer, never shorter.
            "cpu_ms": quietest(spent),
            "one_processor_ms": quietest(alone[name]),
            "median_of_all_ms": round(statistics.median([t for turns in spent for t in turns]), 3),
            "least_ms": round(min(t for turns in spent for t in turns), 3),
            "decodes": decodes[name],
        }
        for name, spent in rounds.items()
    ]


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
@click.option("--turns", default=200, show_default=True, help="Repeats of each request.")
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
    rows, vllm = measured_rows(vllm_python, seconds)
    known = {**versions(), "vllm": vllm}
    report = {"rows": rows, "repeat": repeat, "machine": machine(), "versions": known}
    report["command"] = "python benchmarks/media_hash.py"
    show(report, Console(width=None if sys.stdout.isatty() else 120))
    if json_file is not None:
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
