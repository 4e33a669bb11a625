# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every error a caller can meet, in one tree.

```
TrtllmError
├── RequestError (ValueError)          the request is at fault: HTTP 400
│   ├── MediaError                     unreadable, truncated, empty or unsupported media
│   │   ├── MediaBlockedError          address or path that the rules do not allow
│   │   └── MediaFetchError            remote media that could not be fetched in time
│   ├── LimitExceededError             a number over a limit; carries both
│   ├── UnsupportedModalityError       the model does not take that kind of media
│   └── PlaceholderMismatchError       placeholders in the prompt and media items disagree
├── ConfigurationError (ValueError)    the options or the checkpoint are at fault: at start
├── QueueFullError                     HTTP 429
├── DeadlineExceededError              the request's own time limit: HTTP 408
└── EngineError (RuntimeError)         our own fault: HTTP 500
    ├── EmbeddingMismatchError         encoder rows and placeholder run disagree
    ├── EngineStoppedError             the engine is shut down or its loop has ended
    ├── EngineDiedError                its process ended or got stuck while the request was in it
    └── EngineRestartingError          it is being started again: HTTP 503, try again
```

`assert` is for our own invariants; whatever a user can cause raises from this tree.
"""

from __future__ import annotations


class TrtllmError(Exception):
    """Base of every error this package raises on purpose."""


class RequestError(TrtllmError, ValueError):
    """The request itself is wrong.

    Args:
        message: What is wrong, in words a user understands.
        part: Where it is wrong, for example ``messages[0].content[1]``.
    """

    def __init__(self, message: str, *, part: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.part = part

    def __str__(self) -> str:
        return f"{self.part}: {self.message}" if self.part else self.message

    def at(self, part: str) -> RequestError:
        """Names the part of the request, unless one is named already, and returns self."""
        if self.part is None:
            self.part = part
        return self


class MediaError(RequestError):
    """Media that cannot be read: truncated, empty, not found, or of an unknown kind."""


class MediaBlockedError(MediaError):
    """Media at an address or path that the rules do not allow. Says the rule and the option."""


class MediaFetchError(MediaError):
    """Remote media that could not be fetched."""


class LimitExceededError(RequestError):
    """A number over a limit.

    Args:
        limit: Name of the limit as a user sets it, for example ``max_seq_len``.
        value: What the request asked for.
        maximum: What is allowed.
        unit: Unit of both numbers.
        part: Where in the request.
    """

    def __init__(
        self, limit: str, value: float, maximum: float, unit: str, *, part: str | None = None
    ) -> None:
        super().__init__(f"{value} {unit} exceed {limit} ({maximum} {unit})", part=part)
        self.limit = limit
        self.value = value
        self.maximum = maximum
        self.unit = unit


class UnsupportedModalityError(RequestError):
    """The model does not take that modality."""

    def __init__(
        self, modality: str, supported: tuple[str, ...], *, part: str | None = None
    ) -> None:
        takes = ", ".join(("text", *supported))
        super().__init__(f"this model does not take {modality}; it takes: {takes}", part=part)
        self.modality = modality
        self.supported = supported


class PlaceholderMismatchError(RequestError):
    """The prompt's placeholders and the media items handed in do not agree."""


class ConfigurationError(TrtllmError, ValueError):
    """Options or checkpoint that cannot work, found at start."""


class QueueFullError(TrtllmError):
    """As much waits as may: requests for the engine, or files for a process that decodes them."""


class DeadlineExceededError(TrtllmError):
    """A request was not complete when the time it was given was over.

    Args:
        timeout: Seconds it was given.
    """

    def __init__(self, timeout: float) -> None:
        super().__init__(f"the request was not complete within its {timeout:g} s")
        self.timeout = timeout


class EngineError(TrtllmError, RuntimeError):
    """A fault of ours. The request fails; the engine goes on."""


class EmbeddingMismatchError(EngineError):
    """An encoder gave another number of rows than the item's placeholder runs hold.

    Args:
        modality: Modality of the item.
        rows: Rows the encoder gave.
        expected: Rows the prompt has room for.
    """

    def __init__(self, modality: str, rows: int, expected: int) -> None:
        super().__init__(
            f"the {modality} encoder gave {rows} rows for a placeholder run of {expected} tokens"
        )
        self.modality = modality
        self.rows = rows
        self.expected = expected


class EngineStoppedError(EngineError):
    """The engine no longer takes requests."""


class EngineDiedError(EngineError):
    """The engine's process ended, or got stuck, while it had the request."""


class EngineRestartingError(EngineError):
    """The engine's process has died and the next one does not take requests yet."""
