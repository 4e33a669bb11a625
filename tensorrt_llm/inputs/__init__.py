# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From what a user writes to what the engine runs.

| file | takes | gives |
|---|---|---|
| `data` | - | the values that pass between these files |
| `media_io` | URL, `data:` URI, path, bytes, PIL image, array | `MediaItem`, or one `MediaError` |
| `media_access`, `media_fetch` | path or URL, rules | encoded bytes, or `MediaBlockedError` |
| `image_form`, `audio_form` | encoded bytes or arrays | canonical image or `AudioData` |
| `multimodal_data` | canonical media, processing context | 32-byte digests |
| `registry`, `processors/` | prompt and items | `ProcessedPrompt` with exact runs |
| `multimodal` | processed items | validated runs and digests, runtime slices |

Names are imported when they are first asked for, so that importing this package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorrt_llm.inputs.data import PromptInputs, TextPrompt, TokensPrompt, prompt_inputs
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.inputs.media_io import MediaLoader
    from tensorrt_llm.inputs.multimodal import (
        MultimodalInput,
        MultimodalParams,
        MultimodalRuntimeData,
    )
    from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher
    from tensorrt_llm.inputs.registry import (
        InputProcessor,
        create_input_processor,
        register_input_processor,
    )

_HOME = {
    "AudioData": "multimodal_data",
    "InputProcessor": "registry",
    "MediaAccess": "media_access",
    "MediaHasher": "multimodal_data",
    "MediaLoader": "media_io",
    "MultimodalInput": "multimodal",
    "MultimodalParams": "multimodal",
    "MultimodalRuntimeData": "multimodal",
    "PromptInputs": "data",
    "TextPrompt": "data",
    "TokensPrompt": "data",
    "create_input_processor": "registry",
    "prompt_inputs": "data",
    "register_input_processor": "registry",
}

__all__ = [
    "AudioData",
    "InputProcessor",
    "MediaAccess",
    "MediaHasher",
    "MediaLoader",
    "MultimodalInput",
    "MultimodalParams",
    "MultimodalRuntimeData",
    "PromptInputs",
    "TextPrompt",
    "TokensPrompt",
    "create_input_processor",
    "prompt_inputs",
    "register_input_processor",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return __all__
