# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import urllib.request
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.errors import LimitExceededError, MediaError
from tensorrt_llm.inputs.data_uri import decode_base64, decode_data_uri

DATA = bytes(range(256))
B64 = base64.b64encode(DATA).decode()


def decode(uri: str, max_bytes: int = 1000) -> bytes:
    return decode_data_uri(uri, max_bytes=max_bytes)


@pytest.mark.parametrize(
    "uri",
    [
        f"data:image/png;base64,{B64}",
        f"data:image/png;charset=utf-8;base64,{B64}",
        f"data:image/png;name=a.png;base64,{B64}",
        f'data:image/png;name="a,b;c.png";base64,{B64}',
        f"DATA:IMAGE/PNG;BASE64,{B64}",
        f"data:;base64,{B64}",
        f"data:application/octet-stream;base64,{B64}",
        f"data:image/png; base64 ,{B64}",
        f"data:image/png;base64,{B64[:40]}\r\n  {B64[40:]}\n",
        f"data:image/png;base64,{B64.replace('+', '-').replace('/', '_')}",
        f"data:image/png;base64,{B64.rstrip('=')}",
        f"data:image/png;base64,{B64.replace('+', '%2B').replace('/', '%2f').replace('=', '%3D')}",
        f"data:image/png,{''.join(f'%{byte:02X}' for byte in DATA)}",
        f"data:,{quote_from_bytes(DATA)}",
    ],
)
def test_every_form_gives_the_bytes(uri):
    assert decode(uri) == DATA


@given(st.binary(max_size=60))
def test_agrees_with_the_standard_library(data):
    for uri in (
        f"data:text/plain;base64,{base64.b64encode(data).decode()}",
        f"data:text/plain,{quote_from_bytes(data)}",
    ):
        with urllib.request.urlopen(uri) as response:
            assert decode(uri) == response.read() == data


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("data:", "comma"),
        (f"data:image/png;base64{B64}", "comma"),
        (f"data:image/png;{'a' * 5000};base64,{B64}", "comma"),
        (f'data:image/png;name="a;base64,{B64}', "comma"),
        ("data:image/png;base64,*bad*", "not base64"),
        ("data:image/png;base64,A", "not base64"),
        ("data:image/png;base64,QQ==QQ==", "not base64"),
        ("data:image/png;base64,Q=Q=", "not base64"),
        ("data:image/png;base64,=", "not base64"),
        ("data:image/png;base64,QQ=", "not base64"),
        ("data:image/png;base64,Q\u00e9==", "outside of base64"),
        ("data:image/png;base64,Q\ud800==", "outside of base64"),
    ],
)
def test_what_is_not_one_is_refused(uri, message):
    with pytest.raises(MediaError, match=message):
        decode(uri)


def test_base64_only_where_the_last_parameter_says_so():
    assert decode("data:text/plain;base64;charset=x,QUJD") == b"QUJD"


@pytest.mark.parametrize(
    "uri", [f"data:;base64,{B64}", f"data:,{quote_from_bytes(DATA)}", "data:," + "a" * 256]
)
def test_the_limit_counts_decoded_bytes_and_carries_both_numbers(uri):
    assert len(decode(uri, max_bytes=256)) == 256
    with pytest.raises(LimitExceededError, match=r"256 bytes exceed max_bytes \(255 bytes\)"):
        decode(uri, max_bytes=255)


def test_plain_base64():
    assert decode_base64(B64, max_bytes=256) == DATA
    assert decode_base64("", max_bytes=256) == b""
    assert decode_base64("QQ", max_bytes=1) == b"A"
    with pytest.raises(LimitExceededError):
        decode_base64("QUI=", max_bytes=1)
