# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What ``trtllm-bench`` measures. Needs nothing but an installed package and a checkpoint."""
