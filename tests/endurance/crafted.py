# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Crafted requests: all that a hostile client may put into a body, made from rules.

Each rule of `RULES` takes a source of chance and gives a body; what it gives must be refused.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import soundfile
from PIL import Image
from support.chat_oracle import content_json
from support.media import clip, data_uri, image_bytes, picture, wav_bytes

SECONDS = 20.0
"""What is refused at once is, also by a busy machine."""
FETCH_SECONDS = 40.0
"""What names a host: its own limit is ``fetch_timeout_seconds``."""


@dataclass(frozen=True)
class Crafted:
    """One request.

    Attributes:
        rule: The rule that made it.
        body: Its body.
        seconds: Within so many it must be answered.
    """

    rule: str
    body: bytes
    seconds: float = SECONDS


def chat(content: Any = "Hello", **fields: Any) -> bytes:
    """The body of a chat."""
    return json.dumps({"messages": [{"role": "user", "content": content}], **fields}).encode()


def media(kind: str, data: bytes, media_type: str) -> bytes:
    """The body of a chat about a file."""
    return url(kind, data_uri(data, media_type))


def url(kind: str, where: str) -> bytes:
    """The body of a chat about something at an address."""
    return chat([{"type": f"{kind}_url", f"{kind}_url": {"url": where}}])


def _nested(rng: random.Random) -> bytes:
    depth = rng.choice([200, 5_000, 100_000])
    opening, closing = rng.choice([("[", "]"), ('{"a":', "}")])
    inner = opening * depth + ("1" if opening != "[" else "") + closing * depth
    place = rng.choice(['{"messages": %s}', '{"messages": [], "metadata": %s}', "%s"])
    return (place % inner).encode()


# A value of a wrong type or out of range for each field, and what a client may put there.
_NUMBERS = ("max_tokens", "n", "temperature", "top_p", "seed", "top_k", "repetition_penalty")
_WRONG = ("many", [], {}, [[1]], "1e999", "\u0661")
_HUGE = (2**63, -(2**63), 10**30, -1, 1e308, -1e308)


def _wrong_type(rng: random.Random) -> bytes:
    return chat(**{rng.choice(_NUMBERS): rng.choice(_WRONG)})


def _huge_number(rng: random.Random) -> bytes:
    # Not max_tokens: a large one means as many as fit.
    name = rng.choice(["n", "top_logprobs", "best_of"])
    return chat(**{name: rng.choice([value for value in _HUGE if value != 1e308])})


def _not_a_number(rng: random.Random) -> bytes:
    word = rng.choice(["NaN", "Infinity", "-Infinity", "1e999", "0x10", "01", "+1", ".5"])
    return chat(temperature=0.125).replace(b"0.125", word.encode())


def _wrong_shape(rng: random.Random) -> bytes:
    message = rng.choice(
        [7, None, [], {}, {"role": "user"}, {"role": 7, "content": "a"}, {"content": "a"}]
    )
    if rng.random() < 0.5:
        message = {"role": rng.choice(["user\0", "root", "", "USER"]), "content": "a"}
    return json.dumps({"messages": [message]}).encode()


def _unknown_field(rng: random.Random) -> bytes:
    name = rng.choice(["__proto__", "constructor", "__class__", "stream\u200b", "Messages", ""])
    return chat(**{f"{name}{rng.choice(['', rng.randrange(99)])}_": rng.choice([1, {}, "a"])})


