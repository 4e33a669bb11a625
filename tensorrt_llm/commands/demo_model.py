# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-serve demo``: the trained demo model without its path."""

from __future__ import annotations

from pathlib import Path

from tensorrt_llm.errors import ConfigurationError

DEMO = "demo"
# Beside the package in the source tree. A wheel is a tenth as large without it.
_CHECKPOINT = Path(__file__).parents[2] / "examples" / "demo_model" / "checkpoint"


def is_demo(model: str) -> bool:
    """Whether a model's name means the demo model; a folder of that name comes first."""
    return model == DEMO and not Path(model).exists()


def demo_checkpoint() -> str:
    """The folder of the demo model.

    Raises:
        ConfigurationError: If this installation is not one of the source tree.
    """
    if not _CHECKPOINT.is_dir():
        raise ConfigurationError(
            "model: the demo model is part of the source tree (examples/demo_model/checkpoint), "
            "which this installation does not come from; give a checkpoint folder"
        )
    return str(_CHECKPOINT)
