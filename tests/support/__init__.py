# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What several tests share: checkpoints, media, reference models and a brute-force cache."""