def _broken_json(rng: random.Random) -> bytes:
    whole = chat("Hello " * rng.randrange(1, 40), max_tokens=4)
    kind = rng.randrange(6)
    if kind == 0:
        return whole[: rng.randrange(1, len(whole) - 1)]
    if kind == 1:
        return whole + rng.choice([b"{}", b",", b"]", whole])
    if kind == 2:
        return whole.replace(b"Hello", rng.choice([b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80"]), 1)
    if kind == 3:
        return whole.decode().encode(rng.choice(["utf-16", "utf-32", "utf-7"]))[1:]
    if kind == 4:
        return whole.replace(b'"', b"'")
    return gzip.compress(whole)


def _too_long(rng: random.Random) -> bytes:
    word = rng.choice(["yes ", "\U0001f600", "\u0301", "\u202e", "<|endoftext|>", "a", "\0"])
    return chat(word * rng.choice([60_000, 200_000]) + " yes" * 20_000)


def _too_many_parts(rng: random.Random) -> bytes:
    part = content_json(picture(1, 8, 8))[0]
    return chat([part] * rng.choice([129, 1000, 5000]))


def _special_part(rng: random.Random) -> bytes:
    kind = rng.choice(["<|image|>", "image_url\0", "__import__", "", "IMAGE_URL", "text "])
    return chat([{"type": kind, "text": "a", "image_url": {"url": "data:,"}}])


def _lone_surrogate(rng: random.Random) -> bytes:
    half = rng.choice(["\\ud800", "\\udfff", "\\ud83d\\ud83d", "\\udc00\\ud800"])
    return chat(f"a HERE {rng.randrange(99)}").replace(b"HERE", half.encode())


def _long_name(rng: random.Random) -> bytes:
    size = rng.choice([2**10, 2**16, 2**21])
    part = {**content_json(picture(1, 8, 8))[0], "uuid": rng.choice([{}, [], 7, True])}
    if rng.random() < 0.5:
        return chat([part])
    name = rng.choice(["tool_choice", "response_format", "stream_options", "logit_bias"])
    return chat(**{name: "x" * size})


def _bad_base64(rng: random.Random) -> bytes:
    text = rng.choice(
        ["@@@@", "A", "====", "AA\nA=A", "\u0661\u0661", "%00%00", " ", "iVBORw0KGgo"]
    )
    return url(
        rng.choice(["image", "audio"]), f"data:image/png;base64,{text * rng.randrange(1, 9)}"
    )


_WORDS = ("text/html", "image/svg+xml", "application/pdf", "audio/x-mpegurl")


def _other_format(rng: random.Random) -> bytes:
    files = [
        b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
        b'<?xml version="1.0"?><!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]><s>&a;</s>',
        b"%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\n%%EOF",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run showpage\n",
        b"#EXTM3U\n#EXTINF:9,\nfile:///etc/passwd\n",
        b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1,\nconcat:http://127.0.0.1:9/a|file:///etc/a\n",
        b"[playlist]\nFile1=file:///etc/passwd\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nm=audio 9 RTP/AVP 0\r\n",
        b"push graphic-context\nimage over 0,0 0,0 'https://127.0.0.1/a'\npop graphic-context\n",
        b"PK\x03\x04" + bytes(60),
        b"\x7fELF" + bytes(60),
        gzip.compress(image_bytes(picture(1, 8, 8))),
        b"",
    ]
    kind = rng.choice(["image", "audio"])
    return media(kind, rng.choice(files), rng.choice(_WORDS))


def png_of(width: int, height: int, rows: int = 8) -> bytes:
    """A PNG that says so large a size, and has a few rows of zeros that compress well."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes((width + 1) * rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _image_bomb(rng: random.Random) -> bytes:
    side = rng.choice([20_000, 60_000, 65_535])
    kind = rng.randrange(4)
    if kind == 0:
        return media("image", png_of(side, side), "image/png")
    if kind == 1:  # whose sizes are lies
        data = bytearray(image_bytes(picture(2, 40, 30), "BMP"))
        data[18:26] = struct.pack("<ii", side, side)
        return media("image", bytes(data), "image/bmp")
    if kind == 2:
        data = bytearray(image_bytes(picture(2, 40, 30), "GIF"))
        data[6:10] = struct.pack("<HH", 65_535, 65_535)
        return media("image", bytes(data), "image/gif")
    data = image_bytes(picture(2, 40, 30), "JPEG")
    size = struct.pack(">HH", 30, 40)
    return media("image", data.replace(size, struct.pack(">HH", 65_500, 65_500), 1), "image/jpeg")


def _sound_bomb(rng: random.Random) -> bytes:
    kind = rng.randrange(3)
    if kind == 0:  # an hour of silence in a few kilobytes
        buffer = io.BytesIO()
        soundfile.write(buffer, np.zeros(8000 * 7200, np.int16), 8000, format="FLAC")
        return media("audio", buffer.getvalue(), "audio/flac")
    data = bytearray(wav_bytes(clip(1, 0.2)))
    if kind == 1:  # a rate that makes a few samples long
        data[24:28] = struct.pack("<I", rng.choice([0, 1, 2**32 - 1]))
    else:
        data[22:24] = struct.pack("<H", rng.choice([0, 999, 65_535]))
    return media("audio", bytes(data), "audio/wav")


def _cut_file(rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        data = wav_bytes(clip(rng.randrange(50), 0.3))
        return media("audio", data[: rng.randrange(44, len(data) - 400)], "audio/wav")
    form = rng.choice(["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
    image = picture(rng.randrange(50), 40, 30).convert("RGB")
    data = image_bytes(image, form)
    return media("image", data[: rng.randrange(1, len(data) * 3 // 4)], f"image/{form.lower()}")


_LOCAL = (
    "127.0.0.1",
    "localhost",
    "[::1]",
    "0.0.0.0",
    "2130706433",
    "0x7f.1",
    "127.1",
    "0177.0.0.1",
)
_PRIVATE = ("10.0.0.1", "192.168.0.1", "169.254.169.254", "[fe80::1]", "[::ffff:10.0.0.1]")


def _address(rng: random.Random) -> bytes:
    host = rng.choice([*_LOCAL, *_PRIVATE])
    user = rng.choice(["", "a@", "a:b@", "example.org@"])
    return url(rng.choice(["image", "audio"]), f"http://{user}{host}:{rng.choice([9, 80])}/a")


def _odd_address(rng: random.Random) -> bytes:
    where = rng.choice(
        [
            *("gopher://a/b", "ftp://a/b", "javascript:alert(1)", "file://evil/etc/passwd"),
            *("http://", "http:///a", "http://a b/", "http://[::1", "http://a:99999/"),
            *(
                "http://\u2100.test/",
                "http://%00/",
                "//a/b",
                "HTTP://\t127.0.0.1/",
                "http://a\r\nb/",
            ),
            *(
                "/etc/passwd",
                "../../etc/passwd",
                "file:///etc/passwd",
                "C:\\a",
                "\\\\a\\b",
                "\0",
                "",
            ),
            *("/proc/self/environ", "/dev/zero", "file:///dev/random", "data:", "data", "data:x"),
        ]
    )
    return url(rng.choice(["image", "audio"]), where)


def _wrong_tools(rng: random.Random) -> bytes:
    schema: Any = {"type": "object"}
    for _ in range(rng.choice([3, 40])):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    wrong = rng.choice(
        [
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": 7}}},
            {"response_format": {"type": "regex", "regex": "(" * 50}},
            {"response_format": {"type": "xml"}},
            {"tools": [{"type": "function"}]},
            {"tools": "all"},
            {"tools": [{"type": "function", "function": {"name": "a b", "parameters": schema}}]},
            {"tool_choice": {"type": "function", "function": {"name": "none"}}},
            {"logit_bias": {"x": 1}},
            {"logit_bias": {"99999999": 1}},
            {"stop": [""] * 9},
            {"stop": {"a": 1}},
            {"stream_options": {"include_usage": "maybe"}, "stream": True},
        ]
    )
    return chat(**wrong)


def _wrong_options(rng: random.Random) -> bytes:
    content = content_json(picture(rng.randrange(9), 40, 30))
    name = rng.choice(["__class__", "size", "do_resize", "dynamic_hd", "max_pixels"])
    value = rng.choice([-1, "a" * 100, [], {"a": {}}, None])
    where = rng.choice(["mm_processor_kwargs", "media_io_kwargs"])
    inner = {f"{name}_": value}
    return chat(content, **{where: inner if where == "mm_processor_kwargs" else {"smell": inner}})


RULES: dict[str, Callable[[random.Random], bytes]] = {
    "nested": _nested,
    "wrong type": _wrong_type,
    "huge number": _huge_number,
    "not a number": _not_a_number,
    "wrong shape": _wrong_shape,
    "unknown field": _unknown_field,
    "broken JSON": _broken_json,
    "too long": _too_long,
    "too many parts": _too_many_parts,
    "unknown part": _special_part,
    "lone surrogate": _lone_surrogate,
    "long name": _long_name,
    "bad base64": _bad_base64,
    "other format": _other_format,
    "image bomb": _image_bomb,
    "sound bomb": _sound_bomb,
    "cut file": _cut_file,
    "address": _address,
    "odd address": _odd_address,
    "wrong tools": _wrong_tools,
    "wrong options": _wrong_options,
}
_FETCHING = ("address", "odd address")


def crafted(count: int, seed: int) -> Iterator[Crafted]:
    """So many requests, each rule in turn; always the same ones for a seed."""
    names = list(RULES)
    for number in range(count):
        name = names[number % len(names)]
        rng = random.Random(f"{seed} {number}")
        yield Crafted(name, RULES[name](rng), FETCH_SECONDS if name in _FETCHING else SECONDS)


def opening(body: bytes) -> str:
    """Enough of a body to know it by."""
    return f"{len(body)} bytes, {body[:120]!r}"


def encoded(data: bytes) -> str:
    """Base64."""
    return base64.b64encode(data).decode()


def blank(width: int, height: int) -> bytes:
    """A picture of one colour."""
    return image_bytes(Image.new("RGB", (width, height)))
