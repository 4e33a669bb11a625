# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bad requests get a clear 400, streamed or not, and the next good one is as if they never came."""

from __future__ import annotations

import contextlib
import itertools
import re
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.chat_oracle import content_json
from support.media import clip, data_uri, image_bytes, picture, wav_bytes
from support.server import TIMEOUT_SECONDS, Reply, Server

TEXT = {"type": "text", "text": "What is this?"}
MAX_SEQ_LEN = 8192
# All that a request which begins with media can share: the token that opens a user's turn.
OPENING = 1

_seeds = itertools.count(1000)


def part(kind: str, url: Any, **fields: Any) -> dict[str, Any]:
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url}, **fields}


def audio(data: bytes) -> dict[str, Any]:
    return part("audio", data_uri(data, "audio/wav"))


def image(data: bytes) -> dict[str, Any]:
    return part("image", data_uri(data, "image/jpeg"))


def assert_refused(reply: Reply, where: str | None, says: str, status: int = 400) -> None:
    """An error as OpenAI's clients know it, that names the part and the reason."""
    assert reply.status == status, reply
    assert reply.error is not None
    assert set(reply.error) >= {"object", "message", "type", "param", "code"}
    assert (reply.error["object"], reply.error["code"]) == ("error", status)
    assert reply.error["param"] == where
    assert where is None or reply.error["message"].startswith(where)
    assert re.search(says, reply.error["message"]), reply.error["message"]
    assert reply.headers["content-type"] == "application/json"


def assert_well_after(on: Server, off: Server) -> None:
    """A request with never-seen media is answered as without reuse, sharing nothing."""
    seed = next(_seeds)
    media = picture(seed, 120, 100) if seed % 2 else clip(seed, 1.0)
    content = content_json(media, "What is this?")
    reply = on.chat(content, max_tokens=6)
    assert reply.status == 200 and reply.cached <= OPENING
    assert reply.text == off.chat(content, max_tokens=6).text
    assert on.healthy()


@dataclass(frozen=True)
class Bad:
    """A request that must be refused.

    Attributes:
        content: The user's content.
        where: The part that the error names.
        says: Pattern of the reason.
        fields: Further fields of the body.
    """

    content: Any
    where: str
    says: str
    fields: dict[str, Any]


def bad(content: Any, says: str, where: str = "messages[0].content[1]", **fields: Any) -> Bad:
    return Bad(content, where, says, fields)


