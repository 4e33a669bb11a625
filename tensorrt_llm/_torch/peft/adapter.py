# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What an adapter is: two thin matrices for each layer that it changes, and who it is."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True, eq=False)
class LoraWeights:
    """The change of one linear layer: ``y + scale * (x @ down.T) @ up.T``.

    Attributes:
        down: ``[rank, in_features]``, PEFT's ``lora_A``.
        up: ``[out_features, rank]``, PEFT's ``lora_B``.
        scale: What the product is multiplied by.
    """

    down: torch.Tensor
    up: torch.Tensor
    scale: float

    @property
    def rank(self) -> int:
        """Width of the product's middle."""
        return self.down.shape[0]

    def delta(self, rows: torch.Tensor) -> torch.Tensor:
        """What is added to the output: ``[..., in_features]`` to ``[..., out_features]``."""
        change = torch.nn.functional.linear(torch.nn.functional.linear(rows, self.down), self.up)
        return change * self.scale

    def to(self, device: torch.device, dtype: torch.dtype) -> LoraWeights:
        """The same on a device, in another type."""
        return LoraWeights(self.down.to(device, dtype), self.up.to(device, dtype), self.scale)


@dataclass(frozen=True, eq=False)
class LoraAdapter:
    """An adapter. Equal content is one identity, wherever it was read from.

    Attributes:
        layers: Changes by the name of the layer in the model.
        digest: 32 bytes over names, scales, shapes, types and values as they were read.
        touches_encoders: Whether it changes an encoder, so that rows of media depend on it.
    """

    layers: Mapping[str, LoraWeights]
    digest: bytes
    touches_encoders: bool = False

    @classmethod
    def of(cls, layers: Mapping[str, LoraWeights]) -> LoraAdapter:
        """An adapter of these changes, as they were read."""
        return cls(layers, _digest(layers))

    @cached_property
    def rank(self) -> int:
        """The highest rank of a layer."""
        return max(weights.rank for weights in self.layers.values())

    @property
    def num_bytes(self) -> int:
        """Bytes of all matrices."""
        parts = [part for layer in self.layers.values() for part in (layer.down, layer.up)]
        return sum(part.numel() * part.element_size() for part in parts)


def _digest(layers: Mapping[str, LoraWeights]) -> bytes:
    digest = hashlib.sha256(b"tensorrt_llm.lora.v1")
    for name, weights in sorted(layers.items()):
        encoded = name.encode()
        digest.update(struct.pack("<Qd", len(encoded), weights.scale) + encoded)
        for matrix in (weights.down, weights.up):
            kind = str(matrix.dtype).encode()
            digest.update(struct.pack("<QQQ", len(kind), *matrix.shape) + kind)
            digest.update(matrix.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
