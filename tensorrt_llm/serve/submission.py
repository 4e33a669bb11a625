# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From a prepared prompt to a request in the engine."""

from __future__ import annotations

from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.llmapi.adapters import LoadedAdapter
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.openai_protocol import GenerationFields
from tensorrt_llm.serve.prompt_preparer import PromptPreparer, naming


class Submission:
    """Hands requests to the engine without holding up the event loop.

    Args:
        llm: The loaded model.
        prepare: Its threads take what takes a while.
    """

    def __init__(self, llm: LLM, prepare: PromptPreparer) -> None:
        self._llm = llm
        self._prepare = prepare

    async def __call__(self, request: GenerationRequest, part: str) -> GenerationResult:
        """Queues a request; mistakes name ``part`` of the body."""
        with naming(part):
            if any(item.inputs_at_hand for item in request.prompt.items):
                # They are copied on their way to the engine, which may take a while.
                return await self._prepare.in_thread(self._llm.submit, request)
            return self._llm.submit(request)


def request_of(
    body: GenerationFields,
    prompt: ProcessedPrompt,
    sampling: SamplingParams,
    adapter: LoadedAdapter | None,
) -> GenerationRequest:
    """The request that a body asks for, with its prompt prepared."""
    return GenerationRequest(
        prompt,
        sampling,
        body.cache_salt,
        body.priority,
        adapter=None if adapter is None else adapter.identity,
    )
