# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Video against a plain decoding of every frame, and what is and is not one identity."""

from __future__ import annotations

import dataclasses
import io
from fractions import Fraction

import av
import numpy as np
import pytest
from support.av_media import all_frames, frame_pixels, sound_bytes, video_bytes
from support.media import image_bytes, picture

from tensorrt_llm.errors import LimitExceededError, MediaError, RequestError
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.video_data import VideoClip
from tensorrt_llm.inputs.video_form import VideoOptions, decode_video

HASHER = MediaHasher()
SOUND = (0.4 * np.sin(np.arange(2 * 48_000) / 20)).astype(np.float32)


def decode(data: bytes, limits: MediaLimits | None = None, **options) -> VideoClip:
    return decode_video(data, VideoOptions.resolve(options), limits or MediaLimits())


def digest(video: VideoClip) -> bytes:
    return HASHER.payload_digest("video", video)


@pytest.mark.parametrize(
    ("form", "codec"),
    [
        ("mp4", "libx264"),
        ("mov", "libx264"),
        ("matroska", "libx264"),
        ("webm", "libvpx-vp9"),
        ("mpegts", "libx264"),
        ("avi", "mpeg4"),
        ("avi", "mjpeg"),
    ],
)
@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_the_chosen_frames_are_those_of_a_plain_decoding(form, codec, count) -> None:
    data = video_bytes(form, codec)
    every = all_frames(data)
    video = decode(data, num_frames=count)
    # Frames spread evenly, first and last included.
    expected = np.linspace(0, 29, count, dtype=int).tolist()
    assert list(video.frame_indices) == expected
    assert (video.total_num_frames, video.audio) == (30, None)
    assert video.duration == pytest.approx(2.0, abs=0.01)
    assert video.fps == pytest.approx(15.0, abs=0.1)
    np.testing.assert_allclose(video.timestamps, np.array(expected) / 15, atol=2e-3)
    for chosen, number in zip(video.frames, expected, strict=True):
        np.testing.assert_array_equal(chosen, every[number][1])


def test_the_pictures_are_the_pictures() -> None:
    video = decode(video_bytes(), num_frames=5)
    for pixels, number in zip(video.frames, video.frame_indices, strict=True):
        difference = np.abs(pixels.astype(int) - frame_pixels(number, 30).astype(int))
        assert difference.mean() < 8, "colours and rows are where they were"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 10),
        ({"num_frames": 4}, 4),
        ({"num_frames": 100}, 30),
        ({"fps": 4}, 8),
        ({"fps": 4.0}, 8),
        ({"fps": 0.01}, 1),
        ({"fps": 1000}, 30),
        ({"fps": 4, "num_frames": 5}, 5),
        ({"fps": 2, "num_frames": 5}, 4),
        ({"fps": None, "num_frames": None}, 30),
    ],
)
def test_how_many_frames(options, count) -> None:
    assert decode(video_bytes(), **options).num_frames == count


def test_frames_of_uneven_length_are_chosen_by_time() -> None:
    # Frame 1 is shown from 0.1 s to 1.9 s: most of the time, it is what one sees.
    times = [0, 100, 1900, 2000]
    data = video_bytes("matroska", frames=4, times=times)
    video = decode(data, num_frames=3)
    assert list(video.frame_indices) == [0, 1, 3]
    np.testing.assert_allclose(video.timestamps, [0, 0.1, 2.0], atol=2e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"num_frames": 0},
        {"num_frames": 2.0},
        {"num_frames": True},
        {"fps": 0},
        {"fps": -1},
        {"fps": float("inf")},
        {"fps": float("nan")},
        {"fps": "30"},
        {"extract_audio": 1},
        {"frames": 3},
    ],
)
def test_options_that_mean_nothing_are_refused(options) -> None:
    with pytest.raises(RequestError):
        VideoOptions.resolve(options)


def test_the_sound_is_part_of_the_video_unless_it_is_not_wanted() -> None:
    data = video_bytes(sound=SOUND)
    audio = decode(data).audio
    assert audio is not None and (audio.num_frames, audio.sample_rate) == (96_000, 48_000)
    core = slice(5000, -5000)
    assert np.corrcoef(audio.samples[core], SOUND[core])[0, 1] > 0.99
    assert decode(data, extract_audio=False).audio is None


def test_what_is_another_video_is_another_identity() -> None:
    base = decode(video_bytes(sound=SOUND), num_frames=4)
    assert digest(decode(video_bytes(sound=SOUND), num_frames=4)) == digest(base)
    later = video_bytes("matroska", frames=4, times=[0, 100, 200, 300])
    sooner = video_bytes("matroska", frames=4, times=[0, 100, 200, 400])
    moved = base.frames.copy()
    moved[3, 63, 95, 2] ^= 1
    others = [
        decode(video_bytes(sound=SOUND), num_frames=5),
        decode(video_bytes(sound=SOUND), num_frames=4, extract_audio=False),
        decode(video_bytes(sound=SOUND / 2), num_frames=4),
        decode(later, num_frames=4),
        decode(sooner, num_frames=4),
        dataclasses.replace(base, frames=moved),
        dataclasses.replace(base, frames=base.frames[::-1].copy()),
        dataclasses.replace(base, fps=base.fps * 2),
        dataclasses.replace(base, duration=base.duration * 2),
        dataclasses.replace(base, total_num_frames=31),
        dataclasses.replace(base, timestamps=(*base.timestamps[:-1], 1.99)),
    ]
    assert len({digest(video) for video in (base, *others)}) == 1 + len(others)


