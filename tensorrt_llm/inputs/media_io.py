# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one door for media: whatever form it comes in, it leaves as a decoded, digested item.

| source | image | audio |
|---|---|---|
| str: `http:`, `https:`, `data:` or `file:` URL, or a path | yes | yes |
| path object, bytes, bytearray, memoryview | yes | yes |
| base64 text (:meth:`MediaLoader.load_base64`) | yes | yes |
| Pillow image | yes | - |
| ndarray or tensor (see ``image_form.array_image``) | yes | - |
| ``AudioData``, or (samples, sample rate) | - | yes |

The media type that a sender claims is never looked at; content decides. What is handed in is
copied, so later changes to the caller's object change nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image

from tensorrt_llm.errors import (
    LimitExceededError,
    MediaError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.audio_form import decode_audio
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.data_uri import decode_base64, decode_data_uri
from tensorrt_llm.inputs.image_form import array_image, canonical_image, decode_image, model_image
from tensorrt_llm.inputs.media_access import MediaAccess, file_uri_path, read_local_file
from tensorrt_llm.inputs.media_fetch import MediaFetcher
from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher

MODALITIES = ("image", "audio")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class MediaLoader:
    """Loads media items. Safe to use from many threads; every call blocks until it is done.

    Args:
        access: What may be named, and how much is taken.
        hasher: Makes the payload digests.
        fetcher: Fetches remote media; by default under ``access``.
    """

    def __init__(
        self, access: MediaAccess, hasher: MediaHasher, *, fetcher: MediaFetcher | None = None
    ) -> None:
        self._access = access
        self._hasher = hasher
        self._fetcher = fetcher or MediaFetcher(access)

    def load(
        self, modality: str, source: Any, *, part: str | None = None, uuid: str | None = None
    ) -> MediaItem:
        """Loads one item and decodes it completely.

        Args:
            modality: ``"image"`` or ``"audio"``.
            source: One of the forms in the table above.
            part: Where the item stands in the request, for messages.
            uuid: The caller's id.

        Returns:
            The item. Its data is an RGB ``PIL.Image.Image``, or the ``AudioData`` as decoded.

        Raises:
            MediaError: If the media cannot be read; MediaBlockedError if it may not be, and
                MediaFetchError if it cannot be fetched.
            LimitExceededError: If it is over a limit.
            UnsupportedModalityError: If the modality is another one.
        """
        return self._item(modality, lambda: self._resolve(source), part, uuid)

    def load_base64(
        self,
        modality: str,
        data: str,
        format: str | None = None,
        *,
        part: str | None = None,
        uuid: str | None = None,
    ) -> MediaItem:
        """Loads one item from base64 text, as in an ``input_audio`` part.

        Args:
            modality: As in :meth:`load`.
            data: The encoded file as base64.
            format: What the sender takes the format to be. Only named in messages.
            part: As in :meth:`load`.
            uuid: As in :meth:`load`.

        Raises:
            MediaError: As :meth:`load`.
            LimitExceededError: As :meth:`load`.
            UnsupportedModalityError: As :meth:`load`.
        """

        def decode() -> bytes:
            if not isinstance(data, str):
                raise MediaError(f"base64 data is a str, not {type(data).__name__}")
            return decode_base64(data, max_bytes=self._access.max_bytes)

        try:
            return self._item(modality, decode, part, uuid)
        except MediaError as error:
            if format is not None:
                error.message += f" (declared format: {format!r})"
            raise

    def _item(
        self, modality: str, resolve: Callable[[], Any], part: str | None, uuid: str | None
    ) -> MediaItem:
        if modality not in MODALITIES:
            raise UnsupportedModalityError(modality, MODALITIES, part=part)
        try:
            if uuid is not None and not isinstance(uuid, str):
                raise MediaError(f"a media uuid is a str or None, not {type(uuid).__name__}")
            source = resolve()
            canonical = self._image(source) if modality == "image" else self._audio(source)
            digest = self._hasher.payload_digest(modality, canonical)
            data = model_image(canonical) if isinstance(canonical, Image.Image) else canonical
            return MediaItem(modality, data, digest, uuid=uuid, part=part)
        except RequestError as error:
            if part is not None:
                error.at(part)
            raise

    def _resolve(self, source: Any) -> Any:
        """Encoded bytes of whatever names or holds some; other sources as they are."""
        if isinstance(source, str):
            return self._read_named(source)
        if isinstance(source, os.PathLike):
            return read_local_file(os.fsdecode(source), self._access)
        return source

    def _read_named(self, name: str) -> bytes:
        match = _SCHEME.match(name)
        scheme = match[1].lower() if match else ""
        if scheme in ("http", "https"):
            return self._fetcher.fetch(name)
        if scheme == "data":
            return decode_data_uri(name, max_bytes=self._access.max_bytes)
        if scheme == "file":
            return read_local_file(file_uri_path(name), self._access)
        if scheme:
            raise MediaError(
                f"unknown scheme {scheme[:32]!r}; media is named by http:, https:, data: or file: "
                "URL, or by path"
            )
        if not name:
            raise MediaError("the media's URL or path is empty")
        return read_local_file(name, self._access)

    def _encoded(self, source: Any) -> bytes | None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
            if len(data) > self._access.max_bytes:
                raise LimitExceededError("max_bytes", len(data), self._access.max_bytes, "bytes")
            return data
        return None

    def _image(self, source: Any) -> Image.Image:
        if (data := self._encoded(source)) is not None:
            source = decode_image(data, max_pixels=self._access.max_pixels)
        elif isinstance(source, (np.ndarray, torch.Tensor)):
            source = array_image(source)
        elif not isinstance(source, Image.Image):
            raise _not_taken(source, "a Pillow image or an array")
        return canonical_image(source)

    def _audio(self, source: Any) -> AudioData:
        if (data := self._encoded(source)) is not None:
            return decode_audio(
                data,
                max_seconds=self._access.max_audio_seconds,
                max_samples=self._access.max_audio_samples,
            )
        if isinstance(source, AudioData):
            source = (source.samples, source.sample_rate)
        if not isinstance(source, (tuple, list)) or len(source) != 2:
            raise _not_taken(source, "AudioData or (samples, sample rate)")
        try:
            return AudioData.from_array(*source)
        except TypeError as error:
            raise MediaError(str(error)) from error


def _not_taken(source: Any, objects: str) -> MediaError:
    if source is None:
        return MediaError("the media is missing")
    return MediaError(f"media is a URL, a path, bytes, {objects}, not {type(source).__name__}")
