# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Processed multimodal prompts, made by the real loader and the real input processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from support.media import RATE
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.registry import create_input_processor
from tensorrt_llm.inputs.video_data import VideoClip
from tensorrt_llm.llmapi.checkpoint import load_tokenizer


class PromptMaker:
    """Makes prompts for one checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        hasher = MediaHasher()
        self.tokenizer = load_tokenizer(None, str(checkpoint))
        self.loader = MediaLoader(MediaAccess(trusted=True), hasher)
        self.processor = create_input_processor(str(checkpoint), self.tokenizer, hasher)

    def __call__(self, text: str, *media: Any, **options: Any) -> ProcessedPrompt:
        """A prompt. Media in placeholder order: pictures are PIL images, videos are ``VideoClip``;
        clips are arrays at 16 kHz or pairs of samples and rate."""
        items = []
        for source in media:
            if isinstance(source, Image.Image):
                items.append(self.loader.load("image", source))
            elif isinstance(source, VideoClip):
                items.append(self.loader.load("video", source))
            else:
                sound = source if isinstance(source, tuple) else (np.asarray(source), RATE)
                items.append(self.loader.load("audio", sound))
        located = self.processor.locate_placeholders(text, items)
        return self.processor.process(located, items, options or None)
