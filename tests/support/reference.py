# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The unmodified transformers model, one request at a time: what every answer is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from support.media import VIDEO_RATE
from tensorrt_llm.inputs.data import ProcessedItem, ProcessedPrompt

FRAMES_OF_GROUP = 2


@dataclass(frozen=True)
class Answer:
    """Greedy tokens and the float32 logits ``[len(tokens), vocab_size]`` they were taken from."""

    tokens: list[int]
    logits: torch.Tensor


def assert_same_logits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal but for rounding, which grows with the logits and differs between processors.

    The stock model's own logits, of up to 37, are up to 2.0e-4 away from those of the same weights
    in float64, and so are ours; another item's blocks make a difference of over 0.05.
    """
    most = max(1e-4, 5e-6 * float(expected.abs().max()))
    torch.testing.assert_close(actual, expected, atol=most, rtol=0)


class ReferenceModel:
    """Stock ``generate`` with its own attention and its own KV cache.

    Args:
        checkpoint: Folder.
        video_rate: Frames taken a second, of every video that it is asked about.
    """

    def __init__(self, checkpoint: Path, video_rate: float = VIDEO_RATE) -> None:
        self._group_seconds = FRAMES_OF_GROUP / video_rate
        config = transformers.AutoConfig.from_pretrained(checkpoint)
        model_class = getattr(transformers, config.architectures[0])
        self.model = model_class.from_pretrained(
            checkpoint, dtype=torch.float32, attn_implementation="sdpa"
        ).eval()
        # By object, which is kept: what tells prompts apart must not come from the product.
        self._answers: dict[tuple[int, int], tuple[ProcessedPrompt, Answer]] = {}

    def greedy(self, prompt: ProcessedPrompt, count: int) -> Answer:
        """Exactly ``count`` greedy tokens. Asked again about one prompt, it remembers."""
        key = (id(prompt), count)
        if key not in self._answers:
            self._answers[key] = (prompt, self._greedy(prompt, count))
        return self._answers[key][1]

    @torch.no_grad()
    def _greedy(self, prompt: ProcessedPrompt, count: int) -> Answer:
        ids = torch.from_numpy(prompt.token_ids).long()[None]
        self._forget()
        output = self.model.generate(
            **self.inputs(prompt),
            attention_mask=torch.ones_like(ids),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
            eos_token_id=None,
        )
        return Answer(output.sequences[0, -count:].tolist(), torch.cat(output.logits))

    def inputs(self, prompt: ProcessedPrompt) -> dict[str, torch.Tensor]:
        """What the stock model takes for a prompt."""
        ids = torch.from_numpy(prompt.token_ids).long()[None]
        kinds = [item.modality for item in prompt.items]
        if self.model.config.model_type == "phi4_multimodal" and len(set(kinds)) < len(kinds):
            return {"inputs_embeds": self._embeddings(ids, prompt)}
        inputs: dict[str, list[torch.Tensor]] = {}
        for item in prompt.items:
            for name, tensor in item.encoder_inputs.items():
                inputs.setdefault(name, []).append(tensor)
        # Where a picture is several, a prompt's pictures stand in one row of a batch.
        axis = 1 if self.model.config.model_type in ("idefics3", "smolvlm") else 0
        if self.model.config.model_type == "llava_onevision" and "pixel_values" in inputs:
            # Pictures of fewer tiles are filled up with empty ones, which the model drops again.
            inputs["pixel_values"] = _filled_up(inputs["pixel_values"])
        joined = {name: torch.cat(tensors, axis) for name, tensors in inputs.items()}
        config = self.model.config
        videos = kinds.count("video")
        seconds = torch.full((videos,), self._group_seconds)
        if config.model_type.endswith("_vl") and {"image", "video"} & set(kinds):
            joined["mm_token_type_ids"] = (ids == config.image_token_id).int() + 2 * (
                ids == config.video_token_id
            ).int()
        if config.model_type == "qwen2_5_omni_thinker" and videos:
            joined["video_second_per_grid"] = seconds
            joined["use_audio_in_video"] = joined.pop("is_sound", None) is not None
        if config.model_type == "qwen2_5_vl" and videos:
            joined["second_per_grid_ts"] = seconds
        if self.model.config.model_type == "gemma3":
            joined["token_type_ids"] = (ids == self.model.config.image_token_id).int()
        return {"input_ids": ids, **joined}

    def _forget(self) -> None:
        """Some stock models keep positions of the last request and use them for the next."""
        if hasattr(self.model.model, "rope_deltas"):
            self.model.model.rope_deltas = None

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


def _filled_up(pictures: list[torch.Tensor]) -> list[torch.Tensor]:
    """Each ``[1, tiles, ...]`` with zeros behind, so that all have as many tiles."""
    most = max(picture.shape[1] for picture in pictures)
    return [
        torch.cat([picture, picture.new_zeros(1, most - picture.shape[1], *picture.shape[2:])], 1)
        for picture in pictures
    ]
