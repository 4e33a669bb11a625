# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The layers of a model that adapters change, and whose rows are changed now.

A step is one flattened batch, so that requests of different adapters and of none lie side by side
in it. Each layer adds to the rows of each adapter what that adapter says; the rows of others are
not touched. Belongs to the thread that runs the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn

from tensorrt_llm._torch.peft.adapter import LoraAdapter
from tensorrt_llm.errors import ConfigurationError, EngineError


@dataclass(frozen=True, eq=False)
class AdapterRows:
    """Which rows an adapter changes.

    Attributes:
        adapter: The adapter.
        rows: int64 indices into the batch of ``num_tokens``, or None for all rows of whatever
            shape, as in an encoder that runs over one item alone.
        mask: In place of ``rows`` 1 for them and 0 for others, ``[num_tokens, 1]`` in the model's
            type: for a captured step, whose work must be the same whatever its rows are.
    """

    adapter: LoraAdapter
    rows: torch.Tensor | None = None
    mask: torch.Tensor | None = None


class LoraLayers:
    """Applies adapters to a model.

    Args:
        model: The model whose layers have the names that adapters use.
        decoder_layers: Name of the module that holds the decoder's layers: what is outside of it
            is part of an encoder.
    """

    def __init__(self, model: nn.Module, decoder_layers: str) -> None:
        self._model = model
        self._decoder_layers = f"{decoder_layers}."
        self._hooked: set[str] = set()
        self._active: Sequence[AdapterRows] = ()
        self._num_tokens = 0

    def fitted(self, adapter: LoraAdapter, source: str) -> LoraAdapter:
        """The adapter in the model's type and on its device.

        Args:
            adapter: As it was read.
            source: Where from, for messages.

        Raises:
            ConfigurationError: If it changes a layer that the model does not have, or that is no
                plain linear layer, or of another shape.
        """
        modules = dict(self._model.named_modules())
        heads = [
            module
            for module in (
                self._model.get_output_embeddings(),  # type: ignore[operator]
                self._model.get_input_embeddings(),  # type: ignore[operator]
            )
            if module is not None
        ]
        layers = {}
        for name, weights in adapter.layers.items():
            module = modules.get(name)
            parent = modules.get(name.rpartition(".")[0])
            if module is None:
                known = sorted({n.rpartition(".")[2] for n in self._linear_layers(modules)})
                raise ConfigurationError(
                    f"{source}: the model has no layer {name}; linear layers that it has: "
                    f"{', '.join(known)}"
                )
            if any(module is head for head in heads):
                raise ConfigurationError(
                    f"{source}: {name} is the model's embedding or head, which stay as they are"
                )
            # torch's own attention reads the weights of its layers without running them.
            if not isinstance(module, nn.Linear) or isinstance(parent, nn.MultiheadAttention):
                raise ConfigurationError(
                    f"{source}: {name} is a {type(module).__name__}; an adapter can change plain "
                    "linear layers only"
                )
            expected = (module.in_features, module.out_features)
            given = (weights.down.shape[1], weights.up.shape[0])
            if given != expected:
                raise ConfigurationError(
                    f"{source}: {name} takes {given[0]} and gives {given[1]} features in the "
                    f"adapter, {expected[0]} and {expected[1]} in the model"
                )
            layers[name] = weights.to(module.weight.device, module.weight.dtype)
        outside = any(not name.startswith(self._decoder_layers) for name in layers)
        return replace(adapter, layers=layers, touches_encoders=outside)

    def attach(self, adapter: LoraAdapter) -> None:
        """Prepares the layers of a fitted adapter; a model without adapters has nothing to ask."""
        for name in adapter.layers.keys() - self._hooked:
            self._model.get_submodule(name).register_forward_hook(partial(self._add, name))
            self._hooked.add(name)

    @contextmanager
    def applied(self, groups: Sequence[AdapterRows], num_tokens: int = 0) -> Iterator[None]:
        """Applies adapters to what runs inside.

        Args:
            groups: Rows of each; a row may be of several, whose changes add up.
            num_tokens: Rows of the batch.
        """
        self._active, self._num_tokens = groups, num_tokens
        try:
            yield
        finally:
            self._active = ()

    def _add(
        self, name: str, module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor
    ) -> torch.Tensor | None:
        active = [(group, group.adapter.layers.get(name)) for group in self._active]
        active = [(group, weights) for group, weights in active if weights is not None]
        if not active:
            return None
        (given,) = inputs
        for group, weights in active:
            assert weights is not None
            if group.mask is not None:
                output = output + weights.delta(given) * group.mask
                continue
            if group.rows is None:
                output = output + weights.delta(given)
                continue
            if given.numel() // given.shape[-1] != self._num_tokens:
                raise EngineError(
                    f"{name} runs over {list(given.shape)[:-1]} rows where the step has "
                    f"{self._num_tokens}: no adapter can be applied to it"
                )
            # The output is nobody's yet but ours, as the layer has just made it.
            flat = output.view(self._num_tokens, -1)
            changed = weights.delta(given.view(self._num_tokens, -1)[group.rows])
            flat.index_add_(0, group.rows, changed)
        return output

    @staticmethod
    def _linear_layers(modules: dict[str, nn.Module]) -> list[str]:
        return [name for name, module in modules.items() if isinstance(module, nn.Linear)]
