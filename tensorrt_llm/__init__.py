# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A multimodal LLM serving engine whose KV block reuse is always on and safe.

An independent implementation that speaks NVIDIA TensorRT-LLM's language. The public names load on
first use, so that `import tensorrt_llm` costs milliseconds and pulls in neither Torch nor
transformers.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from tensorrt_llm.version import __version__

if TYPE_CHECKING:
    from tensorrt_llm.llmapi.llm import LLM
    from tensorrt_llm.llmapi.llm_args import KvCacheConfig
    from tensorrt_llm.llmapi.mm_encoder import MultimodalEncoder
    from tensorrt_llm.sampling_params import SamplingParams

__all__ = ["LLM", "KvCacheConfig", "MultimodalEncoder", "SamplingParams", "__version__"]

# Where each public name lives. Strings, so that nothing is imported before someone asks for it.
_HOMES = {
    "LLM": "tensorrt_llm.llmapi.llm",
    "KvCacheConfig": "tensorrt_llm.llmapi.llm_args",
    "MultimodalEncoder": "tensorrt_llm.llmapi.mm_encoder",
    "SamplingParams": "tensorrt_llm.sampling_params",
}


def _refuse_namesake() -> None:
    """Raises ImportError where NVIDIA's distribution, which has the same package, is there too."""
    try:
        namesake = metadata.version("tensorrt-llm")
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"NVIDIA's tensorrt-llm {namesake} is installed in this environment beside "
        f"tensorrt-llm-independent {__version__}. Both provide the package 'tensorrt_llm', so it "
        "would be chance which of them an import gets. Remove one (`pip uninstall tensorrt-llm`) "
        "or give each a virtual environment of its own."
    )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    # Kept, so that the second use is a plain attribute.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


_refuse_namesake()
