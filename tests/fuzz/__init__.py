# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Long runs over mutated inputs, and what the tests take from them."""
