# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How long does the page of the KV cache take to draw, and what does it look like?

    python benchmarks/page.py [--json FILE] [--images FOLDER] [--blocks N]

A real server with as many blocks as asked for, looked at with a real Chromium. ``show_ms`` is from
the server's numbers to the second frame after them, when the first is on the screen: tables, plot
and the map of all blocks; ``map_ms`` the map alone. Medians of ``--rounds``, and the longest.
"""

from __future__ import annotations

import base64
import io
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import httpx
import numpy as np
import soundfile
from PIL import Image
from playwright.sync_api import Browser, Page
from rich.console import Console

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.browser import open_browser
from benchmarks.reuse_hit_rate import build_tiny
from examples.demo_server import LocalServer
from tensorrt_llm.bench.reuse import machine, versions
from tensorrt_llm.bench.workloads import INSTRUCTION, Media, clip, picture

PHONE, DESKTOP = (390, 844), (1280, 800)
SECONDS = 60.0
MOST_IMAGE_BYTES = 300_000


def content_part(media: Media) -> dict[str, Any]:
    """A media item as a part of a chat message."""
    buffer = io.BytesIO()
    if media.modality == "image":
        media.data.save(buffer, "PNG")
        kind, form = "image_url", "image/png"
    else:
        samples, rate = media.data
        soundfile.write(buffer, samples, rate, format="WAV")
        kind, form = "audio_url", "audio/wav"
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return {"type": kind, kind: {"url": f"data:{form};base64,{encoded}"}}


def traffic(requests: int) -> list[dict[str, Any]]:
    """Bodies of chats: instructions, pictures and clips, some much more often than others."""
    rng = np.random.default_rng(8)
    pictures = [content_part(picture(n)) for n in range(6)]
    clips = [content_part(clip(n, 3.0)) for n in range(6)]
    bodies = []
    for _ in range(requests):
        one, other = (min(int(n) - 1, 5) for n in rng.zipf(1.5, 2))
        kind = int(rng.integers(0, 4))
        lead = INSTRUCTION if rng.random() < 0.8 else f"Briefly, {int(rng.integers(99))}: "
        content: list[dict[str, Any]] = [{"type": "text", "text": lead}]
        content += [pictures[one]] if kind in (1, 3) else []
        content += [clips[other]] if kind in (2, 3) else []
        content.append({"type": "text", "text": f"Question {int(rng.integers(0, 3))}?"})
        bodies.append({"messages": [{"role": "user", "content": content}], "max_tokens": 8})
    return bodies


def send(server: LocalServer, bodies: list[dict[str, Any]]) -> None:
    """Sends them one after the other."""
    with httpx.Client(trust_env=False, timeout=SECONDS) as client:
        for body in bodies:
            client.post(f"{server.url}/v1/chat/completions", json=body).raise_for_status()


def open_page(
    browser: Browser,
    url: str,
    size: tuple[int, int],
    scheme: Any,
    listen: Callable[[Page], object] | None = None,
) -> Page:
    """Opens the page and waits until it has shown the server's numbers.

    Args:
        browser: Where.
        url: Of the server.
        size: ``PHONE`` or ``DESKTOP``.
        scheme: ``"light"`` or ``"dark"``.
        listen: Told of the page before it loads.
    """
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        device_scale_factor=2 if size == PHONE else 1,
        has_touch=size == PHONE,
    )
    if listen is not None:
        listen(page)
    page.goto(f"{url}/kv_cache/ui")
    page.wait_for_selector("#state.good")
    return page


def time_drawing(page: Page, rounds: int) -> dict[str, float]:
    """Draws what the server says now again and again."""
    told = page.evaluate(
        """async (rounds) => {
            const { redraw } = await import("/kv_cache/ui/app.js");
            const told = await (await fetch("state")).json();
            const found = { show: [], map: [], blocks: 0 };
            for (let round = 0; round < rounds; round++) {
                const { show, map, blocks } = await redraw(told);
                found.show.push(show);
                found.map.push(map);
                found.blocks = blocks;
            }
            return found;
        }""",
        rounds,
    )
    return {
        "blocks": told["blocks"],
        "show_ms": round(statistics.median(told["show"]), 1),
        "show_ms_longest": round(max(told["show"]), 1),
        "map_ms": round(statistics.median(told["map"]), 1),
        "map_ms_longest": round(max(told["map"]), 1),
    }


@contextmanager
def busy(server: LocalServer) -> Iterator[None]:
    """Two long answers run meanwhile."""
    with httpx.Client(trust_env=False, timeout=SECONDS) as client, ExitStack() as stack:
        answers = []  # who lets go of one hangs up
        for number in range(2):
            content = [{"type": "text", "text": f"{number}: {INSTRUCTION}"}]
            body = {"messages": [{"role": "user", "content": content}], "max_tokens": 3000}
            url = f"{server.url}/v1/chat/completions"
            more = {"stream": True, "ignore_eos": True}
            answer = stack.enter_context(client.stream("POST", url, json=body | more))
            answers.append(answer.iter_bytes())
            next(answers[-1])
        yield


def take_images(browser: Browser, server: LocalServer, body: dict[str, Any], folder: Path) -> None:
    """The whole page at two widths in light and dark, with an answer of ``explain``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            with busy(server):
                page = open_page(browser, server.url, size, scheme)
                page.fill("#body", json.dumps(body))
                page.click("text=Explain")
                page.wait_for_selector("#answer .verdict")
                page.fill("#body", '{"messages": [{"role": "user", "content": [ … ]}]}')
                page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                shot = page.screenshot(full_page=True, scale="css")
                page.close()
            # Few colours are on it, so a palette loses nothing that is seen.
            file = folder / f"page-{name}-{scheme}.png"
            Image.open(io.BytesIO(shot)).convert("RGB").quantize(128).save(file, optimize=True)
            if file.stat().st_size > MOST_IMAGE_BYTES:
                raise RuntimeError(f"{file} is larger than {MOST_IMAGE_BYTES} bytes")


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the figures.")
@click.option("--images", type=click.Path(file_okay=False, path_type=Path), help="Take pictures.")
@click.option("--blocks", default=100_000, show_default=True, help="Blocks of the pool.")
@click.option("--rounds", default=20, show_default=True, help="Drawings that are timed.")
def main(json_file: str | None, images: Path | None, blocks: int, rounds: int) -> None:
    """Runs from the command line."""
    console = Console()
    with tempfile.TemporaryDirectory() as work, open_browser() as browser:
        model = build_tiny(Path(work) / "tiny")
        if images is not None:
            options = [model, "--max_seq_len", "8192", "--kv_cache_max_tokens", "12000"]
            with LocalServer(options, Path(work) / "looked_at.log") as server:
                server.wait_until_ready()
                send(server, traffic(60))
                shown = {"type": "text", "text": "What is shown?"}
                content = [content_part(picture(0)), content_part(picture(99)), shown]
                lead = {"type": "text", "text": INSTRUCTION}
                asked = {"messages": [{"role": "user", "content": [lead, *content]}]}
                take_images(browser, server, asked, images)
        size = ["--tokens_per_block", "2", "--kv_cache_max_tokens", str(2 * blocks)]
        with LocalServer([model, "--max_seq_len", "8192", *size], Path(work) / "log") as server:
            server.wait_until_ready()
            send(server, traffic(40))
            rows = []
            for name, shape in (("desktop", DESKTOP), ("phone", PHONE)):
                page = open_page(browser, server.url, shape, "light")
                rows.append({"width": name, **time_drawing(page, rounds)})
                console.print(rows[-1])
                page.close()
        version = browser.version
    if json_file is not None:
        told = {"rows": rows, "machine": machine(), "versions": versions() | {"chromium": version}}
        Path(json_file).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
