# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Images: decoding, the canonical form that identities are made of, and the form models see.

```
encoded bytes ─ decode_image ─┐
array, tensor ─ array_image ──┼─▶ canonical_image ─▶ digest
PIL image ────────────────────┘         │
                                        └─ model_image ─▶ RGB for the family
```

Canonical: orientation applied, one frame, and one of five modes. Whatever 8-bit RGB holds becomes
``RGB`` (palette resolved, a background color under alpha), so one picture is one payload whatever
file or object it came in. Modes that hold more keep their values: ``I;16``, ``I``, ``F`` and
``CMYK``.

The options that a request may set are in ``resolve_image_options``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from tensorrt_llm.errors import LimitExceededError, MediaError, RequestError
from tensorrt_llm.inputs.media_limits import PILLOW_PIXEL_LIMIT
from tensorrt_llm.inputs.payload_form import CANONICAL_IMAGE_MODES, as_numpy

# Decoder processes import this module; loading torch would be most of their start.
if TYPE_CHECKING:
    import torch

Color: TypeAlias = "tuple[int, int, int]"

WHITE: Color = (255, 255, 255)
MAX_FRAME = 999
"""Highest frame of an animated image that may be asked for; all before it are decoded too."""

# Left out on purpose: formats that start other programs (EPS) and those without a signature.
IMAGE_FORMATS = (
    "PNG",
    "JPEG",
    "WEBP",
    "GIF",
    "BMP",
    "TIFF",
    "PPM",
    "AVIF",
    "JPEG2000",
    "ICO",
)

