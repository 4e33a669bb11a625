# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Version of this package; `pyproject.toml` carries the same number and a test compares them."""

from __future__ import annotations

__version__ = "0.1.0"
