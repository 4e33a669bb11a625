# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Media of a prompt as the engine sees it: digests, exact placeholder runs, slices of a chunk.

``MultimodalInput`` keeps the shape that TensorRT-LLM's users know: lists of ints, digests as eight
int32. ``MediaRunBuffers`` says the same in arrays, for one crossing into C++.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tensorrt_llm.inputs.data import DIGEST_BYTES, PlaceholderRun, ProcessedItem
from tensorrt_llm.inputs.multimodal_params import MultimodalParams, MultimodalRuntimeData

__all__ = [
    "MediaRunBuffers",
    "MultimodalInput",
    "MultimodalParams",
    "MultimodalRuntimeData",
    "hexdigest_to_int32",
    "int32_to_hexdigest",
    "media_run_buffers",
]

INT32_MAX = 2**31 - 1
_DIGEST_INTS = DIGEST_BYTES // 4
_HEX_CHARS = DIGEST_BYTES * 2


def hexdigest_to_int32(hex_digest: str) -> list[int]:
    """Splits a digest of 64 hex characters into 8 signed big-endian int32.

    Raises:
        ValueError: If the text is not 64 hex characters.
    """
    if len(hex_digest) != _HEX_CHARS:
        raise ValueError(f"a digest has {_HEX_CHARS} hex characters, not {len(hex_digest)}")
    # bytes.fromhex passes over blanks; then fewer bytes come out than the length promises.
    raw = bytes.fromhex(hex_digest)
    if len(raw) != DIGEST_BYTES:
        raise ValueError(f"a digest has {DIGEST_BYTES} bytes, not {len(raw)}")
    return _digest_to_int32(raw)


def int32_to_hexdigest(int32_values: Sequence[int]) -> str:
    """Joins 8 signed int32 into the digest of 64 hex characters that they came from.

    Raises:
        ValueError: If there are not 8 values, or one does not fit.
    """
    if len(int32_values) != _DIGEST_INTS:
        raise ValueError(f"a digest has {_DIGEST_INTS} int32 values, not {len(int32_values)}")
    try:
        return struct.pack(f">{_DIGEST_INTS}i", *int32_values).hex()
    except struct.error as error:
        raise ValueError(f"not all of {list(int32_values)} are int32") from error


def _digest_to_int32(digest: bytes) -> list[int]:
    return list(struct.unpack(f">{_DIGEST_INTS}i", digest))


