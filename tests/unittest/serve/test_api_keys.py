# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Keys as an operator writes them, and whom they stand for."""

from __future__ import annotations

import hmac
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.serve.api_keys import ApiKeys, Tenant

LINES = ["# the team", "", "alpha team", "beta  team ", "gamma", "delta"]


def test_a_key_stands_for_its_tenant() -> None:
    keys = ApiKeys.parse(LINES)
    assert len(keys) == 4
    alpha, beta, gamma, delta = (
        keys.tenant(key) for key in (b"alpha", b"beta", b"gamma", b"delta")
    )
    assert alpha == beta == Tenant("team")
    assert gamma and delta and len({alpha, gamma, delta}) == 3
    for wrong in (b"", b"alph", b"alphaa", b"ALPHA", b"team", b"alpha team", b"#", b"\xff"):
        assert keys.tenant(wrong) is None


def test_no_key_is_no_door() -> None:
    assert not ApiKeys.parse(["", "# none"]) and not ApiKeys() and ApiKeys.parse(["one"])


@pytest.mark.parametrize(
    "lines", [["ok", "secret salt more"], ["sécret"], ["secret\x07"], ["secret", "secret other"]]
)
def test_mistakes_are_told_without_the_key(lines: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="entry") as raised:
        ApiKeys.parse(lines)
    assert "cret" not in str(raised.value)


def test_what_is_kept_does_not_tell_a_key() -> None:
    keys = ApiKeys.parse(["secret", "hidden salt"])
    for view in (repr(keys).encode(), pickle.dumps(keys)):
        assert b"secret" not in view and b"hidden" not in view


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, compared, original = ApiKeys.parse(LINES), [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(b) or original(a, b))
    for key in (b"alpha", b"delta", b"none"):
        keys.tenant(key)
    assert len(compared) == 3 * len(keys)


_TEXT = st.text(st.sampled_from("12:a"), max_size=4)


@given(one=st.tuples(_TEXT, st.none() | _TEXT), other=st.tuples(_TEXT, st.none() | _TEXT))
def test_salts_of_tenants_never_meet(one: tuple, other: tuple) -> None:
    salts = [Tenant(tenant).salted(salt) for tenant, salt in (one, other)]
    assert (salts[0] == salts[1]) == (one == other)
