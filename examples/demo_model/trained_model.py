# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The demo model in training: the stock modules, called for many conversations at once.

The stock class encodes pictures one by one and in the general way; here all are one crop, so the
same rows come out of one call. ``tests`` compare both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import Phi4MultimodalConfig, Phi4MultimodalForCausalLM
from transformers.audio_utils import mel_filter_bank

from examples.demo_model.batches import Batch
from examples.demo_model.pictures import COLOURS, IGNORED, PLACES, SHAPES
from examples.demo_model.sounds import NOTES

_CELL_CLASSES = (1 + len(SHAPES), 1 + len(COLOURS), 11, 1 + len(PLACES))
_SOUND_CLASSES = 11 + len(NOTES)


class TrainedModel(nn.Module):
    """The model with the heads of its auxiliary losses, which are left behind afterwards.

    Each picture row tells what its cell holds; the sound rows spell what is heard (CTC). Without
    these the decoder learns for long from rows that mean nothing yet.
    """

    mel_filters: torch.Tensor
    window: torch.Tensor

    def __init__(self, config: Phi4MultimodalConfig, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        # The library types the modules inside it as little as it can.
        vision: Any = config.vision_config
        audio: Any = config.audio_config
        self.lm: Any = Phi4MultimodalForCausalLM(config).float().eval()
        self.cell_heads = nn.ModuleList(
            nn.Linear(vision.hidden_size, classes) for classes in _CELL_CLASSES
        )
        self.sound_head = nn.Linear(audio.hidden_size, _SOUND_CLASSES)
        self._draw_weights()
        filters = mel_filter_bank(
            num_frequency_bins=257,
            num_mel_filters=80,
            min_frequency=0,
            max_frequency=7690,
            sampling_rate=16_000,
            triangularize_in_mel_space=True,
            mel_scale="kaldi",
        )
        self.register_buffer("mel_filters", torch.from_numpy(np.asarray(filters)).float(), False)
        self.register_buffer("window", torch.hamming_window(400, periodic=False), False)

    def _draw_weights(self) -> None:
        # The library's own start is far too large for towers of this size.
        depth = (2 * self.lm.config.num_hidden_layers) ** -0.5
        with torch.no_grad():
            for name, weight in self.lm.named_parameters():
                if "embed_tokens.weight" in name or "position_embedding" in name:
                    weight.normal_(0.0, 0.1)
                elif "bias_values" in name:
                    weight.zero_()
                elif "extensor" in name:
                    weight.normal_(0.0, 0.5)
                elif weight.ndim >= 2 and "head." not in name:
                    gain = depth if any(end in name for end in ("o_proj", "out_proj", "fc2")) else 1
                    weight.normal_(0.0, gain / weight[0].numel() ** 0.5)
                elif name.endswith("bias"):
                    weight.zero_()
                elif "img_processor.head" in name:
                    weight.zero_()  # pools into what nothing reads
            norm = self._sound.encoder.encoder_embedding
            # Log-mel features of these clips lie around 15.
            norm.global_mean.fill_(15.0)
            norm.global_invstd.fill_(0.25)

    @property
    def _picture(self) -> Any:
        return self.lm.model.embed_tokens_extend.image_embed

    @property
    def _sound(self) -> Any:
        return self.lm.model.embed_tokens_extend.audio_embed

    def log_mel(self, clips: torch.Tensor) -> torch.Tensor:
        """float32 ``[clips, samples]`` in -1..1 to ``[clips, frames, 80]``."""
        frames = clips.unfold(-1, 400, 160)
        before = torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
        spectrum = torch.fft.rfft((frames - 0.97 * before) * 32768 * self.window, n=512)
        power = spectrum.real.square() + spectrum.imag.square()
        return torch.log((power @ self.mel_filters).clamp(min=1.0))

    def picture_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """uint8-valued ``[pictures, 112, 112, 3]`` to ``[pictures, 4, 4, width]``."""
        values = (pixels.permute(0, 3, 1, 2) / 255 - 0.5) / 0.5
        tower = self._picture.img_processor
        everything = torch.ones(len(values), 8, 8, dtype=torch.bool, device=values.device)
        hidden = tower.embeddings(values, everything)
        for layer in tower.encoder.layers:
            # Without padding the stock attention of this tower is causal.
            hidden = layer(hidden, None, is_causal=True)
        plane = hidden.view(len(values), 8, 8, -1).permute(0, 3, 1, 2)
        return F.avg_pool2d(plane, 2).permute(0, 2, 3, 1)

    def picture_rows(self, features: torch.Tensor) -> torch.Tensor:
        """``[pictures, 4, 4, width]`` to the decoder's ``[pictures, 41, hidden]``."""
        count, side, _, width = features.shape
        embed = self._picture
        ends = embed.sub_img_feature_extensor.view(1, 1, 1, width).expand(count, side, 1, width)
        lines = torch.cat([features, ends.to(features.dtype)], dim=2).reshape(count, -1, width)
        between = embed.global_img_feature_extensor.expand(count, 1, width).to(features.dtype)
        rows = torch.cat([lines, between, lines], dim=1)
        return embed.img_projection_down(F.gelu(embed.img_projection_up(rows)))

    def sound_features(self, clips: torch.Tensor) -> torch.Tensor:
        """float32 ``[clips, samples]`` to ``[clips, rows, width]``."""
        with torch.autocast(clips.device.type, enabled=False):
            features = self.log_mel(clips)
        return self._sound.encoder(features, None)

    def sound_rows(self, features: torch.Tensor, beside_picture: torch.Tensor) -> torch.Tensor:
        """``[clips, rows, width]`` to the decoder's ``[clips, rows, hidden]``."""
        embed = self._sound
        alone = embed.down_proj_for_speech(F.gelu(embed.up_proj_for_speech(features)))
        beside = embed.down_proj_for_vision_speech(
            F.gelu(embed.up_proj_for_vision_speech(features))
        )
        return torch.where(beside_picture[:, None, None], beside, alone)

    def forward(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Losses by name; ``answer`` is the one that counts, ``right`` the share of answers."""
        logits, targets, asked, pictures, sounds, counts = self._answer(batch)
        return {
            "answer": F.cross_entropy(logits, targets),
            "cells": self._cell_loss(pictures, batch.cells),
            "heard": self._ctc_loss(sounds, counts, batch),
            "right": _all_right(logits, targets, asked).float().mean(),
        }

    def exact_answers(self, batch: Batch) -> torch.Tensor:
        """bool ``[batch]``: whether every answer of a conversation would be written as it is."""
        logits, targets, asked, *_ = self._answer(batch)
        return _all_right(logits, targets, asked)

    def _answer(self, batch: Batch) -> tuple[torch.Tensor, ...]:
        """Logits and targets of the answers' tokens, where they are, and the encoders' rows."""
        noise = torch.rand(len(batch.pictures), 1, 1, 1, device=batch.tokens.device) * 8
        pixels = batch.pictures.float() + noise * torch.randn_like(batch.pictures.float())
        pictures = self.picture_features(pixels.clamp(0, 255).round())
        waves = batch.clips.float()
        waves = waves + batch.noise[:, None] * torch.randn_like(waves)
        waves = waves.clamp(-32768, 32767) / 32768
        sounds, counts = self._clips_alone(waves, batch.clip_lengths)
        real = torch.arange(sounds.shape[1], device=counts.device) < counts[:, None]

        embeds = self.lm.model.embed_tokens(batch.tokens)
        config = self.lm.config
        for token, rows in (
            (config.vision_config.image_token_id, self.picture_rows(pictures)),
            (
                config.audio_config.audio_token_id,
                self.sound_rows(sounds, batch.beside_picture)[real],
            ),
        ):
            where = (batch.tokens == token)[..., None].expand_as(embeds)
            embeds = embeds.masked_scatter(where, rows.to(embeds.dtype))
        hidden = self.lm.model(inputs_embeds=embeds, use_cache=False).last_hidden_state
        asked = batch.targets != IGNORED
        logits, targets = self.lm.lm_head(hidden[asked]).float(), batch.targets[asked]
        return logits, targets, asked, pictures, sounds, counts

    def _clips_alone(
        self, waves: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Clips of each length by themselves: ``[clips, rows, width]`` and how many are real."""
        groups = []
        for length in lengths.unique().tolist():
            chosen = (lengths == length).nonzero()[:, 0]
            groups.append((chosen, self.sound_features(waves[chosen, :length])))
        most, width = max(part.shape[1] for _, part in groups), groups[0][1].shape[2]
        features = groups[0][1].new_zeros(len(waves), most, width)
        counts = torch.zeros_like(lengths)
        for chosen, part in groups:
            features[chosen, : part.shape[1]] = part
            counts[chosen] = part.shape[1]
        return features, counts

    def _cell_loss(self, features: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        losses = [
            F.cross_entropy(
                head(features).float().flatten(0, 2),
                cells[:, i].flatten(),
                ignore_index=IGNORED,
            )
            for i, head in enumerate(self.cell_heads)
        ]
        return torch.stack(losses).sum()

    def _ctc_loss(self, features: torch.Tensor, counts: torch.Tensor, batch: Batch) -> torch.Tensor:
        scores = self.sound_head(features).float().log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(
            scores, batch.heard, counts, batch.heard_lengths, blank=0, zero_infinity=True
        )


def _all_right(logits: torch.Tensor, targets: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
    wrong = (logits.argmax(-1) != targets).float()
    by_answer = torch.zeros(asked.shape, device=wrong.device).masked_scatter(asked, wrong)
    return by_answer.sum(1) == 0
