# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A running executor and short ways to ask it."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tensorrt_llm.executor.executor import GenerationExecutor
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.executor.ipc import FOLDER_PREFIX
from tensorrt_llm.executor.proxy import GenerationExecutorProxy
from tensorrt_llm.executor.request import DEFAULT_PRIORITY, AdapterIdentity, GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.executor.worker import GenerationExecutorWorker
from tensorrt_llm.inputs.data import DeferredInputs, ProcessedPrompt
from tensorrt_llm.llmapi.checkpoint import load_tokenizer
from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.sampling_params import SamplingParams


@contextmanager
def running(
    checkpoint: Path,
    *,
    block_reuse: bool = True,
    own_process: bool = False,
    host: HostProcess | None = None,
    **options: Any,
) -> Iterator[Any]:
    """An executor on a checkpoint; options are those of ``LlmArgs``, ``kv_*`` go to the cache.

    The engine runs in a thread here, for tests that look inside, unless ``own_process`` is set, or
    a ``host`` is given that forks it.
    """
    cache = {name[3:]: options.pop(name) for name in list(options) if name.startswith("kv_")}
    cache.setdefault("max_tokens", 16_384)
    args = LlmArgs(
        model=str(checkpoint),
        kv_cache_config={"enable_block_reuse": block_reuse, **cache},
        enable_chunked_prefill=options.pop("enable_chunked_prefill", True),
        device=options.pop("device", "cpu"),
        **options,
    )
    tokenizer = load_tokenizer(None, str(checkpoint))
    executor: GenerationExecutor
    if own_process or host is not None:
        executor = GenerationExecutorProxy(args, tokenizer, host)
    else:
        executor = GenerationExecutorWorker(args, tokenizer)
    try:
        yield executor
    finally:
        executor.shutdown()


def start(
    executor: GenerationExecutor,
    prompt: ProcessedPrompt,
    count: int,
    *,
    cache_salt: str | None = None,
    priority: float = DEFAULT_PRIORITY,
    timeout: float | None = None,
    adapter: AdapterIdentity | None = None,
    **sampling: Any,
) -> GenerationResult:
    """Submits a greedy request for exactly ``count`` tokens with their logits."""
    options = {"max_tokens": count, "ignore_eos": True, "return_generation_logits": True}
    params = SamplingParams(**{**options, **sampling})
    return executor.submit(
        GenerationRequest(prompt, params, cache_salt, priority, timeout, adapter=adapter)
    )


@contextmanager
def held(executor: GenerationExecutor) -> Iterator[None]:
    """What is submitted inside arrives at the loop at the same time, when the block ends."""
    gate = threading.Event()
    waiting = executor._engine.call(gate.wait)
    try:
        yield
    finally:
        gate.set()
        waiting.result(timeout=60)


def total(iterations: list[dict[str, Any]], name: str) -> int:
    """Sum of an in-flight batching statistic over iterations."""
    return sum(iteration["inflightBatchingStats"][name] for iteration in iterations)


def deferred(prompt: ProcessedPrompt, load: Callable[[int], Any] | None = None) -> ProcessedPrompt:
    """The prompt with encoder inputs that are made on demand; ``load`` may wait, count or fail."""

    def inputs(index: int) -> DeferredInputs:
        def make() -> Any:
            if load is not None:
                load(index)
            return prompt.items[index].encoder_inputs

        return DeferredInputs(make)

    items = tuple(
        dataclasses.replace(item, encoder_inputs=inputs(index))
        for index, item in enumerate(prompt.items)
    )
    return dataclasses.replace(prompt, items=items)


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
    """Waits for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)


def names_left() -> set[Path]:
    """What engines could leave behind that has a name: shared memory, temporary folders.

    Other programs of ours may run on this machine: ask for what is new.
    """
    folders = Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")
    return {*Path("/dev/shm").iterdir(), *folders}


def text_prompt(ids: list[int] | np.ndarray) -> ProcessedPrompt:
    """A prompt without media."""
    return ProcessedPrompt(np.asarray(ids, np.int32))


def _assert_books_closed(engine: Any) -> None:
    manager = engine._kv_cache.impl
    manager.check_integrity()
    stats = manager.stats()
    assert (stats.reserved_num_blocks, stats.pending_copies, manager.num_sequences) == (0, 0, 0)
    assert len(engine._burst._running) == engine._burst.num_waiting == 0


def assert_idle(executor: GenerationExecutor) -> dict[str, Any]:
    """Nothing runs and nothing is held; gives the snapshot that shows it."""
    state = executor.snapshot()
    assert (state["numActiveRequests"], state["numQueuedRequests"]) == (0, 0)
    assert state["kvCacheStats"]["usedNumBlocks"] == 0
    store = state["multimodalStats"]["embeddingStore"]
    assert (store["pinnedCount"], store["lentBytes"]) == (0, 0)
    assert store["currentBytes"] <= store["maxBytes"]
    if isinstance(executor, GenerationExecutorWorker):
        executor._engine.call(lambda: _assert_books_closed(executor._engine)).result()
    return state
