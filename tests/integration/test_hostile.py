# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A slice of what hostile clients send; ``tests/endurance/hostile.py`` is the whole.

``TRTLLM_HOSTILE_INPUTS`` says how many crafted requests.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from endurance.crafted import RULES
from endurance.hostile import Attack, arguments
from support.server import Server

ON_DEMAND = "TRTLLM_HOSTILE_INPUTS" in os.environ
INPUTS = int(os.environ.get("TRTLLM_HOSTILE_INPUTS", 3 * len(RULES)))
CONNECTIONS = 2000 if ON_DEMAND else 50
SLACK = 1.0 if ON_DEMAND else 3.0  # other tests run beside the slice


@pytest.fixture(scope="module")
def attack(phi4mm_checkpoint: Path, tmp_path_factory) -> Iterator[Attack]:
    log = tmp_path_factory.mktemp("hostile") / "log"
    with Server(arguments(phi4mm_checkpoint), log) as server:
        server.wait_until_ready()
        yield Attack(server, SLACK)


def test_crafted_requests_are_refused_and_the_next_good_one_is_right(attack: Attack) -> None:
    attack.craft(INPUTS, seed=0)
    attack.finish()
    assert attack.report.faults == []
    assert attack.report.refused.total() == INPUTS
    assert {name.partition(":")[0] for name in attack.report.refused} == set(RULES)


def test_no_request_is_smuggled_inside_another(attack: Attack) -> None:
    attack.smuggle()
    assert attack.report.faults == []


def test_clients_that_say_little_hold_up_nobody(attack: Attack) -> None:
    attack.occupy(CONNECTIONS)
    assert attack.report.faults == []


def test_a_crafted_request_is_made_again_from_its_number() -> None:
    for name, rule in RULES.items():
        assert rule(random.Random(name)) == rule(random.Random(name))
