# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The core paths whose instructions `check_regression.py` counts: the same work at every turn.

    python -m benchmarks.core_paths MARKS [PATH...]

runs under callgrind, where MARKS is `cpp/callgrindMarks.cpp` compiled. Each path is warmed up, then
taken `TURNS` times and twice as often. The difference between both is what so many turns take,
without the calls that mark and whatever happens once. Each path checks its answer at every turn.
"""

from __future__ import annotations

import ctypes
import gc
import io
import sys
import wave
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared_prefix import (
    IMAGE_POSITION,
    IMAGE_ROWS,
    PROMPT_BLOCKS,
    PROMPT_LENGTH,
    TOKENS_PER_BLOCK,
    Prompts,
)

# Python rewrites the code that it has run some times for the types that it met.
WARM_UP = 20
TURNS = 5
SEED = 11
DEMO_MODEL = Path(__file__).resolve().parents[1] / "examples" / "demo_model" / "checkpoint"

Work = Callable[[], None]


def check(right: bool) -> None:
    """Stops where a path did something else than it is counted for.

    Raises:
        RuntimeError: Then.
    """
    if not right:
        raise RuntimeError("a core path gave a wrong answer")


def prompts(kinds: int) -> list[tuple[Any, np.ndarray]]:
    """Media and int32 tokens of prompts of 4096 tokens with an image, no two beginning alike."""
    from tensorrt_llm.bindings import MediaRuns

    source = Prompts()
    chosen, tokens = source.draw(kinds)
    one = np.ones(1, np.int64)
    media = [
        MediaRuns(
            source.digests[[family]],
            np.ones(1, np.bool_),
            np.zeros(1, np.int32),
            one * IMAGE_POSITION,
            one * IMAGE_ROWS,
            one * IMAGE_ROWS,
        )
        for family in chosen
    ]
    tokens[:, 0] = np.arange(kinds)
    return list(zip(media, tokens, strict=True))


def block_keys() -> Work:
    """The keys of a prompt's blocks, each looked up: all of them are cached."""
    from tensorrt_llm.bindings import KVCacheManager, ReuseScope

    manager, scope = KVCacheManager(2 * PROMPT_BLOCKS, TOKENS_PER_BLOCK), ReuseScope()
    [(media, tokens)] = prompts(1)
    manager.add_sequence(0, tokens, media, scope, 1)
    manager.commit(0, PROMPT_LENGTH)

    def turn() -> None:
        check(manager.probe(tokens, media, scope) == PROMPT_LENGTH - TOKENS_PER_BLOCK)

    return turn


def manager_path(pool_blocks: int, kinds: int, cached: int) -> Work:
    """A sequence comes, is written and goes; ``kinds`` prompts take turns."""
    from tensorrt_llm.bindings import KVCacheManager, ReuseScope

    manager, scope, numbers = KVCacheManager(pool_blocks, TOKENS_PER_BLOCK), ReuseScope(), count()
    known = prompts(kinds)

    def serve(number: int) -> int:
        media, tokens = known[number % kinds]
        allocation = manager.add_sequence(number, tokens, media, scope, 1)
        manager.commit(number, PROMPT_LENGTH)
        manager.free_sequence(number)
        return allocation.cached_tokens if allocation is not None else -1

    for _ in range(kinds):
        serve(next(numbers))
    return lambda: check(serve(next(numbers)) == cached)


def full_hits() -> Work:
    """Everything but the last block is found."""
    return manager_path(2 * PROMPT_BLOCKS, 1, PROMPT_LENGTH - TOKENS_PER_BLOCK)


def evictions() -> Work:
    """Nothing is found, and each block takes the place of one that is cached."""
    return manager_path(2 * PROMPT_BLOCKS, 3, 0)


def prompt_digests() -> Work:
    """The index that tells which live requests begin alike."""
    from tensorrt_llm._torch.pyexecutor.scheduler import PromptContent

    prompt = media_prompt()
    blocks = len(prompt.token_ids) // TOKENS_PER_BLOCK
    return lambda: check(len(PromptContent.of(prompt, None, TOKENS_PER_BLOCK).chain) == blocks + 1)


def media_prompt() -> Any:
    """A processed prompt with an image whose encoder inputs are still to be made."""
    from tensorrt_llm.inputs.data import Digest, PlaceholderRun, ProcessedItem, ProcessedPrompt

    [(_, tokens)] = prompts(1)
    runs = (PlaceholderRun(IMAGE_POSITION, IMAGE_ROWS),)
    item = ProcessedItem("image", Digest(bytes(range(32))), runs, {})
    return ProcessedPrompt(tokens, (item,))


