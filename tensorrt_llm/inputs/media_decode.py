# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoded bytes to canonical media, for every modality, under options and limits.

Pure: the same bytes, options and limits give the same payload, in this process or another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from PIL import Image

from tensorrt_llm.errors import LimitExceededError, RequestError
from tensorrt_llm.inputs.audio_form import decode_audio
from tensorrt_llm.inputs.image_form import canonical_image, decode_image, resolve_image_options
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.video_form import VideoOptions, decode_video

if TYPE_CHECKING:
    from tensorrt_llm.inputs.multimodal_data import AudioData
    from tensorrt_llm.inputs.video_data import VideoClip

CanonicalMedia: TypeAlias = "Image.Image | AudioData | VideoClip"

MODALITIES = ("image", "audio", "video")


def decode_media(
    modality: str, data: bytes, options: Mapping[str, Any], limits: MediaLimits
) -> CanonicalMedia:
    """Decodes one item, completely.

    Args:
        modality: One of ``MODALITIES``.
        data: The encoded file; its format is found by content.
        options: Result of :func:`resolve_options`.
        limits: How much is taken.

    Raises:
        MediaError: If it cannot be read as that modality.
        LimitExceededError: If it is over a limit.
    """
    if len(data) > limits.max_bytes:
        raise LimitExceededError("max_bytes", len(data), limits.max_bytes, "bytes")
    if modality == "image":
        image = decode_image(data, max_pixels=limits.max_pixels, frame=options["frame"])
        return canonical_image(image, tuple(options["rgba_background_color"]))
    if modality == "audio":
        return decode_audio(data, limits)
    return decode_video(data, VideoOptions(**options), limits)


def resolve_options(
    modality: str, defaults: Mapping[str, Any] | None, given: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Merges a request's decoding options over the server's, and fills in the rest.

    The request wins, name by name. Of a video's two bounds ``num_frames`` and ``fps`` the server's
    one is off where the request gives only the other: both together would mean neither.

    Args:
        modality: One of ``MODALITIES``.
        defaults: The server's ``media_io_kwargs`` of that modality.
        given: The request's.

    Returns:
        Every option of the modality with its value.

    Raises:
        RequestError: If an option is unknown or out of range.
    """
    where = f"media_io_kwargs.{modality}"
    for options in (defaults, given):
        if options is not None and not isinstance(options, Mapping):
            raise RequestError(f"must be an object, not {type(options).__name__}", part=where)
    merged = dict(defaults or {})
    bounds = {"num_frames", "fps"} & set(given or {})
    if modality == "video" and len(bounds) == 1:
        for name in {"num_frames", "fps"} - bounds:
            merged.pop(name, None)
    merged |= given or {}
    if modality == "image":
        return resolve_image_options(merged)
    if modality == "video":
        try:
            return asdict(VideoOptions.resolve(merged))
        except RequestError as error:
            raise error.at(where) from None
    for name in merged:
        raise RequestError(f"unknown option {name!r:.80}; audio takes none", part=where)
    return {}
