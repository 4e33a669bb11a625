# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What phones and browsers record, hosts that misbehave, limits, and a decoder that hangs."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from PIL import Image
from support.av_media import sound_bytes, video_part
from support.media import clip, data_uri, image_bytes, picture, wav_bytes
from support.media_host import Host, serving
from support.server import Reply, Server

TEXT = {"type": "text", "text": "What is this?"}
FETCH_SECONDS = 3


@pytest.fixture(scope="module")
def server(phi4mm_checkpoint, start_servers) -> Server:
    limits = {
        **{"max_pixels": 100_000, "max_audio_seconds": 5, "max_decode_seconds": 120},
        **{"max_bytes": 1_000_000, "timeout_s": FETCH_SECONDS},
    }
    options = [
        *(str(phi4mm_checkpoint), "--max_seq_len", "4096", "--media_limits", json.dumps(limits)),
        *("--limit_mm_per_prompt", '{"image": 1}', "--allow_loopback_media"),
        *("--media_io_kwargs", '{"image": {"rgba_background_color": [0, 0, 0]}}'),
    ]
    return start_servers({"media": options})["media"]


def image(data: bytes) -> dict:
    return {"type": "image_url", "image_url": {"url": data_uri(data, "image/png")}}


def audio(data: bytes) -> dict:
    return {"type": "audio_url", "audio_url": {"url": data_uri(data, "audio/wav")}}


def refused(reply: Reply, says: str) -> bool:
    return reply.status == 400 and says in reply.error["message"]


@pytest.mark.parametrize(
    ("form", "codec"), [("ipod", "aac"), ("webm", "libopus"), ("adts", "aac"), ("ogg", "libopus")]
)
def test_recordings_of_phones_and_browsers(server, salt, form, codec) -> None:
    data = sound_bytes(form, codec, clip(5, 1.0, 48_000))
    first, again = (server.chat([audio(data), TEXT], cache_salt=salt) for _ in range(2))
    assert first.status == again.status == 200 and first.text == again.text
    assert first.cached == 0
    assert again.cached == first.usage["prompt_tokens"] - 1
    rows = first.usage["prompt_tokens_details"]["audio_tokens"]
    mono = server.chat([audio(wav_bytes(clip(5, 1.0))), TEXT], cache_salt=salt)
    assert abs(rows - mono.usage["prompt_tokens_details"]["audio_tokens"]) <= 1
    assert refused(server.chat([audio(data[:-40]), TEXT]), "truncated")


def test_the_limits_of_the_command_line_hold(server) -> None:
    large, small = (image_bytes(picture(1, side, 250)) for side in (401, 400))
    reply = server.chat([image(large), TEXT])
    assert refused(reply, "100250 pixels exceed max_pixels (100000 pixels)"), reply
    assert server.chat([image(small), TEXT]).status == 200
    reply = server.chat([image(small), TEXT, image(small)])
    assert refused(reply, "2 items exceed limit_mm_per_prompt.image (1 items)"), reply
    long = sound_bytes("ipod", "aac", clip(1, 6.0, 48_000))
    assert refused(server.chat([audio(long), TEXT]), "exceed max_audio_seconds (5 seconds)")


def test_the_servers_decoding_options_hold_unless_a_request_says_otherwise(server, salt) -> None:
    clear = picture(3).convert("RGBA")
    clear.putalpha(90)
    body = [image(image_bytes(clear)), TEXT]
    black = {"image": {"rgba_background_color": [0, 0, 0]}}
    white = {"image": {"rgba_background_color": [255, 255, 255]}}
    asked = [
        server.chat(body, cache_salt=salt, media_io_kwargs=options)
        for options in (black, None, white, white)
    ]
    whole = asked[0].usage["prompt_tokens"] - 1
    assert [reply.cached == whole for reply in asked] == [False, True, False, True]


