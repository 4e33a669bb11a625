# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``/kv_cache/ui`` in a real Chromium: what it shows, and who can use it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from support.asgi_client import LEAD, audio, image, text
from support.engine import wait_until
from support.server import Server

from benchmarks.browser import NoBrowserError, find_chromium, open_browser
from benchmarks.page import DESKTOP, PHONE, open_page

WAIT_MS = 60_000
ASKED = 5


@pytest.fixture(scope="module", name="browser")
def running_browser() -> Iterator[Browser]:
    try:
        find_chromium()
    except NoBrowserError as error:
        pytest.skip(str(error))
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module", name="server")
def used_server(
    browser: Browser, phi4mm_checkpoint: Path, start_servers: Callable, tmp_path_factory
) -> Server:
    """A server that has answered a few requests, with blocks on the host too."""
    config = tmp_path_factory.mktemp("page") / "host.yaml"
    config.write_text("kv_cache_config:\n  host_cache_size: 4000000\n")
    options = [str(phi4mm_checkpoint), "--max_seq_len", "4096", "--kv_cache_max_tokens", "4096"]
    options += ["--config", str(config), "--page_thumbnails", "8"]
    server = start_servers({"page": options})["page"]
    for content in (
        [text(LEAD), image(1)],
        [text(LEAD), image(1)],
        [text(LEAD), image(2), audio(3)],
        [text("Something else: "), audio(3)],
        [text("Once more: "), image(1)],
    ):
        assert server.chat(content).status == 200
    wait_until(lambda: len(state(server)["requests"]) == ASKED, "all are counted")
    return server


