# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

from benchmarks.null_engine import sent_now
from tensorrt_llm import LLM, SamplingParams
from tensorrt_llm.executor.host_process import HostProcess


def test_requests_go_the_real_way_and_their_time_is_told(llama_checkpoint: Path) -> None:
    with (
        HostProcess("benchmarks.null_engine") as host,
        LLM(str(llama_checkpoint), engine_host=host) as llm,
    ):
        sampling = [SamplingParams(max_tokens=count, seed=sent_now()) for count in (1, 5)]
        answers = llm.generate(["some words", "some more"], sampling, use_tqdm=False)
        assert [len(answer.outputs[0].token_ids) for answer in answers] == [1, 5]
        llm.generate("no time", SamplingParams(max_tokens=2, seed=7), use_tqdm=False)
        endless = llm.generate_async("on and on", SamplingParams(max_tokens=100, ignore_eos=True))
        endless.abort()
        assert endless.result(60).outputs[0].finish_reason == "cancelled"
        times = [row["toQueueMs"] for row in llm.get_stats()]
        assert len(times) == 2
        assert all(0 < time < 10_000 for time in times)
