# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters (LoRA): read from PEFT folders, applied to some rows of a step."""

from tensorrt_llm._torch.peft.adapter import LoraAdapter, LoraWeights
from tensorrt_llm._torch.peft.lora_layers import AdapterRows, LoraLayers
from tensorrt_llm._torch.peft.peft_folder import read_peft_folder

__all__ = ["AdapterRows", "LoraAdapter", "LoraLayers", "LoraWeights", "read_peft_folder"]
