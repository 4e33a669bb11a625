# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from tensorrt_llm.errors import LimitExceededError, MediaError, RequestError
from tensorrt_llm.inputs.image_form import (
    PILLOW_PIXEL_LIMIT,
    array_image,
    canonical_image,
    decode_image,
    model_image,
    resolve_image_options,
)

RNG = np.random.default_rng(7)
PIXELS = RNG.integers(0, 256, (6, 9, 3), dtype=np.uint8)
ORIENTATION = 0x0112


def encode(image: Image.Image, format: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def decode(data: bytes) -> Image.Image:
    return decode_image(data, max_pixels=PILLOW_PIXEL_LIMIT)


def rgb_of(image: Image.Image) -> np.ndarray:
    return np.asarray(model_image(canonical_image(image)))


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("PNG", {}),
        ("PNG", {"compress_level": 0}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("PPM", {}),
        ("WEBP", {"lossless": True}),
        ("JPEG2000", {"irreversible": False}),
    ],
)
def test_lossless_containers_give_the_same_pixels(format, options):
    image = canonical_image(decode(encode(Image.fromarray(PIXELS), format, **options)))
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), PIXELS)


@pytest.mark.parametrize("format", ["JPEG", "WEBP", "GIF", "AVIF", "ICO"])
def test_other_formats_decode(format):
    image = Image.fromarray(np.full((32, 32, 3), 200, np.uint8))
    pixels = rgb_of(decode(encode(image, format))).astype(int)
    assert abs(pixels - 200).max() <= 3


