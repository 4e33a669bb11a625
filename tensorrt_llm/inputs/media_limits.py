# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of an item is taken: one set of numbers for every modality and every door.

Sizes are compared with what a file declares before memory is taken for it, and with what comes
out while it is decoded, for a header may lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tensorrt_llm.errors import ConfigurationError

PILLOW_PIXEL_LIMIT = 178_956_970
"""Pillow itself refuses larger images, so no limit of ours can be higher."""


@dataclass(frozen=True)
class MediaLimits:
    """Limits of one item. Each is the most that is taken.

    Args:
        max_bytes: Encoded bytes.
        timeout_s: Seconds for fetching, redirects included.
        max_redirects: Redirects that are followed.
        max_pixels: Pixels of an image, or of one frame of a video.
        max_audio_seconds: Length of a clip.
        max_audio_samples: Samples of a clip over all channels.
        max_video_seconds: Length of a video.
        max_video_frames: Frames that are taken from a video.
        max_video_pixels: Pixels of all those frames together.
        max_decode_seconds: Seconds for decoding, where a worker process decodes.
        max_decode_bytes: Memory for decoding, where a worker process decodes.

    Raises:
        ConfigurationError: If a limit is out of range.
    """

    max_bytes: int = 200 * 2**20
    timeout_s: float = 30.0
    max_redirects: int = 5
    max_pixels: int = PILLOW_PIXEL_LIMIT
    max_audio_seconds: float = 1800.0
    max_audio_samples: int = 2**27
    max_video_seconds: float = 1800.0
    max_video_frames: int = 1024
    max_video_pixels: int = 2**28
    max_decode_seconds: float = 30.0
    max_decode_bytes: int = 4 * 2**30

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ConfigurationError(f"{item.name} is a number, not {value!r}")
            if item.type == "int" and not isinstance(value, int):
                raise ConfigurationError(f"{item.name} is a whole number, not {value}")
            if item.name == "max_redirects":
                if value < 0:
                    raise ConfigurationError(f"max_redirects is not negative, not {value}")
            elif not 0 < value < float("inf"):
                raise ConfigurationError(f"{item.name} is positive and finite, not {value}")
        if self.max_pixels > PILLOW_PIXEL_LIMIT:
            raise ConfigurationError(
                f"max_pixels is at most {PILLOW_PIXEL_LIMIT}, not {self.max_pixels}"
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> MediaLimits:
        """Makes limits of the named ones; the others keep their defaults.

        Raises:
            ConfigurationError: If a name is unknown or a limit is out of range.
        """
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigurationError(f"unknown limit {name!r}; known: {', '.join(known)}")
        return cls(**values)

    def of_content(self, modality: str) -> dict[str, float]:
        """The limits that decide whether an item of that modality is taken, by name.

        Two decodings of the same bytes under the same of these come to the same end. Times are
        left out: they are no property of the content.
        """
        names = _CONTENT_LIMITS.get(modality)
        if names is None:
            names = tuple(item.name for item in fields(self) if item.name not in _NO_CONTENT)
        return {name: getattr(self, name) for name in names}


_CONTENT_LIMITS = {
    "image": ("max_bytes", "max_pixels"),
    "audio": ("max_bytes", "max_audio_seconds", "max_audio_samples"),
}
_NO_CONTENT = ("timeout_s", "max_redirects", "max_decode_seconds", "max_decode_bytes")