@pytest.fixture(name="look")
def looker(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens the page; nothing may be said on its console, nor fetched from elsewhere."""
    complaints: list[str] = []
    pages: list[Page] = []
    home = urlsplit(server.url).netloc

    def said(message: Any) -> None:
        # What the server refuses stands there by Chromium's own doing.
        if "(Service Unavailable)" in message.text:
            return
        if not message.location["url"].endswith("/kv_cache/explain"):
            complaints.append(message.text)

    def requested(request: Any) -> None:
        if urlsplit(request.url).netloc != home:
            complaints.append(f"fetched {request.url}")

    def look(size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Page:
        page = open_page(
            browser,
            server.url,
            size,
            scheme,
            lambda page: (
                page.on("console", said),
                page.on("pageerror", lambda error: complaints.append(str(error))),
                page.on("request", requested),
            ),
        )
        pages.append(page)
        return page

    yield look
    for page in pages:
        page.close()
    assert complaints == []


def table(page: Page, name: str) -> dict[str, list[str]]:
    """The cells of a table's rows by the rows' heads."""
    rows = page.locator(f"#{name} tr").all()
    cells = [row.locator("th, td").all_inner_texts() for row in rows]
    return {head: rest for head, *rest in cells}


def state(server: Server) -> dict[str, Any]:
    return httpx.get(f"{server.url}/kv_cache/state", trust_env=False).json()


def count(value: float) -> str:
    return f"{value:,.0f}"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


def test_what_is_shown_is_what_the_server_says(server: Server, look: Callable[..., Page]) -> None:
    page = look()
    told = state(server)
    asked, cached = told["tokens"]["asked"], told["tokens"]["cached"]
    assert asked.keys() == {"text", "image", "audio"} and cached["image"] > 0
    assert table(page, "rates") == {
        kind: [count(asked[kind]), count(cached.get(kind, 0)), percent(cached.get(kind, 0), n)]
        for kind, n in asked.items()
    }
    letters = "".join(
        int(number) * letter for number, letter in re.findall(r"(\d+)(\w)", told["block_map"])
    )
    kv = told["engine"]["kvCacheStats"]
    device, host = letters[: kv["maxNumBlocks"]], letters[kv["maxNumBlocks"] :]
    assert len(host) == kv["hostMaxNumBlocks"] > 0
    assert device.count("c") + host.count("c") == kv["cachedNumBlocks"] > 0
    names = {"Held, findable": "h", "Held, private": "p", "Cached": "c", "Free": "f"}
    assert table(page, "states") == {
        **{
            name: [count(device.count(letter)), percent(device.count(letter), len(device))]
            for name, letter in names.items()
        },
        "Cached on the host": [count(host.count("c")), percent(host.count("c"), len(host))],
    }
    assert f"{count(device.count('c'))} cached" in page.get_attribute("#map", "aria-label")
    items = table(page, "items")
    assert [cells[:2] for cells in items.values()] == [
        [count(one["hits"]), count(one["rows"])] for one in told["items"]
    ]
    assert list(items) == [f"{one['modality']} #{one['number']}" for one in told["items"]]
    assert {one["hits"] for one in told["items"]} >= {0, 1}
    shown = page.locator("#requests tr").all()
    assert len(shown) == len(told["requests"]) >= ASKED
    for row, request in zip(shown, told["requests"], strict=True):
        whole, found = (sum(request[name].values()) for name in ("prompt_tokens", "cached_tokens"))
        cells = row.locator("th, td").all_inner_texts()
        assert cells[2:5] == [
            percent(found, whole),
            f"{count(found)} / {count(whole)}",
            f"{request['computed_from']}, token {count(found)}",
        ]
        width = row.locator(".cached").evaluate("part => part.width.baseVal.value")
        assert width == pytest.approx(100 * found / whole, abs=0.01)
    places = [request["computed_from"] for request in told["requests"]]
    assert places[-3] == "image 1", "another picture after the same words"


def test_pictures_have_thumbnails_that_are_fetched_once(
    server: Server, look: Callable[..., Page]
) -> None:
    page = look()
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(urlsplit(request.url).path))
    items = state(server)["items"]
    shown = [one for one in items if one["modality"] == "image"]
    assert len(shown) == 2 and len(items) > len(shown), "sounds have none"
    pictures = page.locator("#items img")
    expect(pictures).to_have_count(len(shown))
    for number, one in enumerate(shown):
        picture = pictures.nth(number)
        assert picture.get_attribute("alt") == f"Thumbnail of image #{one['number']}"
        assert picture.get_attribute("src") == one["thumbnail"]
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("one => one.naturalWidth") > 0, "the policy lets it show"
    for _ in range(2):
        with page.expect_response("**/kv_cache/state", timeout=WAIT_MS):
            pass
    assert not any("thumbnails" in path for path in fetched), "kept from one answer to the next"


def test_an_engine_that_starts_is_no_error(server: Server, look: Callable[..., Page]) -> None:
    page = look()
    body = json.dumps({"message": "the engine has not answered yet"})
    page.route("**/kv_cache/state", lambda route: route.fulfill(status=503, body=body))
    expect(page.locator("#state")).to_contain_text("has not answered yet", timeout=WAIT_MS)
    assert page.get_attribute("#state", "class") == ""
    page.unroute("**/kv_cache/state")
    expect(page.locator("#state")).to_have_text("Live.", timeout=WAIT_MS)
    assert page.get_attribute("#state", "class") == "good"


def test_each_block_is_a_cell_of_its_colour(server: Server, look: Callable[..., Page]) -> None:
    page = look()
    told = state(server)["engine"]["kvCacheStats"]
    colors = page.evaluate(
        """() => {
            const map = document.getElementById("map"), context = map.getContext("2d");
            const found = {}, { data } = context.getImageData(0, 0, map.width, map.height);
            for (let at = 0; at < data.length; at += 4) if (data[at + 3])
                (found[`${data[at]},${data[at + 1]},${data[at + 2]}`] ||= []).push(at / 4);
            return Object.fromEntries(Object.entries(found).map(([key, at]) => [key, at.length]));
        }"""
    )
    cached = told["cachedNumBlocks"] - told["hostCachedNumBlocks"]
    free = told["maxNumBlocks"] - cached
    wanted = {"42,150,98": cached, "225,230,236": free}  # as in style.css
    assert colors.keys() == wanted.keys()
    areas = {colors[color] / blocks for color, blocks in wanted.items()}
    assert len(areas) == 1 and areas.pop() >= 9, "cells of one size"


def test_it_follows_the_server_until_it_is_paused(
    server: Server, look: Callable[..., Page]
) -> None:
    page = look()
    rate = page.locator("#tiles dd").first
    before = rate.inner_text()
    assert server.chat([text(LEAD + "And now?")]).status == 200
    expect(rate).not_to_have_text(before, timeout=WAIT_MS)
    page.click("#pause")
    assert page.get_attribute("#pause", "aria-pressed") == "true"
    assert page.inner_text("#state") == "Paused."
    page.click("#pause")
    expect(page.locator("#state")).to_have_text("Live.", timeout=WAIT_MS)


def test_explain_by_keyboard_alone(server: Server, look: Callable[..., Page]) -> None:
    page = look()
    messages = [{"role": "user", "content": [text(LEAD), image(1), image(9)]}]
    body = json.dumps({"messages": messages})
    wanted = httpx.post(
        f"{server.url}/kv_cache/explain", json={"messages": messages}, trust_env=False, timeout=60
    ).json()
    assert 0 < wanted["cached_tokens"] < wanted["prompt_tokens"]
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if reached[-1] == "body":
            break
    assert reached[:2] == ["A", "pause"] and reached[-1] == "body"
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(body)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#answer .verdict")
    assert page.inner_text("#answer .verdict") == wanted["message"]
    rows = page.locator("#answer tbody tr").all()
    assert len(rows) == len(wanted["segments"])
    for row, part in zip(rows, wanted["segments"], strict=True):
        label = row.locator("svg").get_attribute("aria-label")
        assert label == f"{count(part['cached'])} of {count(part['length'])} tokens cached"
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("{")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "submit"
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer .verdict.bad")


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    server: Server, look: Callable[..., Page], size: tuple[int, int], scheme: str
) -> None:
    page = look(size, scheme)
    page.click("text=Explain")
    page.wait_for_selector("#answer .verdict")
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    assert found["passes"], "nothing was looked at"
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not wide, "the page itself does not scroll sideways"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(244, 246, 248)", "dark": "rgb(14, 18, 22)"}[scheme]