def composite(color: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """White under alpha, in floating point."""
    weight = alpha[..., None] / 255
    return color * weight + 255 * (1 - weight)


def test_white_lies_under_alpha():
    rgba = RNG.integers(0, 256, (6, 9, 4), dtype=np.uint8)
    rgba[0, 0, 3], rgba[0, 1, 3] = 0, 255
    expected = composite(rgba[..., :3].astype(float), rgba[..., 3].astype(float))
    pixels = rgb_of(Image.fromarray(rgba))
    assert abs(pixels - expected).max() <= 1
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[0, 1].tolist() == rgba[0, 1, :3].tolist()
    gray_alpha = rgba[..., [0, 3]].copy()
    expected = composite(gray_alpha[..., :1].astype(float), gray_alpha[..., 1].astype(float))
    assert abs(rgb_of(Image.fromarray(gray_alpha, "LA")) - expected).max() <= 1


def test_what_is_invisible_makes_no_difference():
    left, right = np.zeros((2, 2, 4), np.uint8), np.zeros((2, 2, 4), np.uint8)
    right[..., :3] = 99
    np.testing.assert_array_equal(rgb_of(Image.fromarray(left)), rgb_of(Image.fromarray(right)))


def test_palettes_are_resolved():
    indices = np.indices((8, 8)).sum(0).astype(np.uint8) % 2
    images = []
    for palette in ((255, 0, 0, 0, 0, 255), (0, 255, 0, 255, 255, 0)):
        image = Image.frombytes("P", (8, 8), indices.tobytes())
        image.putpalette(palette)
        expected = np.array(palette, np.uint8).reshape(2, 3)[indices]
        np.testing.assert_array_equal(rgb_of(image), expected)
        np.testing.assert_array_equal(rgb_of(decode(encode(image))), expected)
        np.testing.assert_array_equal(rgb_of(decode(encode(image, "GIF"))), expected)
        images.append(expected)
    assert (images[0] != images[1]).any()
    gray = rgb_of(Image.frombytes("L", (8, 8), indices.tobytes()))
    np.testing.assert_array_equal(gray, np.repeat(indices[..., None], 3, axis=2))


def test_a_transparent_palette_entry_is_white():
    image = Image.frombytes("P", (2, 1), bytes([0, 1]))
    image.putpalette((10, 20, 30, 40, 50, 60))
    for transparency in (1, bytes([255, 0])):
        loaded = decode(encode(image, transparency=transparency))
        assert rgb_of(loaded).tolist() == [[[10, 20, 30], [255, 255, 255]]]


def test_a_transparent_color_is_white():
    image = Image.frombytes("RGB", (2, 1), bytes([1, 2, 3, 4, 5, 6]))
    loaded = decode(encode(image, transparency=(4, 5, 6)))
    assert rgb_of(loaded).tolist() == [[[1, 2, 3], [255, 255, 255]]]
    gray = Image.frombytes("L", (2, 1), bytes([1, 4]))
    assert rgb_of(decode(encode(gray, transparency=4)))[0, :, 0].tolist() == [1, 255]
    deep = Image.frombytes("I;16", (2, 1), struct.pack("<2H", 257, 514))
    assert rgb_of(decode(encode(deep, transparency=514)))[0, :, 0].tolist() == [1, 255]


@pytest.mark.parametrize("mode", ["1", "L", "YCbCr", "LAB", "HSV", "RGBX", "RGBa", "La", "PA"])
def test_modes_that_rgb_holds_become_rgb(mode):
    image = canonical_image(Image.new(mode, (3, 2)))
    assert (image.mode, image.size) == ("RGB", (3, 2))


def test_bilevel_is_black_and_white():
    image = Image.new("1", (2, 1))
    image.putpixel((1, 0), 1)
    assert rgb_of(image)[0, :, 0].tolist() == [0, 255]


@pytest.mark.parametrize("tag", range(1, 9))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_orientation_is_applied_once(tag, format):
    exif = Image.Exif()
    exif[ORIENTATION] = tag
    options = (
        {"quality": 95} if format == "JPEG" else {"lossless": True} if format == "WEBP" else {}
    )
    data = encode(Image.fromarray(PIXELS), format, exif=exif, **options)
    with Image.open(io.BytesIO(data)) as opened:
        upright = np.asarray(ImageOps.exif_transpose(opened))
    canonical = canonical_image(decode(data))
    np.testing.assert_array_equal(np.asarray(canonical), upright)
    assert canonical.size == ((9, 6) if tag < 5 else (6, 9))
    np.testing.assert_array_equal(np.asarray(canonical_image(canonical)), upright)


def test_unreadable_metadata_spoils_no_pixel():
    data = encode(Image.fromarray(PIXELS), exif=b"Exif\x00\x00no metadata at all")
    np.testing.assert_array_equal(rgb_of(decode(data)), PIXELS)


@pytest.mark.parametrize("mode", ["I;16", "I;16L", "I;16B", "I;16N"])
def test_byte_orders_of_16_bits_are_one_form(mode):
    values = np.array([[0, 1, 256], [257, 0xFFFE, 0xFFFF]], np.uint16)
    order = {"I;16B": ">u2", "I;16N": "=u2"}.get(mode, "<u2")
    image = canonical_image(Image.frombytes(mode, (3, 2), values.astype(order).tobytes()))
    assert image.mode == "I;16"
    assert image.tobytes() == values.astype("<u2").tobytes()


def test_16_bits_are_scaled_and_not_clipped():
    eight = np.arange(256, dtype=np.uint16).reshape(16, 16)
    image = Image.frombytes("I;16", (16, 16), (eight * 257).astype("<u2").tobytes())
    np.testing.assert_array_equal(rgb_of(image)[..., 0], eight)
    for format in ("PNG", "TIFF", "PPM"):
        loaded = canonical_image(decode(encode(image, format)))
        assert loaded.mode == "I;16"
        assert loaded.tobytes() == image.tobytes()


def test_wide_integers_keep_their_values():
    values = np.array([[-5, 70000]], np.int32)
    image = canonical_image(Image.fromarray(values))
    assert image.mode == "I"
    assert np.asarray(image).tolist() == values.tolist()
    assert rgb_of(image)[0, :, 0].tolist() == [0, 255]
    flat = Image.fromarray(np.full((2, 2), 70000, np.int32))
    assert set(rgb_of(flat).ravel().tolist()) == {0}


@pytest.mark.parametrize(
    ("values", "gray"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 100.0, 255.0], [0, 100, 255]),
        ([0.0, 500.0, 1000.0], [0, 128, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
    ],
)
def test_floats_keep_their_values_and_are_scaled(values, gray):
    image = canonical_image(Image.fromarray(np.array([values], np.float32)))
    assert image.mode == "F"
    assert np.asarray(image).tolist() == [values]
    assert rgb_of(image)[0, :, 0].tolist() == gray


def test_floats_that_are_no_numbers_are_refused():
    with pytest.raises(MediaError, match="not numbers"):
        canonical_image(Image.fromarray(np.array([[np.nan]], np.float32)))


def test_cmyk_keeps_its_values():
    image = Image.frombytes("CMYK", (1, 1), bytes([10, 20, 30, 40]))
    canonical = canonical_image(decode(encode(image, "TIFF")))
    assert canonical.mode == "CMYK"
    assert canonical.tobytes() == bytes([10, 20, 30, 40])
    assert model_image(canonical).mode == "RGB"


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame_counts(format):
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    options = {"lossless": True} if format == "WEBP" else {}
    data = encode(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert rgb_of(decode(data))[0, 0].tolist() == [255, 0, 0]


def test_the_result_shares_nothing_with_the_source():
    source = Image.fromarray(PIXELS)
    source.info["note"] = "metadata"
    canonical = canonical_image(source)
    source.putpixel((0, 0), (0, 0, 0) if PIXELS[0, 0].any() else (1, 1, 1))
    np.testing.assert_array_equal(np.asarray(canonical), PIXELS)
    assert canonical.info == {}


def broken() -> dict[str, bytes]:
    jpeg = encode(Image.fromarray(np.repeat(np.repeat(PIXELS, 20, 0), 20, 1)), "JPEG")
    png = encode(Image.fromarray(PIXELS))
    checksum = png.index(b"IDAT") + 4 + struct.unpack_from(">I", png, png.index(b"IDAT") - 4)[0]
    flipped = bytearray(png)
    flipped[checksum] ^= 1
    header = bytearray(png)
    header[29] ^= 1
    damaged = bytearray(png)
    damaged[png.index(b"IDAT") + 20] ^= 0xFF
    return {
        "jpeg without its end": jpeg[:-128],
        "png cut": png[: len(png) // 2],
        "png data checksum": bytes(flipped),
        "png header checksum": bytes(header),
        "png data": bytes(damaged),
        "gif cut": encode(Image.fromarray(PIXELS), "GIF")[:-20],
        "webp cut": encode(Image.fromarray(PIXELS), "WEBP")[:-20],
        "bmp cut": encode(Image.fromarray(PIXELS), "BMP")[:-20],
        "tiff cut": encode(Image.fromarray(PIXELS), "TIFF")[:-20],
        "html": b"<html><body>no image</body></html>",
        "noise": b"\x07\xfe\x11",
        "empty": b"",
        "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n",
        "wav": b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(28),
    }


@pytest.mark.parametrize("name", broken())
def test_broken_images_are_one_plain_error(name):
    with pytest.raises(MediaError) as raised:
        canonical_image(decode(broken()[name]))
    for inside in ("0x", "BytesIO", "PIL", "Traceback"):
        assert inside not in str(raised.value)


def test_a_lazily_opened_broken_file_fails_at_the_door():
    with (
        Image.open(io.BytesIO(broken()["jpeg without its end"])) as image,
        pytest.raises(MediaError, match="truncated or damaged"),
    ):
        canonical_image(image)


@pytest.mark.parametrize("size", [(0, 0), (3, 0), (0, 3)])
def test_images_without_pixels_are_refused(size):
    with pytest.raises(MediaError, match="is empty"):
        canonical_image(Image.new("RGB", size))


def claiming(width: int, height: int) -> bytes:
    """A PNG with a valid header and no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (
        png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", zlib.compress(b""))
        + png_chunk(b"IEND", b"")
    )
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize(("width", "height"), [(11, 10), (10_000, 10_000), (60_000, 60_000)])
def test_pixels_are_counted_before_decoding(width, height):
    with pytest.raises(LimitExceededError) as raised:
        decode_image(claiming(width, height), max_pixels=109)
    assert (raised.value.value, raised.value.maximum) == (width * height, 109)
    assert "max_pixels (109 pixels)" in str(raised.value)


def test_pixels_at_the_limit_are_taken():
    assert decode_image(encode(Image.fromarray(PIXELS)), max_pixels=54).size == (9, 6)


@pytest.mark.parametrize(
    "array",
    [
        PIXELS,
        PIXELS.transpose(2, 0, 1),
        np.asfortranarray(PIXELS),
        torch.from_numpy(PIXELS),
        torch.from_numpy(PIXELS).permute(2, 0, 1),
        torch.from_numpy(PIXELS).permute(2, 0, 1) / 255,
        (PIXELS / 255).astype(np.float32),
        (PIXELS / 255).transpose(2, 0, 1),
        (torch.from_numpy(PIXELS).permute(2, 0, 1) / 255).half(),
        np.repeat(PIXELS, 2, axis=1)[:, ::2],
    ],
)
def test_arrays_of_one_picture_give_its_pixels(array):
    np.testing.assert_array_equal(rgb_of(array_image(array)), PIXELS)


def test_gray_and_alpha_arrays():
    gray = PIXELS[..., 0].copy()
    expected = np.repeat(gray[..., None], 3, axis=2)
    for array in (gray, gray[..., None], gray[None], gray / 255):
        np.testing.assert_array_equal(rgb_of(array_image(array)), expected)
    clear = np.zeros((2, 2, 4), np.uint8)
    assert rgb_of(array_image(clear)).min() == 255
    deep = array_image(gray.astype(np.uint16) * 257)
    assert deep.mode == "I;16"
    np.testing.assert_array_equal(rgb_of(deep), expected)


def test_where_both_layouts_fit_the_type_decides():
    array = RNG.integers(0, 256, (3, 5, 3), dtype=np.uint8)
    np.testing.assert_array_equal(rgb_of(array_image(array)), array)
    np.testing.assert_array_equal(rgb_of(array_image(array / 255)), array.transpose(1, 2, 0))


def test_integers_of_every_width_are_the_same_picture():
    array = RNG.integers(0, 128, (3, 5, 3), dtype=np.uint8)
    for dtype in (np.int8, np.int16, np.int32, np.uint32, np.int64, np.uint64, ">i4"):
        np.testing.assert_array_equal(rgb_of(array_image(array.astype(dtype))), array)
    for dtype in (torch.int8, torch.int32, torch.int64):
        tensor = torch.from_numpy(array.astype(np.int64)).to(dtype)
        np.testing.assert_array_equal(rgb_of(array_image(tensor)), array)


def test_bool_is_black_and_white():
    array = np.array([[True, False]])
    assert rgb_of(array_image(array))[0, :, 0].tolist() == [255, 0]


def test_bfloat16_is_read_by_value():
    tensor = torch.tensor([[0.0, 0.25], [0.5, 1.0]], dtype=torch.bfloat16)
    for view in (tensor, tensor.T.contiguous().T):
        assert rgb_of(array_image(view))[..., 0].tolist() == [[0, 64], [128, 255]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 56, 56, 3), np.uint8), r"shape \(2, 56, 56, 3\)"),
        (np.zeros((1, 112, 56, 3), np.uint8), r"shape \(1, 112, 56, 3\)"),
        (np.zeros((5, 6, 7), np.uint8), r"shape \(5, 6, 7\)"),
        (np.zeros(5, np.uint8), r"shape \(5,\)"),
        (np.zeros((0, 4, 3), np.uint8), "is empty"),
        (np.full((4, 4, 3), -1, np.int8), "0 to 255, not -1 to -1"),
        (np.full((4, 4, 3), 256, np.int64), "0 to 255, not 256"),
        (np.zeros((4, 4, 3), np.complex64), "complex64"),
        (np.zeros((4, 4, 3), "datetime64[s]"), "datetime64"),
        (torch.zeros(4, 4).to_sparse(), "dense"),
        (np.zeros((4, 4, 3), np.uint16), "1 channel, not 3"),
        (np.full((4, 4), 1.5), "from 1.5 to 1.5"),
        (np.full((4, 4), -0.5), "from -0.5"),
        (np.full((4, 4), np.nan), "nan"),
        ([[0, 1]], "not list"),
    ],
)
def test_other_arrays_are_refused(array, message):
    with pytest.raises(MediaError, match=message):
        array_image(array)


def test_image_options_fill_in_defaults():
    default = resolve_image_options(None)
    assert default == {"rgba_background_color": (255, 255, 255), "frame": 0}
    for same in ({}, {"rgba_background_color": [255, 255, 255]}, {"frame": 0}, {"frame": None}):
        assert resolve_image_options(same) == default
    assert resolve_image_options({"rgba_background_color": [0, 1, 2]}) != default


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"background": [0, 0, 0]}, "unknown option 'background'"),
        ({"rgba_background_color": [0, 0]}, "three ints"),
        ({"rgba_background_color": [0, 0, 256]}, "three ints"),
        ({"rgba_background_color": [0, 0, -1]}, "three ints"),
        ({"rgba_background_color": [0, 0, 1.0]}, "three ints"),
        ({"rgba_background_color": [0, 0, True]}, "three ints"),
        ({"rgba_background_color": "white"}, "three ints"),
        ({"frame": -1}, "from 0 to 999"),
        ({"frame": 1000}, "from 0 to 999"),
        ({"frame": True}, "from 0 to 999"),
    ],
)
def test_image_options_are_checked(options, message):
    with pytest.raises(RequestError, match=rf"media_io_kwargs\.image: .*{message}"):
        resolve_image_options(options)


def transparent_images() -> dict[str, Image.Image]:
    """The left pixel is seen, the right one is not."""
    palette = Image.frombytes("P", (2, 1), bytes([0, 1]))
    palette.putpalette((10, 10, 10, 40, 50, 60))
    palette.info["transparency"] = 1
    keyed = Image.frombytes("RGB", (2, 1), bytes([10, 10, 10, 4, 5, 6]))
    keyed.info["transparency"] = (4, 5, 6)
    deep = decode(
        encode(Image.frombytes("I;16", (2, 1), struct.pack("<2H", 2570, 514)), transparency=514)
    )
    return {
        "RGBA": Image.frombytes("RGBA", (2, 1), bytes([10, 10, 10, 255, 1, 2, 3, 0])),
        "LA": Image.frombytes("LA", (2, 1), bytes([10, 255, 1, 0])),
        "La": Image.frombytes("LA", (2, 1), bytes([10, 255, 1, 0])).convert("La"),
        "P": palette,
        "PA": palette.convert("PA"),
        "RGB": keyed,
        "I;16": deep,
    }


@pytest.mark.parametrize("mode", transparent_images())
@pytest.mark.parametrize("color", [(255, 255, 255), (0, 0, 0), (7, 8, 9)])
def test_the_background_lies_under_what_is_transparent(mode, color):
    image = canonical_image(transparent_images()[mode], color)
    assert np.asarray(model_image(image)).tolist() == [[[10, 10, 10], list(color)]]


def test_the_background_changes_no_opaque_image():
    picture = Image.fromarray(PIXELS)
    assert canonical_image(picture, (1, 2, 3)).tobytes() == canonical_image(picture).tobytes()


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_animated_files_give_the_first_frame_or_the_one_asked_for(format):
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [Image.new("RGB", (8, 8), color) for color in colors]
    options = {"lossless": True} if format == "WEBP" else {}
    data = encode(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert rgb_of(decode(data))[0, 0].tolist() == list(colors[0])
    for index, color in enumerate(colors):
        frame = decode_image(data, max_pixels=64, frame=index)
        assert rgb_of(frame)[0, 0].tolist() == list(color)
    with pytest.raises(MediaError, match=f"the {format} image has no frame 3"):
        decode_image(data, max_pixels=64, frame=3)


def test_pixels_of_a_later_frame_are_limited_too():
    pages = [Image.new("L", (4, 4)), Image.new("L", (100, 100))]
    data = encode(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    assert decode_image(data, max_pixels=100).size == (4, 4)
    with pytest.raises(LimitExceededError, match="10000 pixels exceed max_pixels"):
        decode_image(data, max_pixels=100, frame=1)
