# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters by the names that callers give them; the engine knows them by their content."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.executor.executor import GenerationExecutor
from tensorrt_llm.executor.request import AdapterIdentity, LoRARequest


@dataclass(frozen=True)
class LoadedAdapter:
    """A name that requests may use.

    Attributes:
        name: The name.
        path: Folder that it was loaded from.
        identity: What the engine knows it by.
        created: When it was loaded, in seconds since 1970.
    """

    name: str
    path: str
    identity: AdapterIdentity
    created: int = field(default_factory=lambda: int(time.time()))


class AdapterRegistry:
    """Names of loaded adapters. Safe to use from several threads.

    Args:
        executor: The engine.
        max_adapters: Most adapters of different content at a time.
    """

    def __init__(self, executor: GenerationExecutor, max_adapters: int) -> None:
        self._executor = executor
        self._max = max_adapters
        # Held while a folder is read; looking a name up does not wait for it.
        self._lock = threading.Lock()
        self._loaded: dict[str, LoadedAdapter] = {}
        self._unloaded: set[str] = set()

    def get(self, name: str) -> LoadedAdapter | None:
        """The adapter of a name, None if there is none. Never waits."""
        return self._loaded.get(name)

    def was_unloaded(self, name: str) -> bool:
        """Whether a name stood for an adapter and stands for nothing now. Never waits."""
        return name in self._unloaded

    def all(self) -> list[LoadedAdapter]:
        """Every name, in order of loading."""
        return list(self._loaded.values())

    def load(self, name: str, path: str) -> LoadedAdapter:
        """Reads a folder and gives it a name. A name that has that folder already keeps it.

        Raises:
            RequestError: If the folder holds no adapter that can be applied, the name stands for
                another folder, or there are too many.
            EngineError: If the engine cannot answer.
        """
        with self._lock:
            path = os.path.abspath(path)
            present = self._loaded.get(name)
            if present is not None:
                if present.path != path:
                    raise RequestError(
                        f"{name!r} is loaded from another folder; unload it first", part="lora_name"
                    )
                return present
            try:
                identity = self._executor.load_adapter(path)
            except ConfigurationError as error:
                raise RequestError(str(error), part="lora_path") from error
            known = {adapter.identity for adapter in self._loaded.values()}
            if identity not in known and len(known) >= self._max:
                self._executor.unload_adapter(identity)
                raise RequestError(
                    f"{len(known)} adapters are loaded (lora_config.max_loras {self._max}); unload "
                    "one first",
                    part="lora_name",
                )
            adapter = LoadedAdapter(name, path, identity)
            self._loaded[name] = adapter
            self._unloaded.discard(name)
            return adapter

    def unload(self, name: str) -> LoadedAdapter:
        """Takes a name back; requests that run with it go on to their end.

        Raises:
            RequestError: If there is no such name.
            EngineError: If the engine cannot answer.
        """
        with self._lock:
            adapter = self._loaded.pop(name, None)
            if adapter is None:
                raise RequestError(f"no adapter {name!r} is loaded", part="lora_name")
            self._unloaded.add(name)
            if adapter.identity not in {other.identity for other in self._loaded.values()}:
                self._executor.unload_adapter(adapter.identity)
            return adapter

    def resolve(self, request: LoRARequest | None) -> AdapterIdentity | None:
        """The adapter that a request asks for, which is loaded if it is not yet.

        Raises:
            RequestError: As ``load``.
            EngineError: As ``load``.
        """
        if request is None:
            return None
        present = self._loaded.get(request.lora_name)
        if present is not None and not request.lora_path:
            return present.identity
        if not request.lora_path:
            raise RequestError(
                f"no adapter {request.lora_name!r} is loaded, and no folder is given",
                part="lora_request.lora_path",
            )
        return self.load(request.lora_name, request.lora_path).identity
