# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Where a request should go: what each replica has cached, weighed against what each has to do.

Knows names of blocks and counts tokens; nothing of prompts, sockets or models.
"""
