# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A small trained Phi-4-multimodal: its data, training, evaluation and weights."""
