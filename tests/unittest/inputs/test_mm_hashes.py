# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The item stream against bytes written out by hand; what must and must not share a digest."""

from __future__ import annotations

import hashlib
import struct

import blake3
import numpy as np
import pytest
import torch
from PIL import Image

from tensorrt_llm.inputs.mm_hashes import (
    HASH_VERSION_TAG,
    BaseModalityData,
    VideoData,
    apply_mm_hashes,
    item_chunks,
    serialize_item,
)
from tensorrt_llm.inputs.multimodal_data import AudioData

RNG = np.random.default_rng(11)
PIXELS = RNG.integers(0, 256, (6, 9, 3), dtype=np.uint8)


def lp(content: bytes) -> bytes:
    return struct.pack(">Q", len(content)) + content


def digest(item: object, modality: str = "image") -> str:
    return apply_mm_hashes({modality: item}).hashes[modality][0]


@pytest.mark.parametrize(
    ("value", "stream"),
    [
        ("é", b"\x01" + lp(b"\xc3\xa9")),
        (b"ab", b"\x02" + lp(b"ab")),
        (0, b"\x03\x01\x00"),
        (255, b"\x03\x02\x00\xff"),
        (-1, b"\x03\x01\xff"),
        (-129, b"\x03\x02\xff\x7f"),
        (0.5, b"\x04" + struct.pack(">d", 0.5)),
        (True, b"\x05\x01"),
        (np.int64(255), b"\x03\x02\x00\xff"),
        (np.float32(0.5), b"\x04" + struct.pack(">d", 0.5)),
        (np.bool_(False), b"\x05\x00"),
        ([1, "a"], b"\x20" + struct.pack(">Q", 2) + b"\x03\x01\x01" + b"\x01" + lp(b"a")),
        ((1, "a"), b"\x20" + struct.pack(">Q", 2) + b"\x03\x01\x01" + b"\x01" + lp(b"a")),
        (
            {"b": 1, "a": 2},
            b"\x22"
            + struct.pack(">Q", 2)
            + (b"\x01" + lp(b"a") + b"\x03\x01\x02")
            + (b"\x01" + lp(b"b") + b"\x03\x01\x01"),
        ),
        (
            np.array([[1, 2, 3]], np.uint16),
            b"\x11"
            + lp(b"<u2")
            + b"\x02"
            + struct.pack(">QQ", 1, 3)
            + lp(struct.pack("<3H", 1, 2, 3)),
        ),
        (
            torch.tensor([1.0], dtype=torch.bfloat16),
            b"\x11" + lp(b"bfloat16") + b"\x01" + struct.pack(">Q", 1) + lp(b"\x80\x3f"),
        ),
        (
            Image.frombytes("RGB", (2, 1), bytes([1, 2, 3, 4, 5, 6])),
            b"\x10"
            + lp(b"RGB")
            + struct.pack(">II", 2, 1)
            + lp(bytes([1, 2, 3, 255, 4, 5, 6, 255])),
        ),
        (
            Image.frombytes("I;16", (2, 1), bytes([1, 2, 3, 4])),
            b"\x10" + lp(b"I;16") + struct.pack(">II", 2, 1) + lp(bytes([1, 2, 3, 4])),
        ),
    ],
)
def test_streams_are_as_documented(value, stream):
    assert serialize_item(value) == stream