BAD = {
    "truncated audio": bad([TEXT, audio(wav_bytes(clip(1))[:-5000])], "truncated"),
    "no audio": bad([TEXT, audio(b"RIFF" + bytes(400))], "no readable audio"),
    "unknown scheme": bad([TEXT, part("audio", "gopher://host/a.wav")], "unknown scheme 'gopher'"),
    "video": bad([TEXT, part("video", "data:,")], "takes: text, image, audio"),
    "bad base64": bad([TEXT, part("image", "data:image/png;base64,@@@@")], "not base64"),
    "bad base64 audio": bad(
        [TEXT, {"type": "input_audio", "input_audio": {"data": "@@@@", "format": "wav"}}],
        "not base64",
    ),
    "second image corrupt": bad(
        [image(image_bytes(picture(2))), image(image_bytes(picture(3), "JPEG")[:-128])],
        "truncated|damaged",
    ),
    "uuid of a wrong type": bad([TEXT, part("image", "data:,", uuid=7)], "uuid .* got 7"),
    "uuid without media": bad([TEXT, {"type": "image_url", "uuid": "x1"}], "image_url"),
    "unknown part": bad([TEXT, {"type": "smell"}], "type must be one of .* got 'smell'"),
    "unknown field of a part": bad(
        [{**TEXT, "colour": 1}], "unknown field", "messages[0].content[0].colour"
    ),
    "unknown field": bad("Hello", "unknown field", "no_such_field", no_such_field=1),
    "wrong type": bad("Hello", "", "max_tokens", max_tokens="many"),
    "out of range": bad("Hello", "temperature", "temperature", temperature=-1),
    "half a beam search": bad(
        "Hello", "without use_beam_search", "length_penalty", length_penalty=2
    ),
    "unknown media option": bad(
        content_json(picture(4)), "no_such", "mm_processor_kwargs",
        mm_processor_kwargs={"no_such": 1},
    ),
    "no content": bad([], "text or a list of parts", "messages[0].content"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_a_bad_request_is_refused_and_leaves_no_trace(
    case: Bad, reuse_on: Server, reuse_off: Server
) -> None:
    for stream in (False, True):
        reply = reuse_on.chat(case.content, stream=stream, **case.fields)
        assert_refused(reply, case.where, case.says)
    assert_well_after(reuse_on, reuse_off)


def test_a_prompt_that_is_too_long_names_both_numbers(reuse_on: Server, reuse_off: Server) -> None:
    """C16: what a refused request brought along must be no worse for the next one."""
    media = picture(11)
    long_text = "yes " * (MAX_SEQ_LEN + 500)
    for stream in (False, True):
        reply = reuse_on.chat(content_json(media, long_text), stream=stream)
        assert_refused(reply, "messages", rf"\d{{4,5}} .*{MAX_SEQ_LEN}")
    short = content_json(media, "What is this?")
    reply = reuse_on.chat(short)
    assert (reply.status, reply.text) == (200, reuse_off.chat(short).text)
    assert reply.cached <= OPENING


CORRUPT = {
    "end cut off": lambda whole, _: whole[:-128],
    "empty": lambda *_: b"",
    "a web page": lambda *_: b"<!DOCTYPE html><html><body>Not found</body></html>",
    "broken checksum": lambda _, png: png[:-20] + bytes([png[-20] ^ 0xFF]) + png[-19:],
    "noise": lambda *_: b"\x07\xf3\x9a",
}


@pytest.mark.parametrize("corrupt", CORRUPT.values(), ids=CORRUPT)
def test_a_corrupt_image_is_refused_and_the_whole_one_works(
    corrupt: Callable[[bytes, bytes], bytes], reuse_on: Server, reuse_off: Server
) -> None:
    """C22, and C16 with the good first image of two."""
    good, other = picture(next(_seeds)), picture(next(_seeds))
    whole = image_bytes(other, "JPEG")
    broken = image(corrupt(whole, image_bytes(other)))
    first = content_json(good)[0]
    for stream in (False, True):
        alone = reuse_on.chat([TEXT, broken], stream=stream)
        assert_refused(alone, "messages[0].content[1]", "image")
        second = reuse_on.chat([first, TEXT, broken], stream=stream)
        assert_refused(second, "messages[0].content[2]", "image")
    for content in ([first, TEXT], [image(whole), TEXT]):
        reply = reuse_on.chat(content)
        assert (reply.status, reply.text) == (200, reuse_off.chat(content).text)
        assert reply.cached <= OPENING


def test_local_files(reuse_on: Server, reuse_off: Server, media_dir: Path, tmp_path: Path) -> None:
    """C19: only below the allowed folder, and a refusal tells nothing about the target."""
    inside, outside = media_dir / "inside.wav", tmp_path / "outside.wav"
    inside.write_bytes(wav_bytes(clip(21)))
    outside.write_bytes(wav_bytes(clip(21)))
    link = media_dir / "link.wav"
    link.symlink_to(outside)
    dots = "/".join([".."] * len(media_dir.parts))
    missing = tmp_path / "missing.wav"
    messages = set()
    for url in [
        *(str(outside), outside.as_uri(), str(link), f"{media_dir}/{dots}{outside}"),
        f"file://{media_dir}/{dots.replace('.', '%2e')}{outside}",
        *(str(missing), missing.as_uri(), "outside.wav"),
    ]:
        reply = reuse_on.chat([TEXT, part("audio", url)])
        assert_refused(reply, "messages[0].content[1]", "--allowed_local_media_path")
        messages.add(reply.error["message"])
    assert len(messages) == 1, "the same words whether or not the file exists"

    foreign = reuse_on.chat([TEXT, part("audio", f"file://elsewhere{inside}")])
    assert_refused(foreign, "messages[0].content[1]", "host")
    absent = reuse_on.chat([TEXT, part("audio", str(media_dir / "absent.wav"))])
    assert_refused(absent, "messages[0].content[1]", "No such file")
    folder = reuse_on.chat([TEXT, part("audio", str(media_dir))])
    assert_refused(folder, "messages[0].content[1]", "regular file")

    texts = set()
    for url in (str(inside), inside.as_uri(), f"file://localhost{inside}"):
        reply = reuse_on.chat([TEXT, part("audio", url)])
        texts.add(reply.text)
    assert texts == {reuse_off.chat([TEXT, part("audio", str(inside))]).text}


@contextlib.contextmanager
def counting_server() -> Iterator[tuple[int, list[str]]]:
    """A port on loopback, and the addresses of all who connected to it."""
    callers: list[str] = []

    class Count(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            callers.append(self.client_address[0])

    with socketserver.TCPServer(("127.0.0.1", 0), Count) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1], callers
        finally:
            server.shutdown()
            thread.join()


def test_loopback_is_refused_without_being_contacted(reuse_on: Server, reuse_off: Server) -> None:
    with counting_server() as (port, callers):
        for host in (
            *("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001"),
            *("[::1]", "0.0.0.0"),
        ):
            for kind in ("audio", "image"):
                reply = reuse_on.chat([TEXT, part(kind, f"http://{host}:{port}/x")])
                assert_refused(reply, "messages[0].content[1]", "")
        assert callers == []
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
        assert callers == ["127.0.0.1"], "the counter counts"
    assert_well_after(reuse_on, reuse_off)


@pytest.fixture(scope="module")
def limited(
    llama_checkpoint: Path, phi4mm_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """A text model that takes small bodies, and a model that takes few items and no files."""
    logs = tmp_path_factory.mktemp("limited")
    small = ("--kv_cache_max_tokens", "8192")
    text = [str(llama_checkpoint), *small, "--max_request_bytes", "2000"]
    closed = [str(phi4mm_checkpoint), *small, "--max_media_items", "2"]
    with (
        Server(text, logs / "text.log") as text_server,
        Server(closed, logs / "closed.log") as closed_server,
    ):
        for server in (text_server, closed_server):
            server.wait_until_ready()
        yield {"text": text_server, "closed": closed_server}


def test_a_text_model_takes_no_media(limited: dict[str, Server]) -> None:
    server = limited["text"]
    for stream, kind in itertools.product((False, True), ("image", "audio")):
        reply = server.chat([TEXT, part(kind, "data:,")], stream=stream)
        assert_refused(reply, "messages[0].content[1]", f"not take {kind}; it takes: text$")
    reply = server.chat("Hello")
    assert reply.status == 200 and reply.text


def test_a_body_over_the_limit(limited: dict[str, Server]) -> None:
    server = limited["text"]
    for stream in (False, True):
        reply = server.chat("yes " * 1000, stream=stream)
        assert_refused(reply, None, r"\d{4} bytes exceeds max_request_bytes \(2000 bytes\)", 413)
    assert server.chat("yes " * 400).status == 200


def test_local_files_are_closed_by_default(limited: dict[str, Server], media_dir: Path) -> None:
    path = media_dir / "closed.wav"
    path.write_bytes(wav_bytes(clip(31)))
    messages = set()
    for url in (str(path), path.as_uri(), str(path.with_name("missing.wav"))):
        reply = limited["closed"].chat([TEXT, part("audio", url)])
        assert_refused(reply, "messages[0].content[1]", "--allowed_local_media_path")
        messages.add(reply.error["message"])
    assert len(messages) == 1


def test_more_media_than_allowed(limited: dict[str, Server]) -> None:
    clips = [clip(seed, 0.5) for seed in range(3)]
    reply = limited["closed"].chat(content_json(*clips))
    assert_refused(reply, "messages", r"3 items exceed max_media_items \(2 items\)")
    assert limited["closed"].chat(content_json(*clips[:2])).status == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"messages": 3}', b'{"model": "tiny"}'])
def test_a_body_that_is_no_request(body: bytes, reuse_on: Server) -> None:
    response = httpx.post(
        f"{reuse_on.url}/v1/chat/completions",
        content=body,
        headers={"Content-Type": "application/json"},
        trust_env=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert response.status_code == 400
    assert response.json()["object"] == "error"
    assert reuse_on.healthy()
