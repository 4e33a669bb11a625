# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Clips that other servers took for each other, or failed to know again.

As in ``test_image_cases.py``: `Served.check` compares everything, a test says what is found.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from support.media import RATE, clip, data_uri, wav_bytes
from support.media_host import Host, serving
from support.served import Served

ASK = "Listen. "
END = " What was said?"


@pytest.fixture(scope="module", params=["qwen2_audio"])
def served(request: pytest.FixtureRequest, serve_family: Callable[[str], Served]) -> Served:
    return serve_family(request.param)


def sent(url: str, **fields: Any) -> list[dict[str, Any]]:
    media = {"type": "audio_url", "audio_url": {"url": url}, **fields}
    return [{"type": "text", "text": ASK}, media, {"type": "text", "text": END}]


def uri(samples: np.ndarray, rate: int = RATE) -> str:
    return data_uri(wav_bytes(samples, rate), "audio/wav")


def all_apart(served: Served, salt: str, *sounds: Any) -> None:
    """None of the clips finds another's rows; each finds its own."""
    for turn in range(2):
        for index, sound in enumerate(sounds):
            parts = (ASK, sound, END)
            cached = served.check(*parts, salt=salt)
            first = served.first_row(*parts) if index else 0
            assert cached == (served.full(*parts) if turn else first)


def test_clips_that_differ_late_or_little(served: Served, salt: str) -> None:
    """C04: the second half, the last 16 samples, and nothing but the level of one."""
    base = clip(1, 4.0)
    half, tail, one = base.copy(), base.copy(), base.copy()
    half[2 * RATE :] = clip(2, 2.0)
    tail[-16:] = 0.9
    one[RATE] = 0.9
    all_apart(served, salt, base, half, tail, one)


def test_questions_on_a_clip_and_on_one_with_the_same_head(served: Served, salt: str) -> None:
    """C12, alone and beside another clip."""
    clip_a, other = clip(21, 6.0), clip(23, 3.0)
    clip_b = clip_a.copy()
    clip_b[3 * RATE :] = clip(22, 3.0)
    for beside in ((), (" and ", other)):
        for sound, end in (
            *((clip_a, "Transcribe."), (clip_a, "Transcribe."), (clip_a, "How many words?")),
            *((clip_b, "Transcribe."), (clip_a, "Transcribe.")),
        ):
            # The count of cached tokens is compared with brute force, as the answer is.
            served.check(f"Listen to {1 + len(beside)}: ", sound, *beside, end, salt=salt)


def test_equal_samples_at_other_rates(served: Served, salt: str) -> None:
    """C05: the header's rate decides how long the clip is, and which item it is."""
    samples = clip(5, 2.0)
    sounds = [(samples, rate) for rate in (16_000, 8_000, 32_000)]
    all_apart(served, salt, *sounds)
    rows = [len(served.prompt(ASK, sound, END)) for sound in sounds]
    as_long = [len(served.prompt(ASK, clip(5, seconds), END)) for seconds in (2.0, 4.0, 1.0)]
    assert rows == as_long
    assert len(set(rows)) == 3
    # The same bytes of samples under another number of channels.
    stereo = np.ascontiguousarray(samples.reshape(-1, 2))
    all_apart(served, f"{salt} channels", samples, stereo)


def test_names_whose_content_changes(served: Served, salt: str, media_dir: Path) -> None:
    """C06: a file and a URL."""
    sounds = [clip(seed, 2.0) for seed in (61, 62)]
    path = media_dir / f"{salt}.wav"
    with serving(Host()) as host:
        for url in (path.as_uri(), f"{host.url}/ok/a.wav"):
            found = []
            for which in (0, 1, 0):
                host.body = wav_bytes(sounds[which])
                path.write_bytes(host.body)
                parts = (ASK, sounds[which], END)
                found.append(served.check(*parts, sent=sent(url), salt=f"{salt} {url}"))
            assert found == [0, served.first_row(*parts), served.full(*parts)]


def test_ids_of_callers(served: Served, salt: str) -> None:
    """C07: one id on a clip of 2 s and then on one of 6 s, in any order."""
    short, long = clip(71, 2.0), clip(72, 6.0)
    for turn in range(2):
        for sound in (short, long, short):
            parts = (ASK, sound, END)
            cached = served.check(*parts, sent=sent(uri(sound), uuid="a1"), salt=salt)
            if turn:
                assert cached == served.full(*parts)
    assert served.server.healthy()


def test_one_clip_through_every_door(served: Served, salt: str, media_dir: Path) -> None:
    """C09 for sound: containers, base64 without a URL, files and addresses."""
    sound = clip(91, 2.0)
    wav = wav_bytes(sound)
    flac = io.BytesIO()
    soundfile.write(flac, soundfile.read(io.BytesIO(wav), dtype="int16")[0], RATE, format="FLAC")
    path = media_dir / f"{salt}.wav"
    path.write_bytes(wav)
    inline = sent("")
    inline[1] = {
        "type": "input_audio",
        "input_audio": {"data": uri(sound).partition(",")[2], "format": "wav"},
    }
    with serving(Host(body=flac.getvalue())) as host:
        doors = [
            sent(uri(sound)),
            sent(data_uri(flac.getvalue(), "audio/flac")),
            inline,
            sent(path.as_uri()),
            sent(str(path)),
            sent(f"{host.url}/ok/a"),
        ]
        full = served.full(ASK, sound, END)
        for order in (doors, doors[::-1], doors[2:] + doors[:2]):
            scope = f"{salt} {doors.index(order[0])}"
            cached = [served.check(ASK, sound, END, sent=door, salt=scope) for door in order]
            assert cached == [0] + [full] * (len(doors) - 1)


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
def test_stereo_is_as_long_as_mono(served: Served, salt: str, rate: int) -> None:
    """C21: sound on one side only is mixed down first, then brought to the model's rate."""
    tone = (0.6 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)).astype(np.float32)
    left = np.stack([tone, 0 * tone], axis=1)
    quiet = (tone / 2, rate)
    parts = (ASK, (left, rate), END)
    assert served.check(*parts, salt=salt) == 0
    assert served.check(*parts, salt=salt) == served.full(*parts)
    assert len(served.prompt(*parts)) == len(served.prompt(ASK, clip(1, 1.0), END))
    # What is heard is half as loud and the same, though by identity it is another clip.
    mono = served.prompt(ASK, quiet, END).items[0].encoder_inputs
    for name, heard in served.prompt(*parts).items[0].encoder_inputs.items():
        np.testing.assert_allclose(heard.numpy(), mono[name].numpy(), atol=5e-3)
    assert served.check(ASK, quiet, END, salt=salt) == served.first_row(*parts)