def wav_identity() -> Work:
    """A WAV of a second, from its bytes to its digest."""
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.inputs.media_io import MediaLoader
    from tensorrt_llm.inputs.multimodal_data import MediaHasher

    samples = np.random.default_rng(SEED).integers(-9000, 9000, 16_000).astype("<i2")
    with io.BytesIO() as file:
        with wave.open(file, "wb") as wav:
            wav.setnchannels(1)
            wav.setsampwidth(2)
            wav.setframerate(16_000)
            wav.writeframes(samples.tobytes())
        encoded = file.getvalue()
    loader = MediaLoader(MediaAccess(trusted=True), MediaHasher())
    first = loader.load("audio", encoded).payload_digest
    check(first is not None)
    return lambda: check(loader.load("audio", encoded).payload_digest == first)


def image_identity() -> Work:
    """A picture that comes as an array, to its digest."""
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.inputs.media_io import MediaLoader
    from tensorrt_llm.inputs.multimodal_data import MediaHasher

    pixels = np.random.default_rng(SEED).integers(0, 256, (224, 224, 3), np.uint8)
    loader = MediaLoader(MediaAccess(trusted=True), MediaHasher())
    first = loader.load("image", pixels).payload_digest
    check(first is not None)
    return lambda: check(loader.load("image", pixels).payload_digest == first)


def request_message() -> Work:
    """A request is packed and encoded by the door, decoded and unpacked by the engine."""
    import msgspec

    from tensorrt_llm.executor.executor import ResolvedRequest
    from tensorrt_llm.executor.messages import Submit, ToEngine
    from tensorrt_llm.executor.request import GenerationRequest
    from tensorrt_llm.sampling_params import SamplingParams

    sampling = SamplingParams(max_tokens=64, temperature=0.7, top_p=0.9, seed=5)
    resolved = ResolvedRequest(GenerationRequest(media_prompt(), sampling), 64, frozenset({2}))
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(ToEngine).decode

    def turn() -> None:
        message: Any = decode(encode(Submit.of(7, resolved)))
        arrived = message.resolved()
        check(arrived.request.sampling_params == sampling)
        check(len(arrived.request.prompt.token_ids) == PROMPT_LENGTH)

    return turn


def answer_message() -> Work:
    """What a turn brought 64 requests, from the engine to the door."""
    import msgspec

    from tensorrt_llm.executor.messages import ToDoor, Turn, Update
    from tensorrt_llm.executor.result import GenerationUpdate

    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(ToDoor).decode

    def turn() -> None:
        updates = [Update.of(number, GenerationUpdate((number,))) for number in range(64)]
        arrived: Any = decode(encode(Turn(9, 0, updates, [])))
        check([update.update() for update in arrived.updates][63].token_ids == (63,))

    return turn


class _Waiting:
    """A request as the scheduler sees it."""

    def __init__(self, num_to_write: int) -> None:
        self.num_to_write = num_to_write

    def largest_chunk(self, limit: int) -> int:
        return limit


def scheduler_step() -> Work:
    """A step is filled: 128 requests generate, 64 are in the context phase, 64 wait."""
    from tensorrt_llm._torch.pyexecutor.scheduler import Admission, MicroBatchScheduler

    scheduler: MicroBatchScheduler[_Waiting] = MicroBatchScheduler(256, 8192, True)
    generation = [_Waiting(1)] * 128
    context = [_Waiting(20 + 7 * n % 97) for n in range(64)]
    waiting = [_Waiting(30 + 5 * n % 61) for n in range(64)]

    def turn() -> None:
        batch = scheduler.schedule(generation, context, waiting, lambda _: Admission.ADMITTED)
        check((len(batch.generation), len(batch.context)) == (128, 128))

    return turn


