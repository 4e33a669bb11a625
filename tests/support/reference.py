# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The unmodified transformers model, one request at a time: what every answer is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from tensorrt_llm.inputs.data import ProcessedItem, ProcessedPrompt


@dataclass(frozen=True)
class Answer:
    """Greedy tokens and the float32 logits ``[len(tokens), vocab_size]`` they were taken from."""

    tokens: list[int]
    logits: torch.Tensor


class ReferenceModel:
    """Stock ``generate`` with its own attention and its own KV cache."""

    def __init__(self, checkpoint: Path) -> None:
        config = transformers.AutoConfig.from_pretrained(checkpoint)
        model_class = getattr(transformers, config.architectures[0])
        self.model = model_class.from_pretrained(
            checkpoint, dtype=torch.float32, attn_implementation="sdpa"
        ).eval()

    @torch.no_grad()
    def greedy(self, prompt: ProcessedPrompt, count: int) -> Answer:
        """Exactly ``count`` greedy tokens."""
        kinds = [item.modality for item in prompt.items]
        ids = torch.from_numpy(prompt.token_ids).long()[None]
        inputs: dict[str, torch.Tensor] = {"input_ids": ids}
        if len(set(kinds)) == len(kinds):
            for item in prompt.items:
                inputs |= item.encoder_inputs
        else:
            inputs = {"inputs_embeds": self._embeddings(ids, prompt)}
        output = self.model.generate(
            **inputs,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
            eos_token_id=None,
        )
        return Answer(output.sequences[0, -count:].tolist(), torch.cat(output.logits))

    def _embeddings(self, ids: torch.Tensor, prompt: ProcessedPrompt) -> torch.Tensor:
        """Several items of one kind: stock encoders on each alone, since stock padding of clips
        of unequal length leaks into the shorter one."""
        embeds = self.model.get_input_embeddings()(ids)
        for item in prompt.items:
            at = torch.cat([torch.arange(r.position, r.position + r.length) for r in item.runs])
            embeds[0, at] = self._rows(item, ids[:, at])
        return embeds

    def _rows(self, item: ProcessedItem, placeholders: torch.Tensor) -> torch.Tensor:
        encoders = self.model.model.embed_tokens_extend
        encoder = encoders.image_embed if item.modality == "image" else encoders.audio_embed
        blank = torch.zeros(*placeholders.shape, self.model.config.hidden_size)
        return encoder(placeholders, blank, **item.encoder_inputs, **item.encoder_kwargs)[0]