_ORIENTATION_TAG = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_MODES_WITH_ALPHA = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa")
_MODES_LIKE_RGB = (*_MODES_WITH_ALPHA, "RGBX", "YCbCr", "LAB", "HSV")
_CHANNEL_COUNTS = (1, 3, 4)
_ARRAY_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def resolve_image_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Checks the image options of ``media_io_kwargs`` and fills in the defaults.

    Args:
        options: ``rgba_background_color``, three ints of 0..255 (default white): what lies under
            transparent pixels. ``frame``, 0..``MAX_FRAME`` (default 0): which frame of an animated
            file is the picture.

    Raises:
        RequestError: If an option is unknown or its value is out of range.
    """
    where = "media_io_kwargs.image"
    given = {name: value for name, value in (options or {}).items() if value is not None}
    color = given.pop("rgba_background_color", WHITE)
    frame = given.pop("frame", 0)
    for name in given:
        raise RequestError(
            f"unknown option {name!r:.80}; images take: rgba_background_color, frame", part=where
        )
    if not (
        isinstance(color, (list, tuple))
        and len(color) == 3
        and all(type(value) is int and 0 <= value <= 255 for value in color)
    ):
        raise RequestError(
            f"rgba_background_color is three ints from 0 to 255, not {color!r:.80}", part=where
        )
    if type(frame) is not int or not 0 <= frame <= MAX_FRAME:
        raise RequestError(f"frame is an int from 0 to {MAX_FRAME}, not {frame!r:.80}", part=where)
    return {"rgba_background_color": tuple(color), "frame": frame}


def decode_image(data: bytes, *, max_pixels: int, frame: int = 0) -> Image.Image:
    """Decodes one frame of an encoded image, completely.

    Args:
        data: The encoded file, in one of ``IMAGE_FORMATS``; the format is found by content.
        max_pixels: Most pixels (width times height), checked before anything is decoded.
        frame: Which frame of an animated file, from 0.

    Raises:
        MediaError: If the bytes are empty, no image, truncated or damaged, or hold fewer frames.
        LimitExceededError: If the image has more pixels.
    """
    if not data:
        raise MediaError("the image is empty: 0 bytes")
    image = _open(data, max_pixels)
    _check_pixels(image, max_pixels)
    if frame:
        _seek(image, frame)
        # Frames of one file need not have one size.
        _check_pixels(image, max_pixels)
    try:
        if image.format == "PNG":
            # Loading a PNG skips the checksums; verifying spends the object it is called on.
            with Image.open(io.BytesIO(data), formats=("PNG",)) as probe:
                probe.verify()
        image.load()
    except Exception as error:  # Decoders meet hostile bytes with every kind of exception.
        raise MediaError(f"the {image.format} image is truncated or damaged") from error
    return image


def _check_pixels(image: Image.Image, max_pixels: int) -> None:
    pixels = image.width * image.height
    if pixels > max_pixels:
        raise LimitExceededError("max_pixels", pixels, max_pixels, "pixels")


def _seek(image: Image.Image, frame: int) -> None:
    try:
        image.seek(frame)
    except EOFError as error:
        raise MediaError(f"the {image.format} image has no frame {frame}") from error
    except Exception as error:  # As in decode_image.
        raise MediaError(f"the {image.format} image is truncated or damaged") from error


def _open(data: bytes, max_pixels: int) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=IMAGE_FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        pixels = re.search(r"\((\d+) pixels\)", str(error))
        value = int(pixels[1]) if pixels else PILLOW_PIXEL_LIMIT
        raise LimitExceededError("max_pixels", value, max_pixels, "pixels") from error
    except Exception as error:  # As above: damaged headers, too, raise anything.
        known = ", ".join(IMAGE_FORMATS)
        raise MediaError(f"{len(data)} bytes that are no readable image ({known})") from error


def array_image(array: np.ndarray | torch.Tensor) -> Image.Image:
    """Makes an image of an array.

    Args:
        array: Integers of 0..255, a float type (0..1, rounded to the nearest of 256 levels), bool
            (black and white) or uint16 (gray only, 0..65535), shaped ``[height, width]``,
            ``[height, width, channels]`` or ``[channels, height, width]`` with 1, 3 or 4
            channels. Where both of the last could be meant, floats are channels-first and others
            channels-last.

    Raises:
        MediaError: If the shape, the type or the values are others.
    """
    pixels = _as_pixels(array)
    if pixels.size == 0:
        raise MediaError(f"the image is empty: shape {pixels.shape}")
    if pixels.ndim == 3 and _channels_first(pixels):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in _CHANNEL_COUNTS:
        raise MediaError(
            f"an image of shape {tuple(array.shape)}; it has 2 axes, or 3 with 1, 3 or 4 channels"
        )
    height, width, channels = pixels.shape
    if pixels.dtype.name == "uint16":
        if channels != 1:
            raise MediaError(f"a uint16 image has 1 channel, not {channels}")
        return Image.frombytes("I;16", (width, height), pixels.astype("<u2").tobytes())
    return Image.frombytes(_ARRAY_MODES[channels], (width, height), _to_bytes(pixels).tobytes())


def _as_pixels(array: Any) -> np.ndarray:
    try:
        pixels, dtype = as_numpy(array)
    except TypeError as error:
        raise MediaError(f"an image array: {error}") from error
    if dtype == "bfloat16":
        # The 16 bits that it holds are the upper half of a float32.
        pixels = (pixels.astype(np.uint32) << 16).view(np.float32)
    if pixels.dtype.kind not in "fiub" or dtype.startswith("float8"):
        raise MediaError(f"an image array holds integers, floats or bool, not {dtype}")
    return pixels


def _channels_first(pixels: np.ndarray) -> bool:
    first, last = (pixels.shape[axis] in _CHANNEL_COUNTS for axis in (0, 2))
    return first and (not last or pixels.dtype.kind == "f")


def _to_bytes(pixels: np.ndarray) -> np.ndarray:
    """Values as uint8, floats of [0, 1] and bool brought to 0..255."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * np.uint8(255)
    low, high = pixels.min(), pixels.max()
    if pixels.dtype.kind in "iu":
        if low < 0 or high > 255:
            raise MediaError(f"an integer image holds 0 to 255, not {low} to {high}")
        return pixels.astype(np.uint8)
    if not (low >= 0 and high <= 1):  # Written so that NaN is refused as well.
        raise MediaError(f"a float image holds values from 0 to 1, not from {low:g} to {high:g}")
    return np.rint(pixels.astype(np.float32) * 255).astype(np.uint8)


def canonical_image(image: Image.Image, background: Color = WHITE) -> Image.Image:
    """Brings an image to canonical form.

    Args:
        image: Any Pillow image. It is loaded if it was not, and not changed otherwise.
        background: Color under transparent pixels, 0..255 each.

    Returns:
        A new image in one of ``CANONICAL_IMAGE_MODES`` without metadata. An ``I`` image whose
        values all fit 16 bits comes back as ``I;16``.

    Raises:
        MediaError: If the image is empty, cannot be decoded, or has a mode or values that mean
            nothing as a picture.
    """
    if 0 in image.size:
        raise MediaError(f"the image is empty: {image.width}x{image.height} pixels")
    try:
        image.load()
    except Exception as error:  # A lazily opened file decodes here, and fails in as many ways.
        raise MediaError("the image is truncated or damaged") from error
    transpose = _UPRIGHT.get(_orientation(image))
    canonical = _resolve_mode(image, background)
    if transpose is not None:
        canonical = canonical.transpose(transpose)
    elif canonical is image:
        canonical = image.copy()
    canonical.info = {}
    return canonical