ESCAPES = [
    *("http://169.254.169.254/latest", "http://10.0.0.1/", "http://[fe80::1]/", "http://0.0.0.0/"),
    *("http://[::ffff:192.168.0.1]/", "http://2130706433.invalid/", "http://3232235521/"),
    *("file:///etc/hostname", "ftp://127.0.0.1/a", "data:image/png;base64,AAAA", "gopher://h/"),
]


def by_url(kind: str, url: str) -> dict:
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_hosts_that_misbehave_are_refused_in_time(server, salt, kind) -> None:
    """C29 where loopback is open: what a permitted host may do with a request."""
    body = image_bytes(picture(7)) if kind == "image" else wav_bytes(clip(7))
    with serving(Host(body=body)) as host:
        good = server.chat([by_url(kind, f"{host.url}/hops/2"), TEXT], cache_salt=salt)
        again = server.chat([by_url(kind, f"{host.url}/untold"), TEXT], cache_salt=salt)
        assert good.status == again.status == 200
        assert again.cached == good.usage["prompt_tokens"] - 1
        asked = len(host.seen)
        for target in ESCAPES:
            reply = server.chat([by_url(kind, f"{host.url}/to/{target}"), TEXT])
            assert reply.status == 400 and reply.error["param"] == "messages[0].content[0]", target
            assert server.chat([by_url(kind, target), TEXT]).status == 400, target
        assert len(host.seen) == asked + len(ESCAPES), "each was asked once, and nothing else"
        for path, says in {
            "hops/20": "6 redirects exceed max_redirects (5 redirects)",
            "told/1000000000000": "1000000000000 bytes exceed max_bytes",
            "short": "failed or broke off",
            "noise": "failed or broke off",
            "status/404": "404",
            "status/500": "500",
        }.items():
            assert refused(server.chat([by_url(kind, f"{host.url}/{path}"), TEXT]), says), path
        host.body = bytes(1_000_001)
        for path in ("ok", "untold"):
            reply = server.chat([by_url(kind, f"{host.url}/{path}"), TEXT])
            assert refused(reply, "exceed max_bytes (1000000 bytes)"), path
        host.body = body
        if kind == "image":  # a fetch does not know what it fetches
            slow = [f"{host.url}/{path}" for path in ("drip", "drip_headers", "silence")]
            start = time.monotonic()
            with ThreadPoolExecutor(len(slow)) as clients:
                replies = clients.map(lambda url: server.chat([by_url(kind, url), TEXT]), slow)
                assert all(refused(reply, "did not arrive within") for reply in replies)
            assert time.monotonic() - start >= FETCH_SECONDS
        asked = len(host.seen)
        assert refused(
            server.chat([by_url("video", f"{host.url}/ok"), TEXT]), "does not take video"
        )
        assert len(host.seen) == asked
    assert server.chat([TEXT]).status == 200 and server.healthy()


def test_video_is_refused_by_the_model_not_by_the_loader(server) -> None:
    assert refused(server.chat([video_part(), TEXT]), "does not take video")


def test_a_decoder_that_hangs_holds_up_nobody_else(server) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (100, 100, 3), np.uint8)
    assert server.chat([image(image_bytes(picture(4))), TEXT]).status == 200
    decoders = [
        process
        for process in psutil.Process(server.process.pid).children(recursive=True)
        if "decode_worker" in " ".join(process.cmdline())
    ]
    assert decoders
    for process in decoders:
        process.suspend()
    with ThreadPoolExecutor(1) as thread:
        hostile = thread.submit(server.chat, [image(image_bytes(Image.fromarray(noise))), TEXT])
        time.sleep(0.2)
        assert server.healthy()
        assert server.chat("Hello").status == 200
        assert not hostile.done()
        # What its end by max_decode_seconds is like, the tests of the pool show.
        for process in decoders:
            process.kill()
        assert refused(hostile.result(), "made its decoder fail")
    assert server.chat([image(image_bytes(picture(5))), TEXT]).status == 200