@dataclass
class MultimodalInput:
    """Digests and places of a prompt's media items. Checked once, when it is made.

    Attributes:
        multimodal_hashes: One list of 8 int32 an item.
        multimodal_positions: Prompt index of each item's first placeholder token.
        multimodal_lengths: Number of each item's placeholder tokens.
        multimodal_uuids: The callers' ids, one an item, each may be None; or None.
        multimodal_item_run_cu_offsets: Where each item's runs start in the two lists below, and
            the number of runs as last entry; length items + 1.
        multimodal_run_positions: Prompt index of each run's first token, in order within an item.
        multimodal_run_lengths: Number of tokens of each run. The three run lists come together or
            not at all; without them an item is one run.

    Raises:
        TypeError: If a list is no list, or holds something else than it says.
        ValueError: If the numbers contradict each other. The message carries both.
    """

    multimodal_hashes: list[list[int]]
    multimodal_positions: list[int]
    multimodal_lengths: list[int]
    multimodal_uuids: list[str | None] | None = None
    multimodal_item_run_cu_offsets: list[int] | None = None
    multimodal_run_positions: list[int] | None = None
    multimodal_run_lengths: list[int] | None = None

    def __post_init__(self) -> None:
        self._check_items()
        self._check_uuids()
        runs = (
            self.multimodal_item_run_cu_offsets,
            self.multimodal_run_positions,
            self.multimodal_run_lengths,
        )
        if any(values is None for values in runs):
            if any(values is not None for values in runs):
                raise ValueError(
                    "multimodal_item_run_cu_offsets, multimodal_run_positions and "
                    "multimodal_run_lengths must be provided together"
                )
            return
        self._check_runs()

    @classmethod
    def from_components(
        cls,
        mm_hashes: list[list[int]],
        mm_positions: list[int],
        mm_lengths: list[int],
        mm_uuids: list[str | None] | None = None,
        mm_item_run_cu_offsets: list[int] | None = None,
        mm_run_positions: list[int] | None = None,
        mm_run_lengths: list[int] | None = None,
    ) -> MultimodalInput:
        """Makes one from its parts. Arguments and errors are those of the class."""
        return cls(
            multimodal_hashes=mm_hashes,
            multimodal_positions=mm_positions,
            multimodal_lengths=mm_lengths,
            multimodal_uuids=mm_uuids,
            multimodal_item_run_cu_offsets=mm_item_run_cu_offsets,
            multimodal_run_positions=mm_run_positions,
            multimodal_run_lengths=mm_run_lengths,
        )

    @classmethod
    def from_items(cls, items: Sequence[ProcessedItem], prompt_len: int) -> MultimodalInput | None:
        """Makes one from processed items.

        Args:
            items: The items of a prompt, each with an identity and at least one run.
            prompt_len: Tokens of the prompt.

        Returns:
            None if any item's identity is unknown, for then none of this may be relied on.

        Raises:
            ValueError: If runs contradict each other or the prompt.
        """
        hashes: list[list[int]] = []
        for item in items:
            if item.identity is None:
                return None
            hashes.append(_digest_to_int32(item.identity))
        runs = [run for item in items for run in item.runs]
        made = cls(
            multimodal_hashes=hashes,
            multimodal_positions=[_first_position(item) for item in items],
            multimodal_lengths=[item.num_rows for item in items],
            multimodal_uuids=[item.uuid for item in items],
            multimodal_item_run_cu_offsets=_cumulative([len(item.runs) for item in items]),
            multimodal_run_positions=[run.position for run in runs],
            multimodal_run_lengths=[run.length for run in runs],
        )
        for run in runs:
            end = run.position + run.length
            if end > prompt_len:
                raise ValueError(f"a run ends at {end}, the prompt at {prompt_len}")
        return made

    def to_tensor(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Hashes ``[items, 8]``, positions and lengths ``[items]``, int32 on the CPU."""
        hashes = torch.tensor(self.multimodal_hashes, dtype=torch.int32)
        return (
            hashes.reshape(-1, _DIGEST_INTS),
            torch.tensor(self.multimodal_positions, dtype=torch.int32),
            torch.tensor(self.multimodal_lengths, dtype=torch.int32),
        )

    def run_metadata(self) -> tuple[list[int], list[int], list[int]] | None:
        """Run offsets by item, run positions and run lengths; None if there are no exact runs."""
        offsets = self.multimodal_item_run_cu_offsets
        positions, lengths = self.multimodal_run_positions, self.multimodal_run_lengths
        if offsets is None or positions is None or lengths is None:
            return None
        return offsets, positions, lengths

    def _check_items(self) -> None:
        if not isinstance(self.multimodal_hashes, list):
            raise TypeError("multimodal_hashes must be a list")
        for index, digest in enumerate(self.multimodal_hashes):
            _check_ints(f"multimodal_hashes[{index}]", digest)
            if len(digest) != _DIGEST_INTS:
                raise ValueError(
                    f"multimodal_hashes[{index}] holds {len(digest)} int32 values, expected "
                    f"{_DIGEST_INTS}"
                )
            for value in digest:
                if not -INT32_MAX - 1 <= value <= INT32_MAX:
                    raise ValueError(f"multimodal_hashes[{index}]: {value} is not an int32")
        _check_ints("multimodal_positions", self.multimodal_positions)
        _check_ints("multimodal_lengths", self.multimodal_lengths)
        counts = [
            len(self.multimodal_hashes),
            len(self.multimodal_positions),
            len(self.multimodal_lengths),
        ]
        if len(set(counts)) > 1:
            raise ValueError(
                "multimodal_hashes, multimodal_positions and multimodal_lengths must all have the "
                f"same length, not {counts[0]}, {counts[1]} and {counts[2]}"
            )
        _check_spans("multimodal", self.multimodal_positions, self.multimodal_lengths)

    def _check_uuids(self) -> None:
        if self.multimodal_uuids is None:
            return
        if not isinstance(self.multimodal_uuids, list):
            raise TypeError("multimodal_uuids must be a list")
        if len(self.multimodal_uuids) != len(self.multimodal_hashes):
            raise ValueError(
                f"multimodal_uuids length ({len(self.multimodal_uuids)}) must match the number of "
                f"items ({len(self.multimodal_hashes)})"
            )
        for index, uuid in enumerate(self.multimodal_uuids):
            if uuid is not None and not isinstance(uuid, str):
                raise TypeError(
                    f"multimodal_uuids[{index}] must be a string or None, not {type(uuid).__name__}"
                )

    def _check_runs(self) -> None:
        metadata = self.run_metadata()
        assert metadata is not None
        offsets, positions, lengths = metadata
        _check_ints("multimodal_item_run_cu_offsets", offsets)
        _check_ints("multimodal_run_positions", positions)
        _check_ints("multimodal_run_lengths", lengths)
        _check_offsets(offsets, len(self.multimodal_hashes), len(positions), len(lengths))
        _check_spans("multimodal_run", positions, lengths)
        for item, (start, end) in enumerate(itertools.pairwise(offsets)):
            self._check_item_runs(item, positions[start:end], lengths[start:end])
        _check_no_overlap(positions, lengths)

    def _check_item_runs(self, item: int, positions: list[int], lengths: list[int]) -> None:
        expected = self.multimodal_lengths[item]
        if sum(lengths) != expected:
            raise ValueError(
                f"the run lengths of item {item} sum to {sum(lengths)}, expected {expected}"
            )
        # Lengths are positive, so an item whose sum agrees has at least one run.
        if positions[0] != self.multimodal_positions[item]:
            raise ValueError(
                f"the first run of item {item} starts at {positions[0]}, the item at "
                f"{self.multimodal_positions[item]}"
            )
        for earlier, later in itertools.pairwise(positions):
            if later <= earlier:
                raise ValueError(
                    f"the runs of item {item} are not in order: {later} follows {earlier}"
                )


def _check_ints(name: str, values: Any) -> None:
    if not isinstance(values, list):
        raise TypeError(f"{name} must be a list, not {type(values).__name__}")
    for value in values:
        if type(value) is not int:
            raise TypeError(f"{name} must hold ints, not {type(value).__name__}")


def _check_spans(prefix: str, positions: list[int], lengths: list[int]) -> None:
    for position, length in zip(positions, lengths, strict=True):
        if position < 0:
            raise ValueError(f"{prefix}_positions must be non-negative, not {position}")
        if length <= 0:
            raise ValueError(f"{prefix}_lengths must be positive, not {length}")
        if position + length > INT32_MAX:
            raise ValueError(
                f"{prefix}_positions: end position exceeds int32: {position} + {length} > "
                f"{INT32_MAX}"
            )


def _check_offsets(offsets: list[int], items: int, positions: int, lengths: int) -> None:
    name = "multimodal_item_run_cu_offsets"
    if positions != lengths:
        raise ValueError(
            "multimodal_run_positions and multimodal_run_lengths must all have the same length, "
            f"not {positions} and {lengths}"
        )
    if len(offsets) != items + 1:
        raise ValueError(
            f"{name} has {len(offsets)} entries for {items} items, expected {items + 1}"
        )
    if offsets[0] != 0:
        raise ValueError(f"{name} must start at 0, not {offsets[0]}")
    for earlier, later in itertools.pairwise(offsets):
        if later < earlier:
            raise ValueError(f"{name} must not decrease: {later} follows {earlier}")
    if offsets[-1] != positions:
        raise ValueError(f"{name} ends at {offsets[-1]}, but there are {positions} runs")


def _check_no_overlap(positions: list[int], lengths: list[int]) -> None:
    spans = sorted(zip(positions, lengths, strict=True))
    for (position, length), (following, _) in itertools.pairwise(spans):
        if following < position + length:
            raise ValueError(
                f"multimodal runs overlap: one ends at {position + length}, another starts at "
                f"{following}"
            )


def _first_position(item: ProcessedItem) -> int:
    if not item.runs:
        raise ValueError(f"an item of modality {item.modality} has no placeholder run")
    return item.runs[0].position


def _cumulative(counts: list[int]) -> list[int]:
    return [0, *np.cumsum(counts, dtype=np.int64).tolist()]


@dataclass(frozen=True, eq=False)
class MediaRunBuffers:
    """The arrays of the cache manager's ``MediaRuns``, n items and m runs.

    Attributes:
        digests: uint8 ``[n, 32]``; zeros where the identity is unknown.
        identified: bool ``[n]``: whether the identity is known.
        item_rows: int64 ``[n]``: rows of each item.
        run_items: int32 ``[m]``: item of each run.
        run_positions: int64 ``[m]``: prompt index of each run's first token, ascending.
        run_lengths: int64 ``[m]``: tokens of each run.
    """

    digests: np.ndarray = field(repr=False)
    identified: np.ndarray
    item_rows: np.ndarray
    run_items: np.ndarray
    run_positions: np.ndarray
    run_lengths: np.ndarray


def media_run_buffers(items: Sequence[ProcessedItem]) -> MediaRunBuffers:
    """Lays items out for the cache manager, which checks the runs against the prompt.

    Args:
        items: Items of one prompt.

    Raises:
        ValueError: If an identity is not 32 bytes.
    """
    digests = np.zeros((len(items), DIGEST_BYTES), dtype=np.uint8)
    runs: list[tuple[int, PlaceholderRun]] = []
    for index, item in enumerate(items):
        if item.identity is not None:
            if len(item.identity) != DIGEST_BYTES:
                raise ValueError(f"an identity has {DIGEST_BYTES} bytes, not {len(item.identity)}")
            digests[index] = np.frombuffer(item.identity, dtype=np.uint8)
        runs += [(index, run) for run in item.runs]
    runs.sort(key=lambda pair: pair[1].position)
    return MediaRunBuffers(
        digests=digests,
        identified=np.array([item.identity is not None for item in items], dtype=np.bool_),
        item_rows=np.array([item.num_rows for item in items], dtype=np.int64),
        run_items=np.array([index for index, _ in runs], dtype=np.int32),
        run_positions=np.array([run.position for _, run in runs], dtype=np.int64),
        run_lengths=np.array([run.length for _, run in runs], dtype=np.int64),
    )
