# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Crafted requests and rude connections against a real server.

    python tests/endurance/hostile.py --inputs 2000 --connections 2000 --json hostile.json

Each crafted request must be refused (4xx, as OpenAI's clients know it) within its time, and the
good request after it must be answered rightly. Request number n of a seed is always the same one.
Ends with 1 if anything was not as it should be.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[folder]) for folder in (1, 2)]
    os.environ.update({"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    os.environ.update({"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})

import click
import httpx
from support.checkpoints import build_checkpoint
from support.footprint import footprint
from support.server import Server

from endurance.crafted import Crafted, crafted, opening
from endurance.sockets import ambiguous, crowd, crowds, exchanged, wrong_about

CHAT = "/v1/chat/completions"
GOOD = {
    "messages": [{"role": "user", "content": "Hello, how are you?"}],
    **{"max_tokens": 4, "temperature": 0, "ignore_eos": True},
}
# A client gives up on an answer that takes so much longer than it may.
PATIENCE = 3.0
REST_SECONDS = 30.0


@dataclass
class Report:
    """What came of a run.

    Attributes:
        refused: Crafted requests by rule and status.
        slowest: The longest time that one of a rule took, in seconds.
        faults: All that was not as it should be.
    """

    refused: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class Attack:
    """Everything at one server.

    Args:
        server: A running one.
        slack: Answers may take so many times as long, on a machine that is busy with other things.
    """

    def __init__(self, server: Server, slack: float = 1.0) -> None:
        self.report = Report()
        self._server = server
        self._slack = slack
        self._right = server.post(dict(GOOD)).text

    def craft(self, inputs: int, seed: int) -> None:
        """Sends crafted requests one after the other, and a good one after each."""
        with httpx.Client(base_url=self._server.url, trust_env=False) as client:
            for number, one in enumerate(crafted(inputs, seed)):
                wrong = self._refusal_of(client, one)
                if wrong is not None:
                    told = f"{wrong} to {opening(one.body)}"
                    self.report.faults.append(f"seed {seed} input {number} ({one.rule}): {told}")
                self._ask_well(f"input {number} ({one.rule})")

    def smuggle(self) -> None:
        """Sends requests that can be read in two ways."""
        for name, data in ambiguous().items():
            wrong = wrong_about(exchanged(self._server.url, data))
            if wrong is not None:
                self.report.faults.append(f"{name}: {wrong}")
            self._ask_well(name)

    def occupy(self, connections: int) -> None:
        """Opens connections that come to nothing, and asks beside them; all are let go of again."""
        before = self._held()
        for name, said in crowds().items():
            with crowd(self._server.url, connections, said):
                self._ask_well(f"{connections} clients that say {name}")
        deadline = time.monotonic() + REST_SECONDS
        while (after := self._held()) != before and time.monotonic() < deadline:
            time.sleep(0.2)
        if after != before:
            self.report.faults.append(f"crowds left {after} of {before}")

    def finish(self) -> None:
        """What the server itself says of all this."""
        if "Traceback" in self._server.log_text():
            self.report.faults.append("a traceback in the log")

    def _held(self) -> dict[str, int]:
        return footprint(self._server).held["descriptors"]

    def _refusal_of(self, client: httpx.Client, one: Crafted) -> str | None:
        """Sends one; what is wrong with the answer, None if nothing is."""
        headers = {"Content-Type": "application/json"}
        most = self._slack * one.seconds
        began = time.monotonic()
        try:
            response = client.post(CHAT, content=one.body, headers=headers, timeout=PATIENCE * most)
        except httpx.HTTPError as error:
            return f"no answer: {error!r}"
        took = time.monotonic() - began
        self.report.slowest[one.rule] = max(took, self.report.slowest.get(one.rule, 0.0))
        self.report.refused[f"{one.rule}: {response.status_code}"] += 1
        if took > most:
            return f"answered after {took:.1f} s of {most:g}"
        return wrong_refusal(response)

    def _ask_well(self, after: str) -> None:
        try:
            reply = self._server.post(dict(GOOD))
        except httpx.HTTPError as error:
            self.report.faults.append(f"after {after} a good request got {error!r}")
            return
        if (reply.status, reply.text) != (200, self._right):
            self.report.faults.append(f"after {after} a good request got {reply}")


def wrong_refusal(response: httpx.Response) -> str | None:
    """Why an answer is no refusal as OpenAI's clients know it; None if it is one."""
    said = f"{response.status_code}: {response.text[:200]}"
    if not 400 <= response.status_code < 500:
        return f"answered {said}"
    try:
        body: Any = response.json()
    except ValueError:
        return f"refused without JSON: {said}"
    if body.get("code") != response.status_code or not body.get("message"):
        return f"refused in another form: {said}"
    return None


def arguments(checkpoint: Path) -> list[str]:
    """How the server is started."""
    words = [str(checkpoint), "--kv_cache_max_tokens", "8192", "--max_seq_len", "4096"]
    return [*words, "--max_request_bytes", str(4 * 2**20)]


@click.command()
@click.option("--inputs", default=2000, show_default=True, help="Crafted requests.")
@click.option("--connections", default=2000, show_default=True, help="Clients of a crowd.")
@click.option("--seed", default=0, show_default=True, help="Others make other requests.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Report as JSON.")
def main(inputs: int, connections: int, seed: int, json_file: Path | None) -> None:
    """Crafted requests and rude connections against a real server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = build_checkpoint("phi4mm", folder)
        with Server(arguments(checkpoint), folder / "log") as server:
            server.wait_until_ready()
            attack = Attack(server)
            attack.smuggle()
            attack.occupy(connections)
            attack.craft(inputs, seed)
            attack.finish()
    text = json.dumps(asdict(attack.report) | {"refused": dict(attack.report.refused)}, indent=2)
    if json_file is not None:
        json_file.write_text(text + "\n")
    click.echo(text)
    sys.exit(1 if attack.report.faults else 0)


if __name__ == "__main__":
    main()
