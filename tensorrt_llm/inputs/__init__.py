# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From what a user writes to what the engine runs.

| file | takes | gives |
|---|---|---|
| `data` | - | the values that pass between these files |
| `media_io` | URL, `data:` URI, path, bytes, PIL image, array | `MediaItem`, or one `MediaError` |
| `media_access`, `media_fetch` | path or URL, rules | encoded bytes, or `MediaBlockedError` |
| `media_decode`, `decode_pool` | encoded bytes, options, limits | canonical media |
| `image_form`, `audio_form`, `video_form` | encoded bytes or arrays | one canonical payload |
| `multimodal_data` | canonical media, processing context | 32-byte digests |
| `media_memo` | encoded bytes and options | digest and item of an earlier request |
| `mm_hashes` | media objects | digests by upstream's functions |
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
    from tensorrt_llm.inputs.media_memo import MediaMemo
    from tensorrt_llm.inputs.mm_hashes import (
        BaseModalityData,
        MMHashResult,
        VideoData,
        apply_mm_hashes,
        default_hasher,
        serialize_item,
    )
    from tensorrt_llm.inputs.multimodal import (
        MultimodalInput,
        MultimodalParams,
        MultimodalRuntimeData,
        hexdigest_to_int32,
        int32_to_hexdigest,
    )
    from tensorrt_llm.inputs.multimodal_data import AudioData, EmbeddingData, MediaHasher
    from tensorrt_llm.inputs.registry import (
        InputProcessor,
        create_input_processor,
        register_input_processor,
    )

_HOME = {
    "AudioData": "multimodal_data",
    "BaseModalityData": "mm_hashes",
    "EmbeddingData": "multimodal_data",
    "InputProcessor": "registry",
    "MMHashResult": "mm_hashes",
    "MediaAccess": "media_access",
    "MediaHasher": "multimodal_data",
    "MediaLoader": "media_io",
    "MediaMemo": "media_memo",
    "MultimodalInput": "multimodal",
    "MultimodalParams": "multimodal",
    "MultimodalRuntimeData": "multimodal",
    "PromptInputs": "data",
    "TextPrompt": "data",
    "TokensPrompt": "data",
    "VideoData": "mm_hashes",
    "apply_mm_hashes": "mm_hashes",
    "create_input_processor": "registry",
    "default_hasher": "mm_hashes",
    "hexdigest_to_int32": "multimodal",
    "int32_to_hexdigest": "multimodal",
    "prompt_inputs": "data",
    "register_input_processor": "registry",
    "serialize_item": "mm_hashes",
}

__all__ = [
    "AudioData",
    "BaseModalityData",
    "EmbeddingData",
    "InputProcessor",
    "MMHashResult",
    "MediaAccess",
    "MediaHasher",
    "MediaLoader",
    "MediaMemo",
    "MultimodalInput",
    "MultimodalParams",
    "MultimodalRuntimeData",
    "PromptInputs",
    "TextPrompt",
    "TokensPrompt",
    "VideoData",
    "apply_mm_hashes",
    "create_input_processor",
    "default_hasher",
    "hexdigest_to_int32",
    "int32_to_hexdigest",
    "prompt_inputs",
    "register_input_processor",
    "serialize_item",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return __all__
