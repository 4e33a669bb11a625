# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Long text left in its body reads as the standard parser reads it."""

from __future__ import annotations

import json

import pytest

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.encoded_text import EncodedText


@pytest.mark.parametrize("text", ["", "data:,a", 'é😀"\\\n\u0000/', "x" * 100_000])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_is_what_the_standard_parser_gives(text, ascii_only):
    written = json.dumps(text, ensure_ascii=ascii_only).encode()
    assert EncodedText(memoryview(written)[1:-1]).text() == text


@pytest.mark.parametrize("raw", [b"a\nb", b"\\x", b"\xff", b"\\ud800"])
def test_what_is_no_json_string_is_refused(raw):
    with pytest.raises(MediaError, match="no valid JSON string"):
        EncodedText(memoryview(raw)).text()


def test_beginnings_are_compared_without_case():
    text = EncodedText(memoryview(b"DaTa:,1"))
    assert text.starts_with(b"data:")
    assert not text.starts_with(b"http:")
