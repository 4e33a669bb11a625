# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct
from datetime import date

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.canonical_value import canonical_value

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def fingerprint(value: object) -> object:
    """What tells values apart: type and content, with the order of keys taken out."""
    if isinstance(value, dict):
        return ("dict", frozenset((key, fingerprint(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(fingerprint(item) for item in value))
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    return (type(value).__name__, value)


@settings(max_examples=200, deadline=None)
@given(values, values)
def test_canonical_values_are_equal_exactly_when_the_values_are(left, right):
    same = fingerprint(left) == fingerprint(right)
    assert (canonical_value(left) == canonical_value(right)) == same


@pytest.mark.parametrize(
    "value", [{1}, object(), date(2026, 1, 1), torch.zeros(1), {1: 2}, [b"", {None: 1}]]
)
def test_values_without_canonical_form_are_refused(value):
    with pytest.raises(MediaError, match="no canonical form"):
        canonical_value(value)


def test_deep_nesting_is_refused():
    value: object = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(MediaError, match="nested more than 32 deep"):
        canonical_value(value)


def test_numpy_scalars_count_as_their_python_value():
    for left, right in ((np.int16(3), 3), (np.float64(0.5), 0.5), (np.bool_(True), True)):
        assert canonical_value(left) == canonical_value(right)
