# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Text-only models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorrt_llm.errors import UnsupportedModalityError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.registry import InputProcessor


class TextInputProcessor(InputProcessor):
    """Tokenises; refuses media."""

    def placeholder_token_id(self, modality: str) -> int:
        """There is none.

        Raises:
            UnsupportedModalityError: Always.
        """
        raise UnsupportedModalityError(modality, self.modalities)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """There is nothing to prepare.

        Raises:
            UnsupportedModalityError: Always.
        """
        raise UnsupportedModalityError(item.modality, self.modalities, part=item.part)
