# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Does a decoder that no file of ours describes answer here as it does in transformers?

transformers has hundreds of classes. Some do not call the attention that is given to them, keep a
state between steps, or change scores: of these a flattened batch would make wrong answers without
any error, and let a request see its neighbours. So before such a decoder serves anyone, two short
sequences run through it in two steps, side by side, and its answers are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel

from tensorrt_llm._torch.attention_backend import (
    AttentionMetadata,
    PagedKVPool,
    SdpaAttention,
    SequenceAttention,
)
from tensorrt_llm.errors import ConfigurationError

if TYPE_CHECKING:
    from tensorrt_llm._torch.models.modeling_utils import DecoderModel

# Two sequences, each with a block of its own. What they say does not matter.
_SEQUENCES = ((3, 1, 4, 1, 5, 9, 2, 6), (2, 7, 1, 8, 2))
_BLOCK = 16
# Largest difference of a score as a part of the largest score: rounding, and no more.
_TOLERANCE = {torch.float32: 1e-3}
_SHORT_TOLERANCE = 0.1


@torch.no_grad()
def stock_scores(hf_model: PreTrainedModel) -> list[torch.Tensor]:
    """What transformers' model, not changed yet, says of each sequence alone.

    Returns:
        float32 ``[length, vocab_size]`` a sequence.
    """
    return [
        hf_model.eval()(
            input_ids=torch.tensor([tokens], device=hf_model.device), use_cache=False
        ).logits[0]
        for tokens in _SEQUENCES
    ]


@torch.no_grad()
def check_scores(model: DecoderModel, expected: list[torch.Tensor]) -> None:
    """Raises a ConfigurationError unless the model here says the same as before.

    Args:
        model: The model as the engine uses it.
        expected: Result of ``stock_scores``.
    """
    name = f"a model of type {model.text_config.model_type!r} cannot be run"
    try:
        scores, layers = _paged_scores(model)
    except Exception as error:  # whatever a class that we know nothing of may raise
        raise ConfigurationError(f"{name}: {type(error).__name__}: {error}") from error
    if layers != set(range(model.num_layers)):
        raise ConfigurationError(
            f"{name}: {len(layers)} of its {model.num_layers} layers call the attention that is "
            "given to them"
        )
    tolerance = _TOLERANCE.get(model.dtype, _SHORT_TOLERANCE)
    for ours, theirs in zip(scores, expected, strict=True):
        most, difference = theirs.abs().max().item(), (ours - theirs).abs().max().item()
        # Not "larger": a difference that is no number is one.
        if not difference <= tolerance * most:
            raise ConfigurationError(
                f"{name}: its scores differ by {difference:.3g} from those of transformers, whose "
                f"largest is {most:.3g}"
            )


class _NotingAttention(SdpaAttention):
    """Also notes which layers asked."""

    def __init__(self) -> None:
        self.layers: set[int] = set()

    def forward(self, layer: int, *args: Any, **kwargs: Any) -> torch.Tensor:
        self.layers.add(layer)
        return super().forward(layer, *args, **kwargs)


def _paged_scores(model: DecoderModel) -> tuple[list[torch.Tensor], set[int]]:
    """Scores of each sequence, and the layers that called the attention."""
    backend = _NotingAttention()
    pool = PagedKVPool.allocate(
        num_layers=model.num_layers,
        num_blocks=len(_SEQUENCES),
        tokens_per_block=_BLOCK,
        num_kv_heads=model.num_kv_heads,
        head_dim=model.head_dim,
        dtype=model.dtype,
        device=model.device,
    )
    half = [len(tokens) // 2 for tokens in _SEQUENCES]
    parts = [
        _step(model, pool, backend, [0] * len(half), half),
        _step(model, pool, backend, half, [len(tokens) for tokens in _SEQUENCES]),
    ]
    return [torch.cat(pieces) for pieces in zip(*parts, strict=True)], backend.layers


def _step(
    model: DecoderModel,
    pool: PagedKVPool,
    backend: SdpaAttention,
    begins: list[int],
    ends: list[int],
) -> list[torch.Tensor]:
    """Runs tokens ``begins`` to ``ends`` of all sequences as one batch; scores of each."""
    sequences: list[SequenceAttention] = []
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    for block, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        table = torch.tensor([block], device=model.device)
        sequences.append(SequenceAttention(len(tokens), end - begin, end, table))
        tokens += _SEQUENCES[block][begin:end]
        positions += range(begin, end)
        slots += range(block * _BLOCK + begin, block * _BLOCK + end)
    metadata = AttentionMetadata(
        pool, torch.tensor(slots, device=model.device), tuple(sequences), backend
    )
    embedded = model.embedding(torch.tensor(tokens, device=model.device))
    hidden = model.forward(embedded, torch.tensor([positions], device=model.device), metadata)
    return list(model.logits(hidden).split([sequence.query_len for sequence in sequences]))
