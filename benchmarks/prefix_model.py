# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The brute-force model of prefixes that ``trtllm-bench`` uses, for the other scripts and tests."""

from __future__ import annotations

from tensorrt_llm.bench.prefix_model import PrefixModel, scope_of, token_keys

__all__ = ["PrefixModel", "scope_of", "token_keys"]
