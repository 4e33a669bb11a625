# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The parts of ``examples/tiny_checkpoints.py``: one file a family, and what they share."""