def test_one_video_in_two_containers_is_one_identity() -> None:
    data = {form: video_bytes(form, "mpeg4", frames=12) for form in ("mp4", "mov")}
    assert len({digest(decode(file)) for file in data.values()}) == 1


def broken() -> dict[str, bytes]:
    whole = {
        "mp4": video_bytes(),
        "mkv": video_bytes("matroska"),
        "webm": video_bytes("webm", "libvpx"),
        "avi": video_bytes("avi", "mpeg4"),
    }
    return {
        **{f"{name} half": data[: len(data) // 2] for name, data in whole.items()},
        **{f"{name} end": data[:-5] for name, data in whole.items()},
        "nothing": b"",
        "noise": bytes(range(256)) * 20,
        "html": b"<html></html>",
        "picture": image_bytes(picture(1)),
        "sound only": sound_bytes("mp4", "aac", SOUND[:9000]),
        "playlist": b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n",
    }


@pytest.mark.parametrize("name", broken())
def test_broken_videos_are_one_plain_error(name) -> None:
    with pytest.raises(MediaError) as raised:
        decode(broken()[name])
    for inside in ("0x", "BytesIO", "avcodec", "Errno", "Traceback"):
        assert inside not in str(raised.value)


@pytest.mark.parametrize("shift", range(7))
def test_damage_inside_is_refused(shift: int) -> None:
    data = bytearray(video_bytes("matroska", frames=60))
    for place in range(len(data) // 3 + shift, 2 * len(data) // 3, 7):
        data[place] ^= 0x55
    with pytest.raises(MediaError):
        decode(bytes(data), num_frames=60)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_pixels": 96 * 64 - 1}, "6144 pixels exceed max_pixels (6143 pixels)"),
        ({"max_video_frames": 9}, "10 frames exceed max_video_frames (9 frames)"),
        ({"max_video_pixels": 61_439}, "61440 pixels exceed max_video_pixels (61439 pixels)"),
        ({"max_video_seconds": 1.5}, "2.0 seconds exceed max_video_seconds (1.5 seconds)"),
        ({"max_audio_seconds": 1.5}, "2.0 seconds exceed max_audio_seconds (1.5 seconds)"),
    ],
)
def test_limits_carry_both_numbers(limits, message) -> None:
    data = video_bytes(sound=SOUND)
    name, most = next(iter(limits.items()))
    decode(data, MediaLimits(**{name: most + 1}))
    with pytest.raises(LimitExceededError) as raised:
        decode(data, MediaLimits(**limits))
    assert str(raised.value) == message


def test_a_video_that_changes_its_size_is_refused() -> None:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="matroska") as container:
        stream = container.add_stream("mjpeg", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuvj420p"
        for number, size in enumerate(((96, 64), (128, 96), (128, 96))):
            packet = av.Packet(image_bytes(picture(number, *size), "JPEG"))
            packet.stream, packet.time_base = stream, Fraction(1, 1000)
            packet.pts = packet.dts = 100 * number
            packet.is_keyframe = True
            container.mux(packet)
    assert decode(buffer.getvalue(), num_frames=1).frames.shape == (1, 64, 96, 3)
    for count in (2, 3):
        with pytest.raises(MediaError, match="changes its size: 96x64 and 128x96 pixels"):
            decode(buffer.getvalue(), num_frames=count)


def test_a_turned_video_is_decoded_upright() -> None:
    data = video_bytes("mov", frames=6)
    plain = decode(data, num_frames=2)
    # The display matrix of the track's header, by ISO/IEC 14496-12: identity, then a quarter turn.
    one = (0x10000).to_bytes(4, "big")
    zero, minus = bytes(4), (-0x10000).to_bytes(4, "big", signed=True)
    last = (0x40000000).to_bytes(4, "big")
    identity = one + zero + zero + zero + one + zero + zero + zero + last
    clockwise = zero + one + zero + minus + zero + zero + zero + zero + last
    place = data.index(identity, data.index(b"tkhd"))
    turned = decode(data[:place] + clockwise + data[place + 36 :], num_frames=2)
    np.testing.assert_array_equal(turned.frames, np.rot90(plain.frames, -1, axes=(1, 2)))
    assert digest(turned) != digest(plain)


def test_a_cover_picture_is_no_video() -> None:
    buffer = io.BytesIO(sound_bytes("ipod", "aac", SOUND[:9000]))
    with pytest.raises(MediaError, match="holds no video"):
        decode(buffer.getvalue())
