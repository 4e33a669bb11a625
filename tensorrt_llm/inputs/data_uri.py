# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bytes written as text: base64, and ``data:`` URIs (RFC 2397)."""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

from tensorrt_llm.errors import LimitExceededError, MediaError

# Real headers are a media type and a few parameters; the comma is not searched for further.
_MAX_HEADER = 4096
_HEADER = re.compile(r'data:(?:[^",]|"[^"]*")*,', re.IGNORECASE)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_WHITESPACE = b" \t\r\n\f\v"


def decode_base64(text: str | bytes, *, max_bytes: int) -> bytes:
    """Decodes base64.

    Both alphabets, whitespace and missing padding are taken; anything else is not.

    Args:
        text: The base64 text.
        max_bytes: Most bytes that it may stand for, checked before decoding.

    Raises:
        MediaError: If the text is not base64.
        LimitExceededError: If it stands for more bytes.
    """
    try:
        raw = text.encode("ascii") if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise MediaError("the base64 data holds characters outside of base64") from error
    compact = raw.translate(_URL_SAFE, _WHITESPACE)
    size = len(compact.rstrip(b"=")) * 3 // 4
    if size > max_bytes:
        raise LimitExceededError("max_bytes", size, max_bytes, "bytes")
    if not compact.endswith(b"="):
        compact += b"=" * (-len(compact) % 4)
    try:
        return base64.b64decode(compact, validate=True)
    except binascii.Error as error:
        raise MediaError(f"{len(raw)} characters of data that are not base64") from error


def decode_data_uri(uri: str, *, max_bytes: int) -> bytes:
    """Decodes a ``data:`` URI, base64 or percent-encoded.

    The media type and other parameters are not looked at: content decides.

    Args:
        uri: The whole URI.
        max_bytes: Most bytes that it may stand for, checked before decoding.

    Raises:
        MediaError: If there is no comma, or the data is not base64 where it should be.
        LimitExceededError: If it stands for more bytes.
    """
    header = _HEADER.match(uri, 0, _MAX_HEADER)
    if header is None:
        raise MediaError("a data: URI has a comma before its data")
    parameters = header[0][:-1].split(";")[1:]
    if parameters and parameters[-1].strip().lower() == "base64":
        payload = uri[header.end() :]
        # "%" is outside of base64, so most payloads need no second copy.
        encoded = unquote_to_bytes(payload) if "%" in payload else payload
        return decode_base64(encoded, max_bytes=max_bytes)
    # Three characters may stand for one byte, never for less than a third of one.
    if len(uri) - header.end() > 3 * max_bytes:
        raise LimitExceededError("max_bytes", (len(uri) - header.end()) // 3, max_bytes, "bytes")
    data = unquote_to_bytes(uri[header.end() :])
    if len(data) > max_bytes:
        raise LimitExceededError("max_bytes", len(data), max_bytes, "bytes")
    return data
