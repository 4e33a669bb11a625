# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoded media that is kept between requests, with what was found out about it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tensorrt_llm.inputs.canonical_value import canonical_value
from tensorrt_llm.inputs.data import DeferredContent, Digest, MediaItem
from tensorrt_llm.inputs.media_io import MediaLoader

# Ways of decoding one piece of media whose digests are remembered.
_MAX_WAYS = 8


class KeptMedia:
    """The bytes of one piece of media. Safe to use from many threads.

    Its digest is remembered for each way of decoding it, so that a request which comes back to it
    costs neither a fetch, a decoding nor a hash.

    Attributes:
        modality: ``"image"``, ``"audio"`` or ``"video"``.
        data: The encoded bytes.
    """

    def __init__(self, modality: str, data: bytes) -> None:
        self.modality = modality
        self.data = data
        self._lock = threading.Lock()
        self._digests: dict[bytes, Digest | None] = {}

    def item(
        self,
        loader: MediaLoader,
        *,
        part: str | None = None,
        uuid: str | None = None,
        options: Mapping[str, Any] | None = None,
        scope: str | None = None,
    ) -> MediaItem:
        """The item that a request asks for; decoded completely the first time only.

        Args:
            loader: Always the same one.
            part: As in ``MediaLoader.load``.
            uuid: As in ``MediaLoader.load``.
            options: As in ``MediaLoader.load``.
            scope: As in ``MediaLoader.load``.

        Raises:
            RequestError: As ``MediaLoader.load``.
        """
        way = bytes(canonical_value(dict(options or {})))
        with self._lock:
            known = self._digests.get(way)
        if known is None:
            item = loader.load(
                self.modality, self.data, part=part, uuid=uuid, options=options, scope=scope
            )
            with self._lock:
                if len(self._digests) < _MAX_WAYS:
                    self._digests[way] = item.payload_digest
            return item
        # Made anew for each request: content that was made once would be held as long as this.
        content = DeferredContent(
            lambda: loader.load(self.modality, self.data, options=options, scope=scope).data
        )
        return MediaItem(self.modality, content, known, uuid=uuid, part=part)