def upright(image: Image.Image) -> Image.Image:
    """The image as its orientation tag wants it seen; the same object if that is as it is."""
    transpose = _UPRIGHT.get(_orientation(image))
    return image if transpose is None else image.transpose(transpose)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # Unreadable metadata says nothing about orientation, and spoils no pixel.
        return 1


def _resolve_mode(image: Image.Image, background: Color) -> Image.Image:
    mode = image.mode
    if mode.startswith("I;16") or mode == "I":
        return _resolve_integers(image, background)
    if mode == "F" and not np.isfinite(np.asarray(image)).all():
        raise MediaError("the image holds values that are not numbers (NaN or infinity)")
    if mode in _MODES_WITH_ALPHA and image.has_transparency_data:
        return _on_background(image, background)
    if mode in CANONICAL_IMAGE_MODES:
        return image
    if mode in _MODES_LIKE_RGB:
        return image.convert("RGB")
    raise MediaError(f"an image of mode {mode} is not taken")


def _resolve_integers(image: Image.Image, background: Color) -> Image.Image:
    values = np.asarray(image)
    if image.mode == "I" and (values.min() < 0 or values.max() > 0xFFFF):
        return image
    values = values.astype("<u2")
    transparent = image.info.get("transparency")
    if isinstance(transparent, int) and (clear := values == transparent).any():
        return _deep_on_background(values, clear, background)
    return Image.frombytes("I;16", image.size, values.tobytes())


def _deep_on_background(values: np.ndarray, clear: np.ndarray, background: Color) -> Image.Image:
    """16-bit gray with its transparent value replaced: gray as long as the background is."""
    size = (values.shape[1], values.shape[0])
    red, green, blue = background
    if red == green == blue:
        # 257 * 255 is the whole 16-bit range.
        filled = np.where(clear, np.uint16(red * 257), values).astype("<u2")
        return Image.frombytes("I;16", size, filled.tobytes())
    gray = model_image(Image.frombytes("I;16", size, values.tobytes()))
    pixels = np.where(clear[:, :, None], np.array(background, np.uint8), np.asarray(gray))
    return Image.fromarray(np.ascontiguousarray(pixels))


def _on_background(image: Image.Image, background: Color) -> Image.Image:
    # From La there is no direct way to RGBA.
    straight = image.convert("LA") if image.mode == "La" else image
    rgba = straight.convert("RGBA")
    below = Image.new("RGBA", rgba.size, (*background, 255))
    return Image.alpha_composite(below, rgba).convert("RGB")


def model_image(canonical: Image.Image) -> Image.Image:
    """The RGB picture that a model sees of a canonical image.

    ``I;16`` is scaled from 0..65535 to 0..255. ``F`` within 0..1 is scaled to 0..255, else taken
    as it is if within 0..255. Other ``F`` and ``I`` images are stretched from their own least to
    their own greatest value. Nothing is clipped.

    Args:
        canonical: Result of :func:`canonical_image`.

    Returns:
        The same object if it is RGB, else a new RGB image.
    """
    if canonical.mode == "RGB":
        return canonical
    if canonical.mode == "CMYK":
        return canonical.convert("RGB")
    values = np.asarray(canonical).astype(np.float64)
    low, high = _value_range(canonical.mode, float(values.min()), float(values.max()))
    gray = np.rint((values - low) * (255 / (high - low))).astype(np.uint8)
    return Image.frombytes("L", canonical.size, gray.tobytes()).convert("RGB")


def _value_range(mode: str, least: float, greatest: float) -> tuple[float, float]:
    """The values that stand for black and white."""
    if mode == "I;16":
        return 0.0, 65535.0
    if mode == "F" and least >= 0 and greatest <= 255:
        return 0.0, 1.0 if greatest <= 1 else 255.0
    return least, greatest if greatest > least else least + 1
