# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A transformers model as the engine uses it: embeddings in, hidden states out, one flat batch.

Modelling stays transformers'; a family file adds only what transformers does not say. Families
register here by the ``model_type`` of their configuration; a text decoder needs no file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import torch
import transformers
from safetensors import SafetensorError
from transformers import PretrainedConfig, PreTrainedModel

from tensorrt_llm._torch.attention_backend import PAGED_ATTENTION, AttentionMetadata
from tensorrt_llm._torch.load_progress import load_stage
from tensorrt_llm._torch.models.rotary import pin_rotary
from tensorrt_llm._torch.models.self_check import check_scores, stock_scores
from tensorrt_llm._torch.peft import LoraAdapter, LoraLayers
from tensorrt_llm.errors import ConfigurationError


class DecoderModel:
    """A decoder-only model. Holds no per-request state.

    Attributes:
        modalities: Kinds of media it takes, beside text.
        bidirectional_modalities: Of these, the kinds whose rows attend to all rows of their run,
            so that a run is never split over steps.
        lora: Applies adapters to some rows of a step.
        mode_adapters: The checkpoint's own adapters by the mode that selects them (see
            ``ProcessedPrompt.adapter_mode``).

    Args:
        hf_model: The loaded transformers model, in evaluation mode on its device.
        max_seq_len: Longest sequence that will be run, in tokens.
    """

    modalities: tuple[str, ...] = ()
    bidirectional_modalities: frozenset[str] = frozenset()

    position_axes: int = 1
    """Axes of a rotary position: 1 where it is the index, 3 (time, height, width) for mrope."""

    def __init__(self, hf_model: PreTrainedModel, *, max_seq_len: int) -> None:
        self.hf_model = hf_model.eval()
        self.max_seq_len = max_seq_len
        self.text_config: PretrainedConfig = hf_model.config.get_text_config(decoder=True)
        _refuse_changed_scores(self.text_config)
        self.set_attention()
        self.lora = LoraLayers(hf_model, self._decoder_layers_name())
        self.mode_adapters: dict[str, LoraAdapter] = {}
        rotary = getattr(self.decoder, "rotary_emb", None)
        if rotary is not None:
            pin_rotary(rotary, max_seq_len)

    @classmethod
    def read_weights(
        cls, model_path: str, config: PretrainedConfig
    ) -> dict[str, torch.Tensor] | None:
        """The weights under transformers' names, for a layout that it does not read itself.

        Returns:
            None where transformers reads the folder.

        Raises:
            ConfigurationError: If they cannot be read.
        """
        return None

    def _decoder_layers_name(self) -> str:
        layers = getattr(self.decoder, "layers", self.decoder)
        return next(name for name, module in self.hf_model.named_modules() if module is layers)

    @property
    def decoder(self) -> torch.nn.Module:
        """The layers without head; takes ``inputs_embeds`` and ``position_ids``."""
        return self.hf_model.get_decoder()

    @property
    def embedding(self) -> torch.nn.Module:
        """Token embedding: int64 ``[n]`` to ``[n, hidden_size]``."""
        return self.hf_model.get_input_embeddings()

    @property
    def num_layers(self) -> int:
        """Decoder layers, each with its part of the KV pool."""
        return int(self.text_config.num_hidden_layers)

    @property
    def num_heads(self) -> int:
        """Query heads a layer."""
        return int(self.text_config.num_attention_heads)

    @property
    def num_kv_heads(self) -> int:
        """Key and value heads a layer."""
        heads = getattr(self.text_config, "num_key_value_heads", None)
        return int(heads or self.text_config.num_attention_heads)

    @property
    def head_dim(self) -> int:
        """Size of one head."""
        config = self.text_config
        dim = getattr(config, "head_dim", None)
        return int(dim or config.hidden_size // config.num_attention_heads)

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""
        return int(self.text_config.vocab_size)

    @property
    def hidden_size(self) -> int:
        """Width of an embedding row."""
        return int(self.text_config.hidden_size)

    @property
    def row_width(self) -> int:
        """Width of an encoder's row: ``hidden_size``, and more where ``layer_inputs`` takes any."""
        return self.hidden_size

    @property
    def dtype(self) -> torch.dtype:
        """Type of weights and activations."""
        return self.hf_model.dtype

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return self.hf_model.device

    def set_attention(self) -> None:
        """Makes the decoder's layers call our paged attention."""
        self.hf_model.set_attn_implementation(PAGED_ATTENTION)

    def forward(
        self,
        inputs_embeds: torch.Tensor,
        position_ids: torch.Tensor,
        metadata: AttentionMetadata,
        layer_inputs: Mapping[str, Any] = MappingProxyType({}),
    ) -> torch.Tensor:
        """Runs the decoder over a flattened batch.

        Args:
            inputs_embeds: ``[num_tokens, hidden_size]``.
            position_ids: int64 ``[position_axes, num_tokens]``.
            metadata: The step, for the attention.
            layer_inputs: Result of the method of that name, if the step holds rows of media.

        Returns:
            Hidden states ``[num_tokens, hidden_size]``.
        """
        # One axis is a batch of one; several go before the batch.
        batched = position_ids if self.position_axes == 1 else position_ids[:, None]
        output = self.decoder(
            inputs_embeds=inputs_embeds[None],
            position_ids=batched,
            use_cache=False,
            attn_metadata=metadata,
            **layer_inputs,
        )
        return output.last_hidden_state[0]

    def layer_inputs(self, is_media: torch.Tensor, extra: torch.Tensor) -> Mapping[str, Any]:
        """Arguments of the decoder for what rows hold beyond an embedding.

        Args:
            is_media: bool ``[num_tokens]``: which tokens of the batch are rows.
            extra: ``[number of them, row_width - hidden_size]``, in order.
        """
        return {}

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores of the next token: ``[n, hidden_size]`` to float32 ``[n, vocab_size]``."""
        return self.hf_model.get_output_embeddings()(hidden).float()


class MultimodalDecoderModel(DecoderModel):
    """A decoder with encoders in front of it."""

    def set_attention(self) -> None:
        """Paged attention for the decoder; the encoders keep torch's own."""
        self.hf_model.set_attn_implementation({"text_config": PAGED_ATTENTION})

    def check_modality(self, modality: str) -> None:
        """Raises a ValueError if there is no encoder for it."""
        if modality not in self.modalities:
            raise ValueError(
                f"no encoder for {modality!r}; there is one for: {', '.join(self.modalities)}"
            )

    @torch.no_grad()
    def encode(
        self, modality: str, encoder_inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        """Encodes one item alone, so that its rows depend on nothing beside it.

        Args:
            modality: One of ``modalities``.
            encoder_inputs: What the family's input processor made of the item; the family's class
                says what that is.
            encoder_kwargs: Further arguments that the processor resolved.

        Returns:
            Rows ``[num_rows, row_width]`` in the model's dtype and on its device.

        Raises:
            ValueError: If the model has no such modality.
        """
        self.check_modality(modality)
        inputs = {name: tensor.to(self.device) for name, tensor in encoder_inputs.items()}
        return self._encode(modality, inputs, **encoder_kwargs)

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        """``encode`` with inputs on the device: here of what is seen, as most models do it."""
        parts: Any = self.hf_model.model
        encode = parts.get_video_features if modality == "video" else parts.get_image_features
        (rows,) = encode(**inputs).pooler_output
        return rows


# What some decoders do to scores beyond what is done here, and the value that does nothing. Short
# sequences (see self_check) may show little of it.
_SCORE_CHANGES = {
    "attention_chunk_size": None,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "logit_scale": 1.0,
    "logits_scaling": 1.0,
}


def _refuse_changed_scores(config: PretrainedConfig) -> None:
    """Raises a ConfigurationError rather than let every answer be a little wrong."""
    for name, neutral in _SCORE_CHANGES.items():
        value = getattr(config, name, None)
        if value not in (None, neutral):
            raise ConfigurationError(
                f"a model of type {config.model_type!r} whose {name} is {value} cannot be run: "
                "scores are taken as they are"
            )


_ModelClass = TypeVar("_ModelClass", bound=type[DecoderModel])
_MODEL_CLASSES: dict[str, type[DecoderModel]] = {}


def register_model(*model_types: str) -> Callable[[_ModelClass], _ModelClass]:
    """Class decorator: this class runs checkpoints of these ``model_type``s.

    It is known in the process that registers it. For a class outside this package that has to be
    the engine's: see ``inputs/custom_modules.py``.
    """

    def register(model_class: _ModelClass) -> _ModelClass:
        for model_type in model_types:
            _MODEL_CLASSES[model_type] = model_class
        return model_class

    return register


def registered_models() -> Mapping[str, type[DecoderModel]]:
    """The registered families by ``model_type``, in order of registration. Not to be changed."""
    return MappingProxyType(_MODEL_CLASSES)


def load_model(
    model_path: str,
    config: PretrainedConfig,
    *,
    dtype: torch.dtype,
    device: torch.device,
    max_seq_len: int,
) -> DecoderModel:
    """Loads a checkpoint folder with the registered family, or as a text decoder.

    Nothing in the folder is executed.

    Raises:
        ConfigurationError: If transformers has no class of the checkpoint's architecture, the
            weights cannot be read, or a text decoder does not answer here as it does there.
    """
    architecture = (getattr(config, "architectures", None) or [""])[0]
    hf_class = getattr(transformers, architecture, None) if architecture else None
    if hf_class is None:
        raise ConfigurationError(
            f"{model_path}: no model class for architecture {architecture!r} "
            f"(model_type {config.model_type!r})"
        )
    model_class = _MODEL_CLASSES.get(config.model_type, DecoderModel)
    if model_class is DecoderModel and not architecture.endswith("ForCausalLM"):
        raise ConfigurationError(
            f"{model_path}: {architecture} is not a text decoder and no family is registered for "
            f"model_type {config.model_type!r}; registered: {', '.join(sorted(_MODEL_CLASSES))} "
            "(custom_module_dirs adds others)"
        )
    weights = model_class.read_weights(model_path, config)
    with load_stage("loading weights"):
        hf_model = _load_weights(hf_class, model_path, config, dtype, weights)
        hf_model.to(device)  # type: ignore[arg-type]
    if model_class is not DecoderModel:
        return model_class(hf_model, max_seq_len=max_seq_len)
    with load_stage("comparing the decoder with that of transformers"):
        expected = stock_scores(hf_model)
        model = model_class(hf_model, max_seq_len=max_seq_len)
        check_scores(model, expected)
    return model


def _load_weights(
    hf_class: type[PreTrainedModel],
    model_path: str,
    config: PretrainedConfig,
    dtype: torch.dtype,
    weights: dict[str, torch.Tensor] | None,
) -> PreTrainedModel:
    try:
        loaded: Any = hf_class.from_pretrained(
            model_path if weights is None else None,
            config=config,
            state_dict=weights,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            # They are refused below, where they can be named.
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, RuntimeError, ValueError, KeyError, SafetensorError) as error:
        raise ConfigurationError(f"{model_path}: cannot load weights: {error}") from error
    hf_model, info = loaded
    # transformers only warns here and goes on with random values: every answer would be noise.
    missing = sorted(info["missing_keys"])
    if missing:
        raise ConfigurationError(
            f"{model_path}: {len(missing)} weights are missing, the first is {missing[0]}"
        )
    unfit = sorted(info["mismatched_keys"])
    if unfit:
        name, stored, expected = unfit[0]
        raise ConfigurationError(
            f"{model_path}: {len(unfit)} weights are of another shape, the first is {name}: "
            f"{list(stored)}, the configuration says {list(expected)}"
        )
    hf_model.name_or_path = model_path
    return hf_model
