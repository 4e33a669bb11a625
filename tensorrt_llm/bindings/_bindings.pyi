# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""KV cache manager: pure bookkeeping of blocks, in C++.

Arrays must be contiguous and of exactly the dtype shown (anything else is a TypeError). Every call
but ``block_ids`` and ``stats`` releases the interpreter's lock while it works, so a manager is used
by one thread at a time, or its users bring their own lock; different managers share nothing.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

class KvCacheError(RuntimeError):
    """Base of every error that the KV cache manager raises."""

class InvalidArgumentError(KvCacheError, ValueError):
    """A value that no caller may pass."""

class InvalidMediaRunsError(InvalidArgumentError):
    """Placeholder runs that contradict each other or the prompt."""

class CapacityExceededError(KvCacheError):
    """A need that the pool, or the sequence's reservation, can never meet."""

class UnknownSequenceError(KvCacheError):
    """A sequence id that is not live."""

class InternalStateError(KvCacheError):
    """An invariant of the manager does not hold: a fault of ours."""

class ReuseScope:
    """What separates one cache from another, compared in full."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        cache_salt: str | None = None,
        adapter_id: int | None = None,
        adapter_version: int = 0,
        adapter_mode: str = "",
    ) -> None:
        """Take the parts; InvalidArgumentError for an empty ``cache_salt``."""

    def __eq__(self, other: object) -> bool: ...
    @property
    def cache_salt(self) -> str | None: ...
    @property
    def adapter_id(self) -> int | None: ...
    @property
    def adapter_version(self) -> int: ...
    @property
    def adapter_mode(self) -> str: ...

class MediaRuns:
    """The media items of a prompt and the token runs that stand for them."""

    def __init__(
        self,
        digests: npt.NDArray[np.uint8],
        identified: npt.NDArray[np.bool_],
        run_items: npt.NDArray[np.int32],
        run_positions: npt.NDArray[np.int64],
        run_lengths: npt.NDArray[np.int64],
        item_rows: npt.NDArray[np.int64],
        uuids: list[str | None] = [],
    ) -> None:
        """Copy the description of a prompt's media; it is checked where it meets the prompt.

        Args:
            digests: uint8 ``[n_items, 32]``, an item's identity.
            identified: bool ``[n_items]``; where False the digest means nothing, and the sequence
                shares nothing from the block of that item's first token on.
            run_items: int32 ``[n_runs]``, the index of a run's item.
            run_positions: int64 ``[n_runs]``, the index in the prompt of a run's first token,
                ascending.
            run_lengths: int64 ``[n_runs]``, tokens of a run; those of an item sum to its rows.
            item_rows: int64 ``[n_items]``.
            uuids: The caller's names of the items, one an item or none at all. Only for events.
        """

    @property
    def num_items(self) -> int: ...
    @property
    def num_runs(self) -> int: ...

class MediaBatch:
    """The media of several prompts, end to end."""

    def __init__(
        self,
        media: MediaRuns,
        item_offsets: npt.NDArray[np.int64],
        run_offsets: npt.NDArray[np.int64],
    ) -> None:
        """Copy the arrays. Item indices and positions count from each prompt's own beginning.

        Args:
            media: The items and runs of all prompts, one prompt after the other.
            item_offsets: int64 ``[n_prompts + 1]``: where each prompt's items begin, and the end.
            run_offsets: int64 ``[n_prompts + 1]``, likewise for runs.

        Raises:
            InvalidArgumentError: Offsets that do not rise from 0 to the number of entries.
            InvalidMediaRunsError: Arrays of ``media`` that differ in size.
        """

    @property
    def num_prompts(self) -> int: ...

class TokenRangeRetentionConfig:
    """The priority of the blocks that begin in a range of the prompt."""

    def __init__(
        self,
        token_start: int,
        token_end: int | None,
        priority: int,
        duration_ms: int | None = None,
    ) -> None:
        """Blocks whose first token is in ``[token_start, token_end)``; None: to the prompt's end.

        ``priority`` is 0, given up first, to 100; after ``duration_ms`` unused it is 35 again.
        """

    @property
    def token_start(self) -> int: ...
    @property
    def token_end(self) -> int | None: ...
    @property
    def priority(self) -> int: ...
    @property
    def duration_ms(self) -> int | None: ...

class KvCacheRetentionConfig:
    """How long a sequence wants its blocks kept."""

    def __init__(
        self,
        token_range_retention_configs: list[TokenRangeRetentionConfig],
        decode_retention_priority: int = 35,
        decode_duration_ms: int | None = None,
    ) -> None:
        """Ranges of the prompt, and the priority of blocks that begin with a generated token.

        Raises:
            InvalidArgumentError: Ranges that overlap or go back, an open end that is not the last,
                a priority outside 0 to 100, a duration below 1.
        """

    @property
    def token_range_retention_configs(self) -> list[TokenRangeRetentionConfig]: ...
    @property
    def decode_retention_priority(self) -> int: ...
    @property
    def decode_duration_ms(self) -> int | None: ...

class CopyKind(IntEnum):
    """What a copy is for, and between which pools."""

    PARTIAL = 0
    FORK = 1
    OFFLOAD = 2
    ONBOARD = 3

class MatchExplanation:
    """How long a match is and why it stops there."""

    @property
    def cached_tokens(self) -> int:
        """What ``probe`` says."""

    @property
    def reason(self) -> str:
        """Why it stops.

        complete, reuse_disabled, unidentified_media, not_committed, window, evicted, salt, adapter,
        adapter_mode, tokens, media_identity, media_offset, media_runs or unknown.
        """

    @property
    def block(self) -> int:
        """Index in the prompt of the block at which it stops."""

    @property
    def position(self) -> int:
        """Index in the prompt of the first token that is not shared."""

    @property
    def evicted_ms(self) -> int | None:
        """With ``evicted``: how long ago, in milliseconds of the time that ``refresh`` tells."""

class CopyPlan:
    """Copies to run in order, and the ticket to report them by."""

    @property
    def ticket(self) -> int:
        """What ``copies_done`` takes; 0 where there is nothing to run."""

    @property
    def entries(self) -> npt.NDArray[np.int32]:
        """int32 ``[n, 5]``: kind, source block, destination block, tokens from its start, pool.

        The source of ONBOARD and the destination of OFFLOAD are blocks of the host pool. Pool 0 is
        the primary one; p > 0 is ``window_pools[p - 1]``, and both blocks are of it.
        """

class SequenceAllocation:
    """What a sequence got when it was added."""

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt whose KV is there, or will be when the ticket's copies have run."""

    @property
    def num_blocks(self) -> int:
        """Blocks in its table: those for the prompt."""

    @property
    def ticket(self) -> int:
        """The copy plan that has to run before the sequence's first step, 0 if none."""

