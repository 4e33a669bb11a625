# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Long text of a JSON body that nobody has read yet.

Media in base64 is megabytes of one string. For a repeat it is only hashed, and the bytes of the
body do for that: equal bytes between the quotes are equal text, found valid the first time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_core import from_json

from tensorrt_llm.errors import MediaError


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A string of a JSON body, as it came.

    Attributes:
        raw: The bytes between the quotes, escapes and all. Keeps the body alive.
    """

    raw: memoryview = field(repr=False)

    def starts_with(self, prefix: bytes) -> bool:
        """Whether the bytes begin so, upper or lower case."""
        return bytes(self.raw[: len(prefix)]).lower() == prefix

    def text(self) -> str:
        """The text.

        Raises:
            MediaError: If the bytes are no valid JSON string.
        """
        try:
            text = from_json(b"".join((b'"', self.raw, b'"')), cache_strings="none")
        except ValueError as error:
            raise MediaError("the text is no valid JSON string") from error
        assert isinstance(text, str)
        return text
