# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Beam search over sequences of the KV cache: a group of requests of which each holds a hypothesis.

A group is one thing to everybody else. The first of it, the leader, waits, is admitted, writes the
prompt, is told of and ends as any request does; the others come and go with it:

- With the leader's admission each of them takes its place in the batch and, by a sequence that is
  never written, the blocks that it will need behind the prompt. So a search that has begun has room
  to its end, whatever the capacity policy.
- When the prompt is written they fork off. In each later step, a hypothesis that nothing continues
  gives its blocks back, and its request forks off one that is continued more than once. What it
  gives back is never less than what the fork takes: all are equally long.
- Where the leader has to be paused the search is forgotten. It comes out the same the next time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from tensorrt_llm._torch.pyexecutor.live_requests import LiveRequests
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampling import BeamOptions, BeamSearch, Hypothesis
from tensorrt_llm.errors import EngineError


@dataclass
class _Group:
    """A search, and who holds each hypothesis that goes on."""

    search: BeamSearch
    holders: list[LlmRequest]


class BeamGroups:
    """Owned by the loop.

    Args:
        kv_cache: Blocks.
        live: The lists of requests.
    """

    def __init__(self, kv_cache: KVCacheManager, live: LiveRequests) -> None:
        self._kv_cache = kv_cache
        self._live = live
        self._groups: dict[int, _Group] = {}

    def has_room(self, leader: LlmRequest) -> bool:
        """Whether a whole group finds its blocks now; always true in an empty pool."""
        return self._kv_cache.has_room_for_beams(leader)

    def enter(self, leader: LlmRequest) -> int:
        """The leader was admitted: takes what the others will need.

        Returns:
            How many these are.

        Raises:
            EngineError: If there is no room though ``has_room`` said so.
        """
        # A copy that the admission asked for holds its source, which has_room counted as free.
        self._kv_cache.run_copies()
        others = leader.beams[1:]
        for other in others:
            if not self._kv_cache.hold_for_fork(leader, other):
                raise EngineError("the KV cache had no room for a beam that it had room for")
            self._live.hold(other)
        self._groups[leader.request_id] = _Group(BeamSearch(_options(leader)), [leader])
        return len(others)

    def leave(self, leader: LlmRequest) -> int:
        """The leader ends, or is paused: takes the others off and gives back what they hold.

        Returns:
            How many these were.
        """
        self._groups.pop(leader.request_id, None)
        leader.output_ids = []
        gone = [one for one in leader.beams[1:] if self._live.get(one.request_id) is one]
        for other in gone:
            self._kv_cache.release(other)
            self._live.let_go(other)
            other.output_ids = []
        return len(gone)

    def advance(
        self, leader: LlmRequest, logits: Mapping[int, torch.Tensor]
    ) -> list[Hypothesis] | None:
        """Takes one more token of each hypothesis.

        Args:
            leader: Whose group.
            logits: float32 ``[vocab_size]`` by request id, after each hypothesis.

        Returns:
            The answers, best first, once the search is done.
        """
        group = self._groups[leader.request_id]
        rows = torch.stack([logits[holder.request_id] for holder in group.holders])
        parents = group.search.step(rows.log_softmax(dim=-1))
        if group.search.done:
            return [one for _, one in group.search.finished[: leader.sampling.n]]
        group.holders = self._hand_on(group.holders, parents, leader.beams)
        for holder, one in zip(group.holders, group.search.running, strict=True):
            holder.output_ids = one.token_ids
            self._live.to_generation(holder)
        return None

    def _hand_on(
        self, holders: Sequence[LlmRequest], parents: Sequence[int], members: Sequence[LlmRequest]
    ) -> list[LlmRequest]:
        """Who holds each continuation: its parent's holder has the first, the spare ones fork."""
        continued = {id(holders[parent]) for parent in parents}
        spare = [one for one in members if id(one) not in continued]
        # All of them before the first fork, which counts on what they give back.
        for one in spare:
            self._kv_cache.release(one)
        following: list[LlmRequest] = []
        for parent in parents:
            source = holders[parent]
            if id(source) in continued:
                continued.remove(id(source))
                following.append(source)
                continue
            other = spare.pop()
            if not self._kv_cache.fork(source, other):
                raise EngineError("the KV cache had no room for a beam that had given up as much")
            following.append(other)
        # Now, so that no copy holds blocks if the search is given up before its next step.
        self._kv_cache.run_copies()
        return following


def by_leader(
    rows: Sequence[tuple[LlmRequest, torch.Tensor]],
) -> list[tuple[LlmRequest, dict[int, torch.Tensor]]]:
    """The rows of a step by group.

    Args:
        rows: Members of groups, each with its float32 logits ``[vocab_size]``.

    Returns:
        Each leader with the rows by request id.
    """
    groups: dict[int, tuple[LlmRequest, dict[int, torch.Tensor]]] = {}
    for request, row in rows:
        leader = request.beams[0]
        groups.setdefault(leader.request_id, (leader, {}))[1][request.request_id] = row
    return list(groups.values())


def _options(leader: LlmRequest) -> BeamOptions:
    sampling = leader.sampling
    return BeamOptions(
        width=len(leader.beams),
        max_new_tokens=leader.max_new_tokens,
        stop_token_ids=leader.stop_token_ids,
        length_penalty=sampling.length_penalty,
        early_stopping=sampling.early_stopping,
        num_top=sampling.logprobs or 0,
    )