class WindowPoolStats:
    """A snapshot of a window pool, and counts since start."""

    @property
    def window_size(self) -> int:
        """Tokens that one attends to, itself included."""

    @property
    def max_num_blocks(self) -> int: ...
    @property
    def free_num_blocks(self) -> int:
        """Blocks that no sequence and no copy holds: empty or cached."""

    @property
    def cached_num_blocks(self) -> int:
        """Of these, blocks that a match can still use."""

    @property
    def promised_num_blocks(self) -> int:
        """Blocks promised to live sequences, taken or not."""

    @property
    def evicted_blocks(self) -> int:
        """Cached blocks given up to make room."""

    @property
    def released_blocks(self) -> int:
        """Blocks given back by sequences whose window had moved on."""

class DurationCounts:
    """Durations by size, in milliseconds."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool: ...
    @property
    def bounds_ms(self) -> list[int]:
        """Upper bounds of all counts but the last, themselves included."""

    @property
    def counts(self) -> list[int]:
        """How many lie between the bound before and their own; last those above all bounds."""

    @property
    def sum_ms(self) -> int: ...

class KvCacheStats:
    """A snapshot of the pool, and counts since start."""

    @property
    def max_num_blocks(self) -> int: ...
    @property
    def free_num_blocks(self) -> int:
        """Blocks that no sequence holds: empty or cached."""

    @property
    def used_num_blocks(self) -> int:
        """Blocks that at least one sequence holds."""

    @property
    def cached_num_blocks(self) -> int:
        """Findable blocks, held or not."""

    @property
    def reserved_num_blocks(self) -> int:
        """Blocks promised to live sequences and not yet taken."""

    @property
    def tokens_per_block(self) -> int: ...
    @property
    def alloc_total_blocks(self) -> int:
        """Entries put into block tables, new or reused."""

    @property
    def alloc_new_blocks(self) -> int:
        """Of these, blocks taken to be written."""

    @property
    def reused_blocks(self) -> int:
        """Prompt blocks found in the cache."""

    @property
    def missed_blocks(self) -> int:
        """Prompt blocks that had to be taken new."""

    @property
    def evicted_blocks(self) -> int:
        """Findable blocks given up to make room."""

    @property
    def evicted_on_device(self) -> int:
        """Of these, on the device, for the content of others."""

    @property
    def evicted_on_host(self) -> int:
        """Of these, on the host, for blocks that moved there."""

    @property
    def evicted_with_parent(self) -> int:
        """Of these, on the host, because what they continue was given up."""

    @property
    def flushed_blocks(self) -> int:
        """Findable blocks dropped by ``reset_reuse_state``."""

    @property
    def evicted_idle(self) -> DurationCounts:
        """How long each evicted block had lain unused."""

    @property
    def reused_idle(self) -> DurationCounts:
        """How long each block had lain unused that a prompt found, in whole or in part."""

    @property
    def partial_reused_blocks(self) -> int:
        """Of the missed, blocks of which a leading part was found."""

    @property
    def offloaded_blocks(self) -> int:
        """Blocks moved to the host pool."""

    @property
    def onboarded_blocks(self) -> int:
        """Blocks moved back."""

    @property
    def host_max_num_blocks(self) -> int: ...
    @property
    def host_free_num_blocks(self) -> int:
        """Blocks of the host pool that are empty or cached, and not in a copy."""

    @property
    def host_cached_num_blocks(self) -> int: ...
    @property
    def pending_copies(self) -> int:
        """Copies written down and not said to be done."""

    @property
    def dropped_events(self) -> int:
        """Events that the buffer had no room for."""

    @property
    def window_pools(self) -> list[WindowPoolStats]:
        """One a window pool; all above is of the primary pool, pending copies excepted."""

    @property
    def cache_hit_rate(self) -> float:
        """Reused / (reused + missed), 0.0 where there is neither."""

class KVCacheManager:
    """Which blocks a sequence has, and which of them came from the cache.

    A call that raises has changed nothing, batches included.
    """

    def __init__(
        self,
        num_blocks: int,
        tokens_per_block: int,
        enable_block_reuse: bool = True,
        *,
        enable_partial_reuse: bool = False,
        copy_on_partial_reuse: bool = True,
        host_blocks: int = 0,
        secondary_offload_min_priority: int = 35,
        event_buffer_max_size: int = 0,
        window_pools: Sequence[tuple[int, int]] = (),
        max_step_tokens: int = 0,
    ) -> None:
        """Make the pools.

        Args:
            num_blocks: Blocks of the device pool, at least 1.
            tokens_per_block: A power of two, 2 to 32768.
            enable_block_reuse: If False nothing is ever matched or findable.
            enable_partial_reuse: Also match the leading part of a block. Copy plans must be run.
            copy_on_partial_reuse: Copy that part where the block is of use to others.
            host_blocks: Blocks of the host pool. Copy plans must be run if there are any.
            secondary_offload_min_priority: Blocks of a lower priority are dropped, not offloaded.
            event_buffer_max_size: Events kept for ``take_events``; with 0 none are made.
            window_pools: Pools of layers whose tokens see only a window, each its size in tokens
                (at least 2, the token itself included) and its blocks. In tables and copies they
                are numbered from 1.
            max_step_tokens: With window pools, the most tokens committed at once; 0: no bound, and
                then a prompt takes all its blocks in every window pool until its commit.
        """

    @property
    def num_blocks(self) -> int: ...
    @property
    def tokens_per_block(self) -> int: ...
    @property
    def enable_block_reuse(self) -> bool: ...
    @property
    def num_sequences(self) -> int: ...
    def add_sequence(
        self,
        sequence_id: int,
        tokens: npt.NDArray[np.int32],
        media: MediaRuns | None,
        scope: ReuseScope,
        max_new_tokens: int,
        retention: KvCacheRetentionConfig | None = None,
    ) -> SequenceAllocation | None:
        """Match the longest cached prefix, take the prompt's blocks, reserve those to finish.

        A prompt of p tokens with n >= 1 new ones needs p + n - 1 slots, since the last new token
        is never fed back.

        Args:
            sequence_id: An id that is not live.
            tokens: int32 ``[prompt_length]``, at least one.
            media: The prompt's media, if any.
            scope: What the sequence may share with.
            max_new_tokens: At least 0; the most tokens ever appended.
            retention: Priorities of its blocks; without it what it finds stays as it is.

        Returns:
            The allocation, or None, with nothing changed, if the pool cannot promise it now.

        Raises:
            InvalidMediaRunsError: Runs contradict each other or the prompt.
            CapacityExceededError: The need exceeds the whole pool, or a window pool.
            InvalidArgumentError: A live id, an empty prompt, a negative ``max_new_tokens``.
        """

    def add_sequence_batch(
        self,
        sequence_ids: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int32],
        token_offsets: npt.NDArray[np.int64],
        media: MediaBatch | None,
        scopes: list[ReuseScope],
        max_new_tokens: npt.NDArray[np.int64],
        retention: list[KvCacheRetentionConfig | None] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Add several sequences in order, each as ``add_sequence`` would.

        Args:
            sequence_ids: int64 ``[n]``, all different.
            tokens: int32, the prompts end to end.
            token_offsets: int64 ``[n + 1]``: where each prompt begins, and the end.
            media: The prompts' media, if any.
            scopes: One a sequence.
            max_new_tokens: int64 ``[n]``.
            retention: One a sequence, None for those without; or None if there are none.

        Returns:
            int64 ``[n]``: cached tokens, or -1 where the pool cannot promise the sequence now.

        Raises:
            KvCacheError: As ``add_sequence``, for any of them; nothing has changed then.
        """

    def probe(
        self, tokens: npt.NDArray[np.int32], media: MediaRuns | None, scope: ReuseScope
    ) -> int:
        """Tell the cached tokens that ``add_sequence`` would report now. Takes nothing.

        Where pools are so short of room that a partial match can be neither taken over nor copied,
        ``add_sequence`` may report fewer.
        """

    def explain(
        self,
        tokens: npt.NDArray[np.int32],
        media: MediaRuns | None,
        scope: ReuseScope,
        other_salts: bool = True,
    ) -> MatchExplanation:
        """Tell how long a match is and why it stops; a tool, may look at every sequence.

        Without ``other_salts`` nothing that it says depends on what other salts have cached.
        """

    def append_tokens(self, sequence_id: int, tokens: npt.NDArray[np.int32]) -> None:
        """Add generated tokens, and from the reservation the blocks that their KV needs.

        Raises:
            CapacityExceededError: More than ``max_new_tokens`` in all.
            UnknownSequenceError: The id is not live.
        """

    def append_batch(
        self, sequence_ids: npt.NDArray[np.int64], tokens: npt.NDArray[np.int32]
    ) -> None:
        """Append one token to each of several sequences: int64 ``[n]`` and int32 ``[n]``."""

    def grow_batch(self, sequence_ids: npt.NDArray[np.int64]) -> None:
        """Append to each of several sequences a token whose id is not known yet: int64 ``[n]``.

        Until ``name_batch`` a sequence takes no more tokens, and that one cannot be committed.

        Raises:
            InvalidArgumentError: The last token of one has no id yet.
        """

    def name_batch(
        self, sequence_ids: npt.NDArray[np.int64], tokens: npt.NDArray[np.int32]
    ) -> None:
        """Give the tokens of ``grow_batch`` their ids: int64 ``[n]`` and int32 ``[n]``.

        Raises:
            InvalidArgumentError: The last token of one has an id.
        """

    def commit(self, sequence_id: int, num_written: int) -> bool:
        """Say that the KV of the sequence's first ``num_written`` tokens is written.

        Every block that this fills becomes findable. Where an equal block is findable already, the
        sequence's own copy is given back and its table has the other one. In window pools, blocks
        that no token to come attends to are given back and those for the next step are taken.

        Returns:
            Whether the table changed so.

        Raises:
            InvalidArgumentError: Backwards, past the tokens that have slots, or, with window pools,
                further than ``max_step_tokens`` at once.
            UnknownSequenceError: The id is not live.
        """

    def commit_batch(
        self, sequence_ids: npt.NDArray[np.int64], num_written: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Commit several sequences, int64 ``[n]`` each; returns bool ``[n]``, table changed."""

    def fork(self, source_id: int, sequence_id: int) -> SequenceAllocation | None:
        """Add a sequence that goes on from where another is, with the same limits.

        Written whole blocks are shared, the block written next is copied as the plan says. None,
        with nothing changed, if the pool cannot promise it now.
        """

    def extend_sequence(self, sequence_id: int, max_new_tokens: int) -> bool:
        """Raise a promise: this many new tokens in all may come after the prompt.

        Returns:
            False, with nothing changed, if the pool cannot promise that now.

        Raises:
            CapacityExceededError: The need exceeds the whole pool.
            InvalidArgumentError: The last promised token was appended; that one has no slot.
            UnknownSequenceError: The id is not live.
        """

    def share_tail(self, source_id: int, sequence_id: int) -> int:
        """For a sequence just added: take over what another has written of its next block.

        The source must begin with the same blocks; what the keys of both blocks have in common is
        copied as the plan says, up to the last token of the prompt. Nothing happens without
        partial reuse by copying.

        Returns:
            The sequence's cached tokens now.
        """

    def rewind(self, sequence_id: int, num_tokens: int) -> None:
        """Take back the last tokens, down to ``num_tokens``: a rejected speculative tail.

        Raises:
            InvalidArgumentError: Below the prompt or what is committed, or above what is known.
            UnknownSequenceError: The id is not live.
        """

    def free_sequence(self, sequence_id: int, keep: bool = True) -> None:
        """End a sequence at any moment and give back all that it has.

        Findable blocks stay findable while nobody needs the room, unless ``keep`` is False. Blocks
        in a copy under way stay held until it is done. UnknownSequenceError if not live.
        """

    def free_batch(self, sequence_ids: npt.NDArray[np.int64], keep: bool = True) -> None:
        """End several sequences in order, int64 ``[n]``."""

    def take_copy_plan(self) -> CopyPlan:
        """Give the copies that the calls since the last one ask for.

        Plans run in the order of their tickets, entries in order, and before any step that writes
        blocks of a sequence and comes after them.
        """

    def copies_done(self, ticket: int) -> None:
        """Say that all plans up to ``ticket`` have run.

        Raises:
            InvalidArgumentError: That plan was not taken, or was done before.
        """

    def flush_events(self) -> None:
        """End the open event and let ``take_events`` give out what has gathered. Once a step."""

    def take_events(self, most: int) -> list[str]:
        """Move out at most ``most`` of the oldest flushed events, each one line of JSON.

        Blocks are named now, by a chained SHA-256 in hexadecimal (docs/kv-cache.md); one that came
        and went since the last call is not mentioned.
        """

    def refresh(self, now_ms: int) -> None:
        """Tell the time: priorities whose duration is over fall back to 35."""

    def reset_reuse_state(self) -> int:
        """Drop every findable block; returns how many cached blocks became free.

        What live sequences hold stays theirs, but neither it nor what they compute later is found.
        """

    def block_ids(self, sequence_id: int, pool: int = 0) -> npt.NDArray[np.int32]:
        """Give the sequence's block table, int32 ``[num_blocks]``, as a copy.

        In a window pool it is as long, with -1 for blocks before the window and behind what the
        next step may write.

        Raises:
            InvalidArgumentError: There is no such pool.
            UnknownSequenceError: The id is not live.
        """

    def block_tables(
        self, sequence_ids: npt.NDArray[np.int64], pool: int = 0
    ) -> npt.NDArray[np.int32]:
        """Give several tables, int32 ``[n, longest]``, padded with -1."""

    def stats(self) -> KvCacheStats:
        """Take a snapshot."""

    def block_map(self) -> str:
        """Tell the state of each place of the primary pool, those of the host pool last.

        Runs of a count and a letter: f is free, c cached, h held and findable, p held and private
        ("3h1p60f").
        """

    def check_integrity(self) -> None:
        """Recount everything, in time proportional to the pool; InternalStateError if wrong."""

def pack_strided(source: npt.NDArray[Any], into: npt.NDArray[np.uint8]) -> None:
    """Write the values of ``source``, whatever its strides, in C order as bytes ``[nbytes]``.

    The two must not overlap. Works without the interpreter's lock.
    """
