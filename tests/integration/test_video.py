# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Video over HTTP: answers of the stock model, repeats from the cache, how frames are chosen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.av_media import video_bytes
from support.media import clip, data_uri
from support.served import Served

from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.video_data import VideoClip
from tensorrt_llm.inputs.video_form import VideoOptions, decode_video

QUESTION = "What happens here?"
OPTIONS = {"qwen2_5_omni": {"use_audio_in_video": True}}


@pytest.fixture(scope="module", params=["qwen3_vl", "llava_onevision", "qwen2_5_omni"])
def served(request: pytest.FixtureRequest, serve_family: Callable[[str], Served]) -> Served:
    return serve_family(request.param)


def file(seed: int) -> bytes:
    """Six frames at the rate that the reference knows, with three seconds of sound."""

    def pixels(number: int, total: int) -> np.ndarray:
        return np.random.default_rng(64 * seed + number).integers(0, 256, (64, 96, 3), np.uint8)

    return video_bytes(frames=6, fps=2, sound=clip(seed, 3.0, 48_000), pixels=pixels)


def taken(data: bytes, **options: object) -> VideoClip:
    return decode_video(data, VideoOptions.resolve(options), MediaLimits())


def sent(data: bytes) -> list[dict]:
    url = data_uri(data, "video/mp4")
    text = {"type": "text", "text": QUESTION}
    return [text, {"type": "video_url", "video_url": {"url": url}}]


def test_a_repeat_is_right_and_comes_from_the_cache(served: Served, salt: str) -> None:
    options = OPTIONS.get(served.name)
    one, other = file(1), file(2)
    video = taken(one)
    assert video.num_frames == 6 and video.audio is not None
    prompt = served.oracle.prompt(("user", [QUESTION, video]), options=options)
    assert served.check(QUESTION, video, sent=sent(one), options=options, salt=salt) == 0
    for _ in range(2):
        cached = served.check(QUESTION, video, sent=sent(one), options=options, salt=salt)
        assert cached == len(prompt) - 1
    cached = served.check(QUESTION, taken(other), sent=sent(other), options=options, salt=salt)
    assert cached == prompt.items[0].runs[0].position
    # Fewer frames are another video, of which the reference knows the rate too.
    few = {"video": {"num_frames": 6, "extract_audio": False}}
    served.check(
        QUESTION,
        taken(one, **few["video"]),
        sent=sent(one),
        media_io_kwargs=few,
        options=options,
        salt=salt,
    )


def test_too_many_rows_are_refused_with_both_numbers(served: Served) -> None:
    if served.name == "llava_onevision":
        options, said = {"media_io_kwargs": {"video": {"fps": 0}}}, "fps is a positive number"
    else:
        least = 65_536 * (32 if served.name == "qwen3_vl" else 28) ** 2
        bounds = {"video_min_pixels": least, "video_max_pixels": least}
        options, said = {"mm_processor_kwargs": bounds}, "rows, at most 32768 are taken"
    reply = served.server.chat(sent(file(3)), **options)
    assert reply.status == 400 and said in str(reply.error), reply
    served.check("Nothing is wrong now.")
