# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Takes long media strings out of a JSON body, so that the rest is parsed in no time.

The long strings are found by their quotes, and a name that nobody can guess is put in their places.
After parsing, each name must turn up where a chat request holds media; if one does not, or anything
else is out of the ordinary, the body is parsed as a whole, which is slower and always right.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from tensorrt_llm.inputs.encoded_text import EncodedText

LARGE_STRING_BYTES = 32 * 2**10
"""From this length on a string is taken out."""

# Bodies with more quotes are parsed as a whole: looking at each here would take longer.
_MAX_QUOTES = 4096
# More backslashes before a quote than any media has.
_MAX_BACKSLASHES = 8
_QUOTE = b'"'


def parse_with_views(body: bytes) -> Any:
    """Parses a JSON body whose long media strings stay where they are.

    Args:
        body: The body.

    Returns:
        What the standard parser gives, with an `EncodedText` in place of each long string that is
        ``messages[i].content[j].input_audio.data``, or a ``data:`` URL of a media part there. None
        if the body has no such strings, has others that are long, or is not valid.
    """
    spans = _long_strings(body)
    if not spans:
        return None
    nonce = secrets.token_hex(8)
    names = {f"{nonce}:{index}": span for index, span in enumerate(spans)}
    pieces, done = [], 0
    for name, (begin, end) in names.items():
        pieces += [body[done:begin], name.encode()]
        done = end
    pieces.append(body[done:])
    try:
        values = from_json(b"".join(pieces), cache_strings="none")
    except ValueError:
        return None
    view = memoryview(body)
    for holder, key in _media_places(values):
        span = names.pop(holder[key], None) if isinstance(holder[key], str) else None
        if span is not None:
            text = EncodedText(view[slice(*span)])
            if key != "data" and not text.starts_with(b"data:"):
                return None
            holder[key] = text
    return values if not names else None


def _long_strings(body: bytes) -> list[tuple[int, int]] | None:
    """Where long strings begin and end, without quotes; None if there is too much to look at."""
    spans: list[tuple[int, int]] = []
    begin = None
    at = body.find(_QUOTE)
    for _ in range(_MAX_QUOTES):
        if at < 0:
            return spans if begin is None else None
        if begin is None:
            begin = at + 1
        else:
            before = body[max(begin, at - _MAX_BACKSLASHES) : at]
            backslashes = len(before) - len(before.rstrip(b"\\"))
            if backslashes == _MAX_BACKSLASHES:
                return None
            if backslashes % 2 == 0:
                if at - begin >= LARGE_STRING_BYTES:
                    spans.append((begin, at))
                begin = None
        at = body.find(_QUOTE, at + 1)
    return None


def _media_places(values: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Where media stands in a chat request: the object that holds it, and its key there."""
    messages = values.get("messages") if isinstance(values, dict) else None
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict):
                yield from _places_of_part(part)


def _places_of_part(part: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for field in ("image_url", "audio_url", "video_url"):
        value = part.get(field)
        if isinstance(value, dict) and "url" in value:
            yield value, "url"
        elif isinstance(value, str):
            yield part, field
    value = part.get("input_audio")
    if isinstance(value, dict) and "data" in value:
        yield value, "data"
