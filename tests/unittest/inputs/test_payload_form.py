# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks joined are compared with what NumPy and Pillow make of the whole."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from PIL import Image

from tensorrt_llm.inputs import payload_form
from tensorrt_llm.inputs.payload_form import (
    array_chunks,
    array_part,
    as_numpy,
    image_chunks,
    image_part,
)
from tensorrt_llm.inputs.pixel_memory import pixel_words

RNG = np.random.default_rng(3)


def joined(chunks) -> bytes:
    return b"".join(bytes(chunk) for chunk in chunks)


def layouts(array: np.ndarray) -> dict[str, np.ndarray]:
    """The same values in memory in many ways."""
    spread = np.repeat(array, 3, axis=-1)[..., ::3]
    return {
        "C": np.ascontiguousarray(array),
        "Fortran": np.asfortranarray(array),
        "strided": spread,
        "strided twice": np.repeat(spread, 2, axis=0)[::2],
        "reversed": np.ascontiguousarray(array[::-1])[::-1],
        "swapped axes": np.ascontiguousarray(array.swapaxes(0, -1)).swapaxes(0, -1),
        "big-endian": array.astype(array.dtype.newbyteorder(">")),
    }


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c8", "?"])
@pytest.mark.parametrize(
    "shape", [(5,), (1, 1), (7, 5, 3), (700, 311), (2, 3, 500, 200), (90, 400, 4), (9, 130, 700)]
)
def test_chunks_are_the_values_in_c_order_and_little_endian(dtype, shape):
    array = RNG.integers(0, 2**30, shape).astype(dtype)
    expected = array.astype(array.dtype.newbyteorder("<")).tobytes()
    for name, layout in layouts(array).items():
        assert joined(array_chunks(layout)) == expected, name


def test_broadcast_scalar_and_empty_arrays():
    assert joined(array_chunks(np.broadcast_to(np.uint8(7), (3, 4)))) == bytes([7] * 12)
    assert joined(array_chunks(np.array(5, np.uint8))) == b"\x05"
    assert joined(array_chunks(np.zeros((0, 3)))) == b""


def test_strided_arrays_are_not_copied_as_a_whole():
    array = RNG.integers(0, 256, (4000, 4000), dtype=np.uint8).T
    tracemalloc.start()
    for _ in array_chunks(array):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < array.nbytes / 4


def test_contiguous_arrays_are_not_copied_at_all():
    array = np.zeros((100, 100), np.float32)
    (chunk,) = array_chunks(array)
    assert np.shares_memory(np.frombuffer(chunk, np.uint8), array)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float16, torch.int64, torch.bool]
)
def test_tensors_of_every_type_keep_their_bits(dtype):
    tensor = torch.arange(24).reshape(4, 6).to(dtype)
    bits = tensor.contiguous().view(torch.uint8).numpy().tobytes()
    part = array_part(tensor, "x")
    assert part.description.values["dtype"] == str(dtype).removeprefix("torch.")
    assert joined(part.chunks) == bits
    assert part.description.nbytes == len(bits)
    strided = tensor.T.contiguous().T
    assert not strided.is_contiguous()
    assert joined(array_part(strided, "x").chunks) == bits


def test_tensors_share_their_memory():
    tensor = torch.zeros(4, 6, requires_grad=True)
    values, name = as_numpy(tensor)
    assert name == "float32"
    assert values.__array_interface__["data"][0] == tensor.data_ptr()


def test_views_that_conjugate_or_negate_are_resolved():
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    assert as_numpy(tensor.conj())[0].tolist() == [1 - 2j, 3 + 4j]
    assert as_numpy(tensor.conj().imag)[0].tolist() == [-2.0, 4.0]


@pytest.mark.parametrize(
    "array",
    [
        [1, 2],
        "text",
        np.array([object()]),
        np.array(["a"]),
        np.array([b"a"]),
        np.zeros(1, "datetime64[s]"),
        np.zeros(1, [("a", "u1")]),
        np.zeros(1, np.longdouble),
        torch.zeros(2, 2).to_sparse(),
    ],
)
def test_other_objects_are_refused(array):
    with pytest.raises(TypeError, match="expected"):
        as_numpy(array)


def images() -> dict[str, Image.Image]:
    rgb = Image.fromarray(RNG.integers(0, 256, (37, 41, 3), dtype=np.uint8))
    raw = RNG.integers(0, 256, 37 * 41 * 4, dtype=np.uint8).tobytes()
    return {
        "RGB": rgb,
        "CMYK": Image.frombytes("CMYK", (41, 37), raw),
        "I": Image.frombytes("I", (41, 37), raw),
        "F": Image.frombytes("F", (41, 37), raw),
        "I;16": Image.frombytes("I;16", (41, 37), raw[: 37 * 41 * 2]),
    }


@contextmanager
def no_words(image: Image.Image):
    """What a Pillow that lends nothing gives."""
    yield None


def expected_bytes(image: Image.Image) -> bytes:
    if image.mode != "RGB":
        return np.asarray(image).astype(np.asarray(image).dtype.newbyteorder("<")).tobytes()
    pixels = np.full((image.height, image.width, 4), 255, np.uint8)
    pixels[..., :3] = np.asarray(image)
    return pixels.tobytes()


@pytest.mark.parametrize("mode", images())
@pytest.mark.parametrize("memory", ["lent", "copied"])
def test_image_chunks_are_the_pixels(mode, memory, monkeypatch):
    if memory == "copied":
        monkeypatch.setattr(payload_form, "pixel_words", no_words)
        monkeypatch.setattr(payload_form, "CHUNK_BYTES", 1000)
    image = images()[mode]
    part = image_part(image)
    chunks = joined(part.chunks)
    assert chunks == expected_bytes(image)
    assert part.description.nbytes == len(chunks)


@pytest.mark.parametrize("memory", ["lent", "copied"])
def test_the_unused_byte_of_a_pixel_says_nothing(memory, monkeypatch):
    if memory == "copied":
        monkeypatch.setattr(payload_form, "pixel_words", no_words)
    pixels = RNG.integers(0, 255, (5, 7, 4), dtype=np.uint8)
    # Decoders and filters leave other numbers there as well.
    image = Image.frombytes("RGB", (7, 5), pixels.tobytes(), "raw", "RGBX")
    assert joined(image_chunks(image)) == expected_bytes(image)


def test_images_in_several_pieces_and_small_ones_alike():
    large = Image.new("RGB", (3000, 2500), (1, 2, 3))
    large.putpixel((2999, 2499), (4, 5, 6))
    assert joined(image_chunks(large)) == expected_bytes(large)


def test_pixel_words_are_the_memory_itself():
    image = images()["RGB"]
    with pixel_words(image) as words:
        if words is None:
            pytest.skip("this Pillow does not lend its memory")
        before = words.copy()
        image.putpixel((0, 0), (9, 9, 9))
        assert (words[1:] == before[1:]).all()
    with pixel_words(images()["I;16"]) as words:
        assert words is None
