# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of what loads and names adapters."""

from __future__ import annotations

from pydantic import Field

from tensorrt_llm.serve.openai_protocol import RequestBody


class LoadAdapterRequest(RequestBody):
    """Body of ``POST /v1/load_lora_adapter``."""

    lora_name: str = Field(min_length=1, description="Model name that requests shall use.")
    lora_path: str = Field(min_length=1, description="Folder on the server, as PEFT saves it.")


class UnloadAdapterRequest(RequestBody):
    """Body of ``POST /v1/unload_lora_adapter``."""

    lora_name: str = Field(min_length=1, description="Name that was loaded.")
    lora_int_id: int | None = Field(None, description="Accepted for compatibility, says nothing.")
