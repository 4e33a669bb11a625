# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Small pictures of the media that requests held, for the page; only where an option asks.

They are made here, at the door, of what was decoded anyway: the engine never sees a picture, and
nothing is decoded for a thumbnail.
"""

from __future__ import annotations

import io
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from tensorrt_llm.inputs.data import DeferredContent, MediaItem, ProcessedPrompt
from tensorrt_llm.inputs.video_data import VideoClip
from tensorrt_llm.serve.api_keys import Tenant

THUMBNAIL_PIXELS = 96
"""Longest side of a thumbnail."""

_QUALITY = 70

_Key = tuple[str, str | None]


@dataclass(frozen=True)
class _Thumbnail:
    """A picture, and the name that it is asked for by: drawn at random, so that nobody guesses."""

    name: str
    jpeg: bytes


class Thumbnails:
    """The latest thumbnails, by item and salt. Safe to use from many threads.

    Args:
        most: Most thumbnails; those that no request has used for longest make room.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[_Key, _Thumbnail] = OrderedDict()

    def remember(
        self, cache_salt: str | None, items: Sequence[MediaItem], prompt: ProcessedPrompt
    ) -> None:
        """Makes thumbnails of the pictures and videos of a prompt that have none yet.

        Sounds have none, nor has content that was not decoded: that of a repeat, which has its
        thumbnail from the first time.

        Args:
            cache_salt: Of the request, its tenant's.
            items: What the prompt was made of.
            prompt: The prompt.
        """
        loaded = {item.part: item for item in items}
        for processed in prompt.items:
            item = loaded.get(processed.part)
            if item is None or processed.identity is None:
                continue
            key = (processed.identity.hex(), cache_salt)
            if not self._touch(key) and (picture := _picture(item)) is not None:
                self._put(key, _jpeg(picture))

    def name(self, identity: str, cache_salt: str | None, viewer: Tenant | None) -> str | None:
        """The name of an item's thumbnail; None if it has none that the viewer may see.

        Args:
            identity: The item's, in hexadecimal digits.
            cache_salt: Of the requests that had it.
            viewer: Who looks; None where the server asks for no keys.
        """
        if not _may_see(viewer, cache_salt):
            return None
        with self._lock:
            thumbnail = self._held.get((identity, cache_salt))
        return None if thumbnail is None else thumbnail.name

    def jpeg(self, name: str, viewer: Tenant | None) -> bytes | None:
        """A thumbnail by its name; None if there is none that the viewer may see."""
        with self._lock:
            held = list(self._held.items())
        for (_, cache_salt), thumbnail in held:
            if thumbnail.name == name and _may_see(viewer, cache_salt):
                return thumbnail.jpeg
        return None

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._held.clear()

    def _touch(self, key: _Key) -> bool:
        """Whether there is a thumbnail, which was used now."""
        with self._lock:
            if key not in self._held:
                return False
            self._held.move_to_end(key)
            return True

    def _put(self, key: _Key, jpeg: bytes) -> None:
        with self._lock:
            self._held[key] = _Thumbnail(secrets.token_hex(16), jpeg)
            while len(self._held) > self._most:
                self._held.popitem(last=False)


def _may_see(viewer: Tenant | None, cache_salt: str | None) -> bool:
    """Whether content is shown; without keys the page answers the server's own machine only."""
    return viewer is None or (cache_salt is not None and viewer.owns(cache_salt))


def _picture(item: MediaItem) -> Image.Image | None:
    """What is seen of an item; None if nothing is, or it would have to be decoded."""
    content = item.content
    if isinstance(content, DeferredContent):
        if not content.is_made:
            return None
        content = content.get()
    if isinstance(content, VideoClip):
        return Image.fromarray(content.frames[0])
    return content if isinstance(content, Image.Image) else None


def _jpeg(picture: Image.Image) -> bytes:
    """A small copy, without anything that the picture carried beside its pixels."""
    scale = min(1.0, THUMBNAIL_PIXELS / max(picture.size))
    width, height = (max(1, round(side * scale)) for side in picture.size)
    buffer = io.BytesIO()
    small = picture.resize((width, height), reducing_gap=2.0).convert("RGB")
    small.save(buffer, "JPEG", quality=_QUALITY, exif=b"", comment=b"")
    return buffer.getvalue()
