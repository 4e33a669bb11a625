# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Pools that hold a number for the KV of each token, and the copy plans that move them."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from tensorrt_llm.bindings import CopyKind, CopyPlan


class CacheMemory:
    """What an engine does with block tables and plans, late but in order."""

    def __init__(self, num_blocks: int, host_blocks: int, tokens_per_block: int) -> None:
        self.size = tokens_per_block
        self.device = np.zeros((num_blocks, tokens_per_block), np.int64)
        self.host = np.zeros((host_blocks, tokens_per_block), np.int64)
        self.plans: deque[CopyPlan] = deque()
        self.ran = 0
        self.done = 0
        self.copies: Counter[CopyKind] = Counter()

    def receive(self, plan: CopyPlan) -> None:
        if plan.ticket:
            self.plans.append(plan)
            self.copies.update(CopyKind(row[0]) for row in plan.entries.tolist())

    def run_next(self) -> None:
        plan = self.plans.popleft()
        self.copy(plan)
        self.ran = plan.ticket

    def run_all(self) -> None:
        while self.plans:
            self.run_next()

    def copy(self, plan: CopyPlan) -> None:
        for kind, source, destination, tokens, pool in plan.entries.tolist():
            assert pool == 0, "there are no window pools"
            read = self.host if kind == CopyKind.ONBOARD else self.device
            write = self.host if kind == CopyKind.OFFLOAD else self.device
            write[destination, :tokens] = read[source, :tokens]

    def write(self, table: list[int], first: int, contents: list[int]) -> None:
        """One step of a sequence: the KV of tokens from ``first`` on, after all plans."""
        self.run_all()
        for position, number in enumerate(contents, first):
            self.device[table[position // self.size], position % self.size] = number

    def read(self, table: list[int], count: int) -> list[int]:
        """What the first ``count`` tokens of a table are when all plans have run."""
        return self.device[table].reshape(-1)[:count].tolist()

    def after_all_plans(self) -> CacheMemory:
        """A copy of the pools in which nothing is left to run."""
        ahead = CacheMemory(len(self.device), len(self.host), self.size)
        ahead.device, ahead.host = self.device.copy(), self.host.copy()
        for plan in self.plans:
            ahead.copy(plan)
        return ahead