@pytest.mark.parametrize(
    "value",
    [
        None,
        [None],
        {"a": None},
        object(),
        {1, 2},
        np.array([object()]),
        np.array(["a"]),
        {1: 2, "a": 3},
        {1.5: 2},
        1 << 2040,
    ],
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(ValueError, match=r"canonical form|all str or all int"):
        serialize_item(value)


def test_endless_nesting_is_refused():
    value: list = []
    value.append(value)
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        serialize_item(value)


def test_large_buffers_pass_in_pieces_as_they_lie():
    array = np.zeros(2**20, np.uint8)
    pieces = list(item_chunks(array))
    assert any(np.shares_memory(np.frombuffer(piece, np.uint8), array) for piece in pieces)


def test_digest_and_uuid_streams():
    item = PIXELS
    stream = HASH_VERSION_TAG + serialize_item(item)
    assert digest(item) == blake3.blake3(stream).hexdigest()
    sha = apply_mm_hashes({"image": [item]}, hash_lib=hashlib.sha256)
    assert sha.hashes == {"image": [hashlib.sha256(stream).hexdigest()]}
    both = apply_mm_hashes({"image": [item, item]}, {"image": ["id", None]})
    framed = b"<uuid>" + serialize_item("id") + b"</uuid><content>" + stream + b"</content>"
    assert both.hashes["image"] == [blake3.blake3(framed).hexdigest(), digest(item)]
    assert both.uuids == {"image": ["id", None]}
    assert apply_mm_hashes({"image": item}).uuids is None


def test_an_id_cannot_spell_its_own_end():
    inner = b"</uuid><content>" + HASH_VERSION_TAG + b"\x02" + lp(b"x")
    long_id = apply_mm_hashes({"image": b"x"}, {"image": "a" + inner.decode("latin-1")})
    other = apply_mm_hashes({"image": inner + b"x"}, {"image": "a"})
    assert long_id.hashes != other.hashes


def test_content_counts_beside_the_id():
    one, two = (apply_mm_hashes({"image": i}, {"image": "same"}).hashes for i in (b"a", b"b"))
    assert one != two


@pytest.mark.parametrize("uuids", [["a"], "a", ["a", "b", "c"]])
def test_wrong_number_of_ids(uuids):
    with pytest.raises(ValueError, match=r"UUID list length \d doesn't match the 2 data items"):
        apply_mm_hashes({"image": [b"a", b"b"]}, {"image": uuids})
    with pytest.raises(ValueError, match="a str or None, not int"):
        apply_mm_hashes({"image": [b"a"]}, {"image": [5]})


def test_near_misses_of_pictures():
    raw = bytes(range(256)) * 9
    palette = Image.frombytes("P", (16, 16), raw[:256])
    palette.putpalette(list(raw[:768]))
    other = palette.copy()
    other.putpalette(list(reversed(raw[:768])))
    turned = Image.frombytes("RGB", (24, 32), raw)
    turned.getexif()[0x0112] = 6
    images = [
        Image.frombytes("RGB", (24, 32), raw),
        Image.frombytes("RGB", (32, 24), raw),
        Image.frombytes("L", (16, 16), raw[:256]),
        palette,
        other,
        Image.frombytes("CMYK", (24, 24), raw),
        Image.frombytes("CMYK", (24, 24), raw[:-1] + b"\0"),
        Image.frombytes("I", (24, 24), raw),
        Image.frombytes("F", (24, 24), raw),
        Image.frombytes("I;16", (24, 24), raw[:1152]),
        turned,
    ]
    assert len({digest(image) for image in images}) == len(images)


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_modes_beyond_eight_bits_keep_their_values(mode):
    """An RGBA conversion would clip all of these to white."""
    values = np.full((4, 4), 1000), np.full((4, 4), 2000)
    dtype = {"I;16": "<u2", "I": "<i4", "F": "<f4"}[mode]
    one, two = (Image.frombytes(mode, (4, 4), v.astype(dtype).tobytes()) for v in values)
    assert digest(one) != digest(two)
    assert digest(one) == digest(one.copy())


def test_an_orientation_tag_is_the_turned_picture():
    image = Image.fromarray(PIXELS)
    tagged = image.copy()
    tagged.getexif()[0x0112] = 3
    assert digest(tagged) == digest(image.transpose(Image.Transpose.ROTATE_180)) != digest(image)


def test_layout_in_memory_makes_no_difference():
    arrays = [
        PIXELS,
        np.asfortranarray(PIXELS),
        np.repeat(PIXELS, 2, axis=1)[:, ::2],
        torch.from_numpy(PIXELS),
        torch.from_numpy(PIXELS).permute(2, 0, 1).contiguous().permute(1, 2, 0),
    ]
    assert len({digest(array) for array in arrays}) == 1
    floats = PIXELS.astype("<f4")
    assert digest(floats) == digest(PIXELS.astype(">f4")) != digest(PIXELS)


def video(**changes) -> VideoData:
    fields = {
        "frames": [Image.fromarray(PIXELS), Image.fromarray(PIXELS[::-1].copy())],
        "metadata": {"frames_indices": [0, 4], "fps": 8.0, "duration": 1.0},
        "audio": AudioData(np.zeros(8, np.float32), 8000),
    }
    return VideoData(**{**fields, **changes})


def test_every_part_of_a_video_counts():
    frames, metadata = video().frames, video().metadata
    misses = [
        video(frames=frames[:1]),
        video(frames=frames[::-1]),
        video(metadata={**metadata, "fps": 4.0}),
        video(metadata={**metadata, "frames_indices": [0, 5]}),
        video(metadata={**metadata, "total_num_frames": 8}),
        video(audio=None),
        video(audio=AudioData(np.zeros(8, np.float32), 16000)),
        video(raw_bytes_hash="ab"),
    ]
    digests = [digest(miss, "video") for miss in (video(), *misses)]
    assert len(set(digests)) == len(digests)
    twins = [
        video(metadata={**metadata, "title": "x"}),
        video(metadata={**metadata, "total_num_frames": None}),
    ]
    assert {digest(twin, "video") for twin in twins} == {digests[0]}
    arrays = np.stack([PIXELS, PIXELS[::-1]])
    assert digest(video(frames=arrays), "video") == digest(video(frames=list(arrays)), "video")


def test_a_hash_that_an_object_carries_never_replaces_its_frames():
    one = video(raw_bytes_hash="same")
    two = video(frames=one.frames[::-1], raw_bytes_hash="same")
    assert digest(one, "video") != digest(two, "video")


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"frames": []}, ValueError, "no frames"),
        ({"metadata": [("fps", 1)]}, TypeError, "must be a dict, not list"),
        ({"audio": np.zeros(3)}, TypeError, "AudioData, not ndarray"),
    ],
)
def test_video_faults(changes, error, match):
    with pytest.raises(error, match=match):
        video(**changes)


def test_audio_is_its_samples_and_its_rate():
    samples = RNG.uniform(-1, 1, 100).astype(np.float32)
    expected = b"<audio>" + serialize_item((samples, 16000))
    hasher = blake3.blake3()
    AudioData(samples, 16000).update_hash(hasher)
    assert hasher.hexdigest() == blake3.blake3(expected).hexdigest()
    clip = AudioData(samples, 16000)
    assert digest(clip, "audio") == digest(AudioData(torch.from_numpy(samples), 16000.0), "audio")
    assert digest(clip, "audio") != digest(AudioData(samples, 8000), "audio")


def test_a_class_that_does_not_say_is_refused():
    with pytest.raises(NotImplementedError, match="BaseModalityData does not say"):
        BaseModalityData().update_hash(blake3.blake3())
