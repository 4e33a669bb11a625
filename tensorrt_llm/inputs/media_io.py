# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one door for media: whatever form it comes in, it leaves as a digested item.

| source | image | audio | video |
|---|---|---|---|
| str: `http:`, `https:`, `data:` or `file:` URL, or a path | yes | yes | yes |
| path object, bytes, bytearray, memoryview | yes | yes | yes |
| base64 text (:meth:`MediaLoader.load_base64`) | yes | yes | yes |
| ``EncodedText``: a ``data:`` URL or base64 as it stands in a JSON body | yes | yes | yes |
| Pillow image | yes | - | - |
| ndarray or tensor (see ``image_form.array_image``) | yes | - | - |
| ``AudioData``, or (samples, sample rate) | - | yes | - |
| ``VideoClip`` | - | - | yes |
| ``EmbeddingData`` | yes | yes | yes |

The media type that a sender claims is never looked at; content decides. What is handed in is
copied, so later changes to the caller's object change nothing.

Encoded media whose digest a memo knows is not decoded before someone looks at it. Equal encoded
media that several threads load at once is decoded by one of them.
"""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from PIL import Image

from tensorrt_llm.errors import (
    LimitExceededError,
    MediaError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.canonical_value import canonical_value
from tensorrt_llm.inputs.data import DeferredContent, Digest, MediaItem
from tensorrt_llm.inputs.data_uri import decode_base64, decode_data_uri
from tensorrt_llm.inputs.decode_pool import DecodePool
from tensorrt_llm.inputs.encoded_text import EncodedText
from tensorrt_llm.inputs.image_form import array_image, canonical_image, model_image
from tensorrt_llm.inputs.media_access import MediaAccess, file_uri_path, read_local_file
from tensorrt_llm.inputs.media_decode import (
    MODALITIES,
    CanonicalMedia,
    decode_media,
    resolve_options,
)
from tensorrt_llm.inputs.media_fetch import MediaFetcher
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import AudioData, EmbeddingData, MediaHasher
from tensorrt_llm.inputs.single_flight import SingleFlight
from tensorrt_llm.inputs.video_data import VideoClip

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class Decoder(Protocol):
    """What turns bytes into media: ``decode_media``, or a `DecodePool`."""

    def __call__(
        self, modality: str, data: bytes, options: Mapping[str, Any], limits: MediaLimits, /
    ) -> CanonicalMedia:
        """As ``decode_media``."""
        ...


class PayloadMemo(Protocol):
    """What remembers the digests of encoded media. Safe to use from many threads."""

    def key(
        self,
        modality: str,
        raw: bytes | memoryview,
        options: Mapping[str, Any],
        *,
        form: str = "",
        scope: str | None = None,
    ) -> Any:
        """Name of encoded content under everything that decides what it decodes to."""
        ...

    def payload_digest(self, key: Any) -> Digest | None:
        """The digest remembered under a key."""
        ...

    def remember_payload(self, key: Any, digest: Digest) -> None:
        """Remembers the digest of content that was decoded."""
        ...


class MediaLoader:
    """Loads media items. Safe to use from many threads; every call blocks until it is done.

    Args:
        access: What may be named, and how much is taken.
        hasher: Makes the payload digests.
        fetcher: Fetches remote media; by default under ``access``.
        decoder: Decodes; by default in this process for trusted callers, who hand in their own
            files, and in processes that can be killed for all others.
        memo: Remembers digests of encoded media, so that repeats are not decoded.
        default_options: Decoding options by modality, as in ``media_io_kwargs``; those of a call
            win.

    Raises:
        RequestError: If a default option is unknown or out of range.
    """

    def __init__(
        self,
        access: MediaAccess,
        hasher: MediaHasher,
        *,
        fetcher: MediaFetcher | None = None,
        decoder: Decoder | None = None,
        memo: PayloadMemo | None = None,
        default_options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._access = access
        self._hasher = hasher
        self._fetcher = fetcher or MediaFetcher(access)
        self._decoder = decoder or (decode_media if access.trusted else DecodePool())
        self._memo = memo
        self._default_options = dict(default_options or {})
        for modality in self._default_options:
            _check_modality(modality, "media_io_kwargs")
        # Limits decide every outcome as options do, and most requests set none.
        self._plain = {modality: self._resolved(modality, None) for modality in MODALITIES}
        self._decodings = SingleFlight()
        self._fetches: SingleFlight | None = None
        self._counter = _Counter()

    def for_request(self) -> MediaLoader:
        """The same loader, for the items of one request: one URL is fetched once."""
        loader = copy.copy(self)
        loader._fetches = SingleFlight(keeps=True)
        return loader

    @property
    def decodes(self) -> int:
        """How many times encoded media was decoded."""
        return self._counter.value

    def load(
        self,
        modality: str,
        source: Any,
        *,
        part: str | None = None,
        uuid: str | None = None,
        options: Mapping[str, Any] | None = None,
        scope: str | None = None,
    ) -> MediaItem:
        """Loads one item. Unless its digest is known, it is decoded completely.

        Args:
            modality: One of ``media_decode.MODALITIES``.
            source: One of the forms in the table above.
            part: Where the item stands in the request, for messages.
            uuid: The caller's id.
            options: Decoding options of this modality, as in ``media_io_kwargs``.
            scope: Tenant: work and memory are shared only with loads of the same one.

        Returns:
            The item. Its data is an RGB ``PIL.Image.Image``, the ``AudioData`` or ``VideoClip`` as
            decoded, or the ``EmbeddingData``.

        Raises:
            MediaError: If the media cannot be read; MediaBlockedError if it may not be, and
                MediaFetchError if it cannot be fetched.
            LimitExceededError: If it is over a limit.
            UnsupportedModalityError: If the modality is another one.
            RequestError: If an option is unknown or out of range.
        """
        if isinstance(source, EncodedText) or _scheme(source) == "data":
            how: _Way = partial(self._from_text, form="data", text=source, decode=decode_data_uri)
        else:
            how = partial(self._from_source, source=source)
        return self._item(modality, how, part, uuid, options, scope)

    def load_base64(
        self,
        modality: str,
        data: str | EncodedText,
        format: str | None = None,
        *,
        part: str | None = None,
        uuid: str | None = None,
        options: Mapping[str, Any] | None = None,
        scope: str | None = None,
    ) -> MediaItem:
        """Loads one item from base64 text, as in an ``input_audio`` part.

        Args:
            modality: As in :meth:`load`.
            data: The encoded file as base64.
            format: What the sender takes the format to be. Only named in messages.
            part: As in :meth:`load`.
            uuid: As in :meth:`load`.
            options: As in :meth:`load`.
            scope: As in :meth:`load`.

        Raises:
            MediaError: As :meth:`load`.
            LimitExceededError: As :meth:`load`.
            UnsupportedModalityError: As :meth:`load`.
            RequestError: As :meth:`load`.
        """
        how = partial(self._from_text, form="base64", text=data, decode=decode_base64)
        try:
            return self._item(modality, how, part, uuid, options, scope)
        except MediaError as error:
            if format is not None:
                error.message += f" (declared format: {format!r})"
            raise

    def read(self, source: Any, *, base64: bool = False, part: str | None = None) -> bytes:
        """The encoded bytes that a source names or holds, for who keeps them.

        Args:
            source: A URL, path or ``data:`` URI.
            base64: Whether it is base64 text instead.
            part: As in :meth:`load`.

        Raises:
            MediaError: As :meth:`load`.
            LimitExceededError: As :meth:`load`.
        """
        most = self._access.limits.max_bytes
        try:
            if base64 or isinstance(source, EncodedText) or _scheme(source) == "data":
                text = source.text() if isinstance(source, EncodedText) else source
                return (decode_base64 if base64 else decode_data_uri)(text, max_bytes=most)
            return self._read_named(source)
        except RequestError as error:
            if part is not None:
                error.at(part)
            raise

    def _item(
        self,
        modality: str,
        how: _Way,
        part: str | None,
        uuid: str | None,
        options: Mapping[str, Any] | None,
        scope: str | None,
    ) -> MediaItem:
        _check_modality(modality, part)
        try:
            if uuid is not None and not isinstance(uuid, str):
                raise MediaError(f"a media uuid is a str or None, not {type(uuid).__name__}")
            known = self._plain[modality] if options is None else self._resolved(modality, options)
            content, digest = how(_Load(modality, *known, scope))
            return MediaItem(modality, content, digest, uuid=uuid, part=part)
        except RequestError as error:
            if part is not None:
                error.at(part)
            raise

    def _resolved(
        self, modality: str, options: Mapping[str, Any] | None
    ) -> tuple[Mapping[str, Any], bytes]:
        """Resolved options, and all that decides an outcome beside the bytes."""
        resolved = resolve_options(modality, self._default_options.get(modality), options)
        limits = self._access.limits.of_content(modality)
        return resolved, canonical_value({"options": resolved, "limits": limits})

    def _from_text(
        self, load: _Load, *, form: str, text: str | EncodedText, decode: Callable[..., bytes]
    ) -> tuple[Any, Digest]:
        """An item out of text that holds its bytes.

        The memo knows the text as well, so that a repeat is not even brought to bytes.
        """
        most = self._access.limits.max_bytes
        if isinstance(text, EncodedText):
            raw, form, read = text.raw, f"json {form}", text.text
        elif isinstance(text, str):
            raw, read = memoryview(text.encode("utf-8", "surrogatepass")), lambda: text
        else:
            raise MediaError(f"base64 data is a str, not {type(text).__name__}")
        key = self._memo_key(load, raw, form)
        known = self._known(key)
        if known is not None:
            again = DeferredContent(lambda: self._decode(load, decode(read(), max_bytes=most))[0])
            return again, known
        content, digest = self._from_bytes(load, decode(read(), max_bytes=most))
        self._remember(key, digest)
        return content, digest

    def _from_source(self, load: _Load, *, source: Any) -> tuple[Any, Digest]:
        encoded = self._encoded(source)
        if encoded is None:
            return self._from_object(load, source)
        return self._from_bytes(load, encoded)

    def _from_bytes(self, load: _Load, data: bytes) -> tuple[Any, Digest]:
        key = self._memo_key(load, data)
        known = self._known(key)
        if known is not None:
            return DeferredContent(lambda: self._decode(load, data)[0]), known
        content, digest = self._decodings.do(
            (load.modality, load.scope, repr(sorted(load.options.items())), data),
            lambda: self._decode(load, data),
        )
        self._remember(key, digest)
        return content, digest

    def _decode(self, load: _Load, data: bytes) -> tuple[Any, Digest]:
        self._counter.add()
        canonical = self._decoder(load.modality, data, load.options, self._access.limits)
        return self._finished(load, canonical)

    def _from_object(self, load: _Load, source: Any) -> tuple[Any, Digest]:
        if isinstance(source, EmbeddingData):
            # What is identified now is read later, so that it must not change meanwhile.
            return self._finished(load, source.copied())
        if load.modality == "image":
            image = _image(source)
            return self._finished(
                load, canonical_image(image, load.options["rgba_background_color"])
            )
        return self._finished(load, _audio(source) if load.modality == "audio" else _video(source))

    def _finished(self, load: _Load, canonical: Any) -> tuple[Any, Digest]:
        digest = self._hasher.payload_digest(load.modality, canonical)
        seen = model_image(canonical) if isinstance(canonical, Image.Image) else canonical
        return seen, digest

    def _memo_key(self, load: _Load, raw: bytes | memoryview, form: str = "") -> Hashable:
        if self._memo is None:
            return None
        decides = {"decides": load.decides}
        return self._memo.key(load.modality, raw, decides, form=form, scope=load.scope)

    def _known(self, key: Hashable) -> Digest | None:
        return None if self._memo is None else self._memo.payload_digest(key)

    def _remember(self, key: Hashable, digest: Digest) -> None:
        if self._memo is not None:
            self._memo.remember_payload(key, digest)

    def _encoded(self, source: Any) -> bytes | None:
        """Encoded bytes of whatever names or holds some; None for other sources."""
        if isinstance(source, str):
            return self._read_named(source)
        if isinstance(source, os.PathLike):
            return read_local_file(os.fsdecode(source), self._access)
        if isinstance(source, (bytes, bytearray, memoryview)):
            size, most = memoryview(source).nbytes, self._access.limits.max_bytes
            if size > most:
                raise LimitExceededError("max_bytes", size, most, "bytes")
            return bytes(source)
        return None

    def _read_named(self, name: str) -> bytes:
        scheme = _scheme(name)
        if scheme in ("http", "https"):
            if self._fetches is None:
                return self._fetcher.fetch(name)
            return self._fetches.do(name, lambda: self._fetcher.fetch(name))
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


@dataclass(frozen=True)
class _Load:
    """What is the same for all steps of loading an item."""

    modality: str
    options: Mapping[str, Any]
    decides: bytes
    scope: str | None


_Way: TypeAlias = Callable[[_Load], "tuple[Any, Digest]"]
"""Makes content and digest of an item."""


class _Counter:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.value = 0

    def add(self) -> None:
        with self._lock:
            self.value += 1


def _scheme(name: Any) -> str:
    match = _SCHEME.match(name) if isinstance(name, str) else None
    return match[1].lower() if match else ""


def _check_modality(modality: str, part: str | None) -> None:
    if modality not in MODALITIES:
        raise UnsupportedModalityError(modality, MODALITIES, part=part)


def _image(source: Any) -> Image.Image:
    if isinstance(source, (np.ndarray, torch.Tensor)):
        return array_image(source)
    if isinstance(source, Image.Image):
        return source
    raise _not_taken(source, "a Pillow image or an array")


def _audio(source: Any) -> AudioData:
    if isinstance(source, AudioData):
        source = (source.samples, source.sample_rate)
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise _not_taken(source, "AudioData or (samples, sample rate)")
    try:
        return AudioData.from_array(*source)
    except TypeError as error:
        raise MediaError(str(error)) from error


def _video(source: Any) -> VideoClip:
    if not isinstance(source, VideoClip):
        raise _not_taken(source, "VideoClip")
    sound = source.audio
    return replace(
        source,
        frames=source.frames.copy(),
        audio=None if sound is None else AudioData.from_array(sound.samples, sound.sample_rate),
    )


def _not_taken(source: Any, objects: str) -> MediaError:
    if source is None:
        return MediaError("the media is missing")
    return MediaError(f"media is a URL, a path, bytes, {objects}, not {type(source).__name__}")