def live_requests(options: Mapping[str, Any], number: int) -> list[Any]:
    """Requests that have answered some tokens."""
    from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
    from tensorrt_llm.executor.request import GenerationRequest
    from tensorrt_llm.inputs.data import ProcessedPrompt
    from tensorrt_llm.sampling_params import SamplingParams

    rng = np.random.default_rng(SEED)
    requests = []
    for request_id in range(number):
        prompt = ProcessedPrompt(rng.integers(0, 500, 60 + request_id).astype(np.int32))
        request = LlmRequest(
            request_id=request_id,
            request=GenerationRequest(prompt, SamplingParams(max_tokens=99, **options)),
            max_new_tokens=99,
            stop_token_ids=frozenset({2}),
            push=lambda update: None,
            seed=request_id,
        )
        request.output_ids = rng.integers(0, 500, 1 + request_id % 7).tolist()
        request.num_written = request.num_known - 1
        requests.append(request)
    return requests


def step_layout() -> Work:
    """A step of 32 requests in the generation phase is laid out as one flattened batch."""
    import torch

    from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest
    from tensorrt_llm._torch.pyexecutor.step_layout import StepLayout, chunks_of

    scheduled = [ScheduledRequest(request, 1) for request in live_requests({}, 32)]
    tables = np.arange(32 * 4, dtype=np.int32).reshape(32, 4)
    cpu = torch.device("cpu")

    def turn() -> None:
        chunks = chunks_of(scheduled)
        layout = StepLayout.of(
            chunks, tables, tokens_per_block=TOKENS_PER_BLOCK, position_axes=1, device=cpu
        )
        check(layout.num_tokens == 32)

    return turn


def sampling_pass() -> Work:
    """Tokens are drawn for 16 requests with a few options each."""
    import torch

    from tensorrt_llm._torch.pyexecutor.sampler import Sampled, Sampler

    options = {"temperature": 0.8, "top_k": 20, "presence_penalty": 0.5, "min_tokens": 20}
    requests = live_requests(options, 16)
    logits = torch.from_numpy(
        np.random.default_rng(SEED).standard_normal((16, 512)).astype(np.float32)
    )
    sampler = Sampler()

    def turn() -> None:
        check(all(isinstance(one, Sampled) for one in sampler.sample(logits, requests)))

    return turn


def chat_rows() -> Work:
    """A conversation with a picture, never the same, becomes token ids with exact rows."""
    from transformers import AutoTokenizer

    from tensorrt_llm.inputs.chat_template import MediaPart, TextPart
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.inputs.media_io import MediaLoader
    from tensorrt_llm.inputs.media_memo import MediaMemo
    from tensorrt_llm.inputs.multimodal_data import MediaHasher
    from tensorrt_llm.inputs.registry import create_input_processor
    from tensorrt_llm.llmapi.preprocessor import ChatOptions, Preprocessor

    hasher, numbers, options = MediaHasher(), count(), ChatOptions()
    tokenizer = AutoTokenizer.from_pretrained(DEMO_MODEL)
    processor = create_input_processor(str(DEMO_MODEL), tokenizer, hasher)
    preprocessor = Preprocessor(processor, tokenizer, len(tokenizer), None, MediaMemo())
    pixels = np.random.default_rng(SEED).integers(0, 256, (64, 64, 3), np.uint8)
    picture = MediaLoader(MediaAccess(trusted=True), hasher).load("image", pixels)
    words = "Look at the picture and say what you see. " * 8

    def turn() -> None:
        text = TextPart(f"{words}{next(numbers):06d}")
        messages = [{"role": "user", "content": [MediaPart("image", 0), text]}]
        prompt = preprocessor.process_chat(messages, [picture], options)
        check(len(prompt.items) == 1 and prompt.items[0].identity is not None)

    return turn


PATHS: dict[str, Callable[[], Work]] = {
    path.__name__: path
    for path in (
        block_keys,
        full_hits,
        evictions,
        prompt_digests,
        wav_identity,
        image_identity,
        request_message,
        answer_message,
        scheduler_step,
        step_layout,
        sampling_pass,
        chat_rows,
    )
}


def main(marks_file: str, *names: str) -> None:
    """Warms all paths up, then counts them."""
    marks = ctypes.CDLL(marks_file)
    turns = {name: PATHS[name]() for name in names or PATHS}
    for turn in turns.values():
        for _ in range(WARM_UP):
            turn()
    gc.collect()
    # When a collection comes depends on all that was made before it.
    gc.disable()
    marks.startCounting()
    for name, turn in turns.items():
        for factor in (1, 2):
            marks.forgetCounts()
            for _ in range(factor * TURNS):
                turn()
            marks.writeCounts(f"{name} {factor}".encode())
    marks.stopCounting()


if __name__ == "__main__":
    main(*sys.argv[1:])
