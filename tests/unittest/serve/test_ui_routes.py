# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The page is complete in itself, reads what the server has, and runs under a strict policy."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from support.asgi_client import LEAD, Client, cached, image, text

import tensorrt_llm.serve

FOLDER = Path(tensorrt_llm.serve.__file__).parent / "ui"
PAGE, STATE = "/kv_cache/ui", "/kv_cache/state"


class Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed((FOLDER / "index.html").read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_and_its_files_come_under_a_strict_policy(client: Client) -> None:
    for path, kind in (
        (PAGE, "html"),
        (f"{PAGE}/app.js", "javascript"),
        (f"{PAGE}/drawing.js", "javascript"),
        (f"{PAGE}/icon.svg", "svg"),
        (f"{PAGE}/style.css", "css"),
    ):
        response = client.send("GET", path)
        assert response.status_code == 200, path
        assert kind in response.headers["content-type"]
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    for name in ("index.html", "..%2f__init__.py", "nothing"):
        assert client.send("GET", f"{PAGE}/{name}").status_code == 404, name


def test_nothing_is_inline_and_nothing_comes_from_outside() -> None:
    names = []
    for tag, attributes in Outline().tags:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        names += [attributes[name] for name in ("src", "href") if name in attributes]
        assert tag != "script" or "src" in attributes
    names.remove("#explain-title")
    assert names == ["ui/icon.svg", "ui/style.css", "ui/app.js"]
    modules = [(FOLDER / name).read_text(encoding="utf-8") for name in ("app.js", "drawing.js")]
    assert re.findall(r'from "(.*?)"', "".join(modules)) == ["./drawing.js"]
    for file in FOLDER.iterdir():
        addresses = set(re.findall(r"https?://[^\s\"]+", file.read_text(encoding="utf-8")))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
    for script in modules:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


def test_everything_has_a_name_and_the_script_finds_its_places() -> None:
    tags = Outline().tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    script = (FOLDER / "app.js").read_text(encoding="utf-8")
    assert set(re.findall(r'byId\("([\w-]+)"\)', script)) <= set(ids)
    labels = {attributes.get("for") for tag, attributes in tags if tag == "label"}
    for tag, attributes in tags:
        if tag == "section":
            assert attributes["aria-labelledby"] in ids
        if tag == "textarea":
            assert attributes["id"] in labels
        if tag == "th":
            assert attributes["scope"]
    assert ("html", {"lang": "en"}) in tags


def test_the_numbers_are_the_servers(client: Client) -> None:
    fields = {"cache_salt": "page", "max_tokens": 3, "ignore_eos": True}
    content = [text(LEAD), image(74)]
    # The latest server on this engine is the one that counts: one of its own.
    server = Client(client.llm, client.config)
    server.chat(content, **fields)
    reply = server.chat(content, **fields)
    told = server.send("GET", STATE).json()
    assert told["engine"] == client.llm.snapshot()
    latest, first = told["requests"]
    usage = reply.json()["usage"]
    assert sum(latest["prompt_tokens"].values()) == usage["prompt_tokens"]
    assert sum(latest["cached_tokens"].values()) == cached(reply)
    assert latest["generated_tokens"] == 3
    assert sum(first["cached_tokens"].values()) == 0
    assert told["tokens"]["asked"] == {
        kind: 2 * count for kind, count in latest["prompt_tokens"].items()
    }
    assert {kind: n for kind, n in told["tokens"]["cached"].items() if n} == latest["cached_tokens"]
