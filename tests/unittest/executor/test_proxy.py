# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engine in its own process: the same answers, and no way to lose a request silently."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from support.checkpoints import build_checkpoint
from support.engine import (
    assert_idle,
    deferred,
    names_left,
    running,
    start,
    text_prompt,
    wait_until,
)
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import (
    ConfigurationError,
    EngineDiedError,
    EngineError,
    EngineRestartingError,
    EngineStoppedError,
    LimitExceededError,
    QueueFullError,
)
from tensorrt_llm.executor import engine_process
from tensorrt_llm.executor.executor import GenerationExecutor
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.executor.ipc import Listener
from tensorrt_llm.executor.proxy import GenerationExecutorProxy
from tensorrt_llm.executor.worker import GenerationExecutorWorker
from tensorrt_llm.llmapi.llm_args import SINGLE_PROCESS_VARIABLE, LlmArgs

NEW = 5
IMAGE, AUDIO = "<|image|>", "<|audio|>"
TAIL = "<|end|><|assistant|>"
STALL_SECONDS = 6
# From the end of the process to the error of a request in it. Only a request that is forgotten
# takes so long: a busy machine must not look like one.
NOTICE_SECONDS = 60
ENGINE = {
    "stall_seconds": STALL_SECONDS,
    "max_restarts": 1000,
    "restart_delay_seconds": 0,
}


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def make(phi4mm_checkpoint) -> PromptMaker:
    return PromptMaker(phi4mm_checkpoint)


@pytest.fixture(scope="module", name="proxy")
def running_proxy(phi4mm_checkpoint) -> Iterator[GenerationExecutorProxy]:
    """One engine for most tests here; small steps, so that every phase lasts."""
    options = {"max_num_tokens": 48, "max_batch_size": 2, "engine_config": ENGINE}
    with running(phi4mm_checkpoint, own_process=True, **options) as executor:
        yield executor


def words(seed: int, length: int = 40):
    return text_prompt(np.random.default_rng(seed).integers(5, 1200, length))


def healthy(executor: GenerationExecutorProxy) -> GenerationExecutorProxy:
    wait_until(executor.is_healthy, "the engine is back")
    return executor


def assert_right(executor, reference: ReferenceModel, prompt) -> None:
    result = start(executor, prompt, NEW).result(timeout=60)
    assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens


def test_both_modes_give_the_same(phi4mm_checkpoint, make, proxy) -> None:
    """Tokens, log-probabilities, cached lengths and logits; cold, reused, with media."""
    lead = "<|user|>" + "Some shared words come first in this request. " * 8
    prompts = [
        make(lead + IMAGE + "What?" + TAIL, picture(1, 500, 300)),
        make(lead + IMAGE + "What?" + TAIL, picture(1, 500, 300)),
        make(lead + IMAGE + AUDIO + TAIL, picture(2), clip(2)),
        deferred(make(lead + IMAGE + " and more" + TAIL, picture(2))),
        make(lead + "Just words." + TAIL),
        words(3, 300),
    ]
    options = {"max_num_tokens": 48, "max_batch_size": 2}
    healthy(proxy).reset_reuse_state()
    with running(phi4mm_checkpoint, **options) as inside:
        assert isinstance(inside, GenerationExecutorWorker)
        assert proxy.model_info == inside.model_info
        for sampling in ({}, {"temperature": 0.8, "top_k": 20, "seed": 2**64 - 1}):
            for prompt in prompts:
                ours, theirs = (
                    start(executor, prompt, 8, logprobs=3, cache_salt="x", **sampling).result()
                    for executor in (proxy, inside)
                )
                assert ours.outputs[0].token_ids == theirs.outputs[0].token_ids
                assert ours.outputs[0].text == theirs.outputs[0].text
                assert ours.cached_tokens == theirs.cached_tokens
                assert ours.outputs[0].logprobs == theirs.outputs[0].logprobs
                assert torch.equal(
                    ours.outputs[0].generation_logits, theirs.outputs[0].generation_logits
                )
        assert ours.cached_tokens > 0
        states = [assert_idle(executor) for executor in (proxy, inside)]
        for key in ("numActiveRequests", "numQueuedRequests", "numRequestsWaitingForItems"):
            assert states[0][key] == states[1][key] == 0
        counts = [state["kvCacheStats"]["freeNumBlocks"] for state in states]
        assert counts[0] == counts[1]
        assert [len(executor.iteration_stats()) > 0 for executor in (proxy, inside)] == [True] * 2


def test_positions_on_several_axes_travel(checkpoint_root, engine_host) -> None:
    """A family whose tokens have other positions than their index, and more than one each."""
    checkpoint = build_checkpoint("qwen2_vl", checkpoint_root)
    make = PromptMaker(checkpoint)
    mark = "<|vision_start|><|image_pad|><|vision_end|>"
    prompts = [
        make(f"Compare {mark} with {mark} in one word.", picture(1), picture(4, 300, 90)),
        deferred(make(f"Compare {mark} with {mark} in two.", picture(4, 300, 90), picture(1))),
        words(3, 60),
    ]
    assert prompts[0].positions.shape[0] > 1 and prompts[0].position_delta != 0
    options = {"max_num_tokens": 48}
    with (
        running(checkpoint, host=engine_host, **options) as outside,
        running(checkpoint, **options) as inside,
    ):
        for prompt in (*prompts, prompts[0]):
            ours, theirs = (start(one, prompt, 12).result() for one in (outside, inside))
            assert ours.outputs[0].token_ids == theirs.outputs[0].token_ids
            assert ours.cached_tokens == theirs.cached_tokens
            assert torch.equal(
                ours.outputs[0].generation_logits, theirs.outputs[0].generation_logits
            )
        assert ours.cached_tokens == len(prompts[0]) - 1
        assert_idle(outside)


def test_the_environment_chooses_the_mode(llama_checkpoint, monkeypatch) -> None:
    monkeypatch.setenv(SINGLE_PROCESS_VARIABLE, "1")
    executor = GenerationExecutor.create(LlmArgs(model=str(llama_checkpoint)), None)
    assert isinstance(executor, GenerationExecutorWorker)
    executor.shutdown()


def test_what_is_asked_of_it_works_as_in_one_process(proxy, reference) -> None:
    healthy(proxy)
    with pytest.raises(LimitExceededError, match="max_seq_len"):
        start(proxy, words(1, proxy.model_info.max_seq_len), 1)
    result = start(proxy, words(2), 4000)
    next(iter(result))
    assert proxy.snapshot()["numActiveRequests"] == 1
    result.abort()
    assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
    assert proxy.reset_reuse_state() > 0
    assert proxy.iteration_stats()[-1]["kvCacheStats"]["usedNumBlocks"] > 0
    assert proxy.iteration_stats() == []
    assert start(proxy, words(2), NEW).result(timeout=60).cached_tokens == 0
    assert_right(proxy, reference, words(2))
    assert_idle(proxy)


def test_many_cancels_leave_nothing(proxy, reference) -> None:
    healthy(proxy)
    results = [start(proxy, words(seed, 30 + seed), 3000) for seed in range(60)]
    for number, result in enumerate(results):
        if number % 3 == 0:
            next(iter(result)) if number == 0 else None
        result.abort()
        result.abort()
    for result in results:
        assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
    wait_until(lambda: not proxy.snapshot()["numActiveRequests"], "all have left")
    assert_idle(proxy)
    assert proxy._results == {}
    assert_right(proxy, reference, words(7))


def assert_all_fail(results, seconds: float) -> None:
    """Every one gets the error that says so, in time."""
    deadline = time.monotonic() + seconds
    for result in results:
        with pytest.raises(EngineDiedError, match="please send it again"):
            result.result(timeout=max(deadline - time.monotonic(), 0.01))


def in_generation(proxy, make) -> list:
    results = [start(proxy, words(seed), 3000) for seed in range(2)]
    for result in results:
        next(iter(result))
    return results


def in_context(proxy, make) -> list:
    # So many tokens that none has ended when the engine is killed.
    results = [start(proxy, words(5, 6000), 2000), start(proxy, words(6), 3000)]
    wait_until(lambda: proxy.snapshot()["numActiveRequests"] == 2, "they run")
    return results


def queued(proxy, make) -> list:
    results = [start(proxy, words(seed), 3000) for seed in range(5)]
    wait_until(lambda: proxy.snapshot()["numQueuedRequests"] == 3, "three wait")
    return results


def waiting_for_an_item(proxy, make) -> list:
    gate = threading.Event()
    prompt = make(f"<|user|>{IMAGE}?{TAIL}", picture(61))
    held = start(proxy, deferred(prompt, lambda _: gate.wait(60)), NEW, cache_salt="w")
    wait_until(lambda: proxy.snapshot()["numRequestsWaitingForItems"] == 1, "it waits")
    threading.Timer(1.0, gate.set).start()  # the item comes when the engine is another one
    return [held, start(proxy, words(8), 3000)]


def just_submitted(proxy, make) -> list:
    prompt = make(f"<|user|>{IMAGE}{AUDIO}?{TAIL}", picture(62, 900, 700), clip(62, 8.0))
    return [start(proxy, prompt, 3000, cache_salt=str(time.time())) for _ in range(4)]


@pytest.mark.parametrize(
    "phase", [in_generation, in_context, queued, waiting_for_an_item, just_submitted]
)
def test_an_engine_that_is_killed_fails_what_it_had_and_comes_back(
    proxy, make, reference, phase: Callable[..., list]
) -> None:
    results = phase(healthy(proxy), make)
    killed = proxy.engine_pid
    began = time.monotonic()
    os.kill(killed, signal.SIGKILL)
    assert_all_fail(results, NOTICE_SECONDS)
    healthy(proxy)
    print(f"recovered after {time.monotonic() - began:.2f} s")
    assert proxy.engine_pid != killed
    for prompt in (words(9), make(f"<|user|>{IMAGE}?{TAIL}", picture(61))):
        assert_right(proxy, reference, prompt)
    assert_idle(proxy)
    assert proxy._results == {}


def test_an_engine_that_is_killed_while_it_loads_comes_back_too(
    proxy, reference, monkeypatch
) -> None:
    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: proxy.engine_pid not in (None, pid), "another is started")

    kill(healthy(proxy).engine_pid)
    # The one after the next is told what to load when we have looked, and not before.
    gate, killed, tell = threading.Event(), proxy.engine_pid, proxy._start_message

    def tell_late() -> Any:
        assert proxy.engine_pid == killed or gate.wait(60)
        return tell()

    monkeypatch.setattr(proxy, "_start_message", tell_late)
    kill(killed)
    assert not proxy.is_healthy(), "it is loading still"
    with pytest.raises(EngineRestartingError, match=r"signal 9 .*started again"):
        start(proxy, words(1), 1)
    with pytest.raises(EngineRestartingError):
        proxy.snapshot()
    loading = proxy.engine_pid
    gate.set()
    kill(loading)
    assert_right(healthy(proxy), reference, words(1))


def test_a_start_that_the_system_refuses_is_tried_again(proxy, reference, monkeypatch) -> None:
    refusals = []

    def refuse() -> Listener:
        if len(refusals) < 2:
            refusals.append(1)
            raise OSError(24, "too many open files")
        return Listener()

    healthy(proxy)
    monkeypatch.setattr(engine_process, "Listener", refuse)
    os.kill(proxy.engine_pid, signal.SIGKILL)
    wait_until(lambda: len(refusals) == 2, "two starts have failed")
    assert_right(healthy(proxy), reference, words(1))


def test_an_engine_that_is_stuck_is_noticed_replaced_and_never_waited_for(proxy, reference) -> None:
    results = in_generation(healthy(proxy), None)
    stuck = proxy.engine_pid
    os.kill(stuck, signal.SIGSTOP)
    began = time.monotonic()
    proxy.is_healthy()
    proxy.iteration_stats()
    late = start(proxy, words(4), NEW)
    late.abort()
    assert proxy.engine_pid == stuck, "nothing of this waits for the engine"
    assert_all_fail([*results, late], STALL_SECONDS + NOTICE_SECONDS)
    assert time.monotonic() - began > STALL_SECONDS / 2
    wait_until(lambda: not psutil.pid_exists(stuck), "the stuck one is gone")
    assert_right(healthy(proxy), reference, words(4))


def test_an_engine_of_which_nothing_is_heard_is_replaced_before_a_long_step_would_be(
    llama_checkpoint, engine_host
) -> None:
    config = {"silence_seconds": 2, "stall_seconds": 600, "restart_delay_seconds": 0}
    with running(llama_checkpoint, host=engine_host, engine_config=config) as executor:
        time.sleep(2.5)  # an idle engine is not silent
        stuck = executor.engine_pid
        result = start(executor, words(1), 3000)
        next(iter(result))
        os.kill(stuck, signal.SIGSTOP)
        with pytest.raises(EngineDiedError, match=r"was stuck: silent for \d"):
            result.result(timeout=2 + NOTICE_SECONDS)
        assert healthy(executor).engine_pid != stuck


SLOW_STEPS = """
import time
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine

forward = ModelEngine.forward

def slow_forward(self, *args, **options):
    time.sleep({seconds})
    return forward(self, *args, **options)

ModelEngine.forward = slow_forward
"""


def test_a_step_may_take_longer_than_an_engine_may_be_silent(
    llama_checkpoint, engine_host, tmp_path
) -> None:
    """The twin of the test above: the engine is slow, and says that it is there."""
    silence, step = 2, 3.5
    package = tmp_path / "slow_steps"
    package.mkdir()
    (package / "__init__.py").write_text(SLOW_STEPS.format(seconds=step))
    options: dict[str, Any] = {
        "engine_config": {"silence_seconds": silence, "stall_seconds": 120},
        "custom_module_dirs": [str(package)],
    }
    with running(llama_checkpoint, host=engine_host, **options) as executor:
        pid, began = executor.engine_pid, time.monotonic()
        result = start(executor, words(1), 2)
        while result.outputs[0].finish_reason is None:
            assert executor.is_healthy()
            with contextlib.suppress(TimeoutError):
                result.result(timeout=0.1)
        assert time.monotonic() - began > 2 * step > silence, "no pressure"
        assert executor.engine_pid == pid
        tokens = ReferenceModel(llama_checkpoint).greedy(words(1), 2).tokens
        assert result.outputs[0].token_ids == tokens


def test_a_door_that_was_suspended_does_not_blame_the_engine(proxy, reference) -> None:
    """A pause of the whole machine is no fault of the engine's."""
    pid = healthy(proxy).engine_pid
    helper = "import os,signal,sys,time;p=[int(a) for a in sys.argv[1:]]\n"
    helper += "for n in p: os.kill(n,signal.SIGSTOP)\n"
    helper += f"time.sleep({STALL_SECONDS + 1})\n"
    helper += "for n in reversed(p): os.kill(n,signal.SIGCONT)"
    subprocess.run([sys.executable, "-c", helper, str(pid), str(os.getpid())], check=True)
    time.sleep(1.5)
    assert proxy.engine_pid == pid
    assert_right(proxy, reference, words(5))


def test_a_host_that_is_killed_takes_its_engine_along_and_is_replaced(proxy, reference) -> None:
    result = in_generation(healthy(proxy), None)[0]
    host, engine = proxy._host.pid, proxy.engine_pid
    os.kill(host, signal.SIGKILL)
    assert_all_fail([result], NOTICE_SECONDS)
    wait_until(lambda: not psutil.pid_exists(engine), "the engine has ended too")
    assert_right(healthy(proxy), reference, words(6))
    assert proxy._host.pid != host


def test_restarts_are_bounded_and_the_end_is_said(llama_checkpoint, engine_host) -> None:
    config = {"max_restarts": 1, "restart_delay_seconds": 0, "stall_seconds": 60}
    with running(
        llama_checkpoint, host=engine_host, engine_config=config, max_queue_size=2, max_batch_size=1
    ) as executor:
        # One engine more is enough to see the queue's bound as well.
        results = [start(executor, words(1), 4000)]
        next(iter(results[0]))
        with pytest.raises(QueueFullError, match="max_queue_size 2"):
            for _ in range(4):
                results.append(start(executor, words(1), 1))
        assert len(results) == 3
        os.kill(executor.engine_pid, signal.SIGKILL)
        assert_all_fail(results, NOTICE_SECONDS)
        assert start(healthy(executor), words(1), 1).result().finished
        os.kill(executor.engine_pid, signal.SIGKILL)
        wait_until(lambda: "not started again" in (executor.health_problem() or ""), "it says so")
        with pytest.raises(EngineStoppedError, match="not started again"):
            start(executor, words(1), 1)


def test_shutdown_fails_what_runs_and_leaves_no_process(llama_checkpoint) -> None:
    known = names_left()
    before = leftovers(known)
    with running(llama_checkpoint, own_process=True) as executor:
        results = [start(executor, words(n, 20), 4000) for n in range(3)]
        next(iter(results[0]))
        pids = executor.engine_pid, executor._host.pid
        processes = [psutil.Process(pid) for pid in pids]
        executor.shutdown()
        for result in results:
            with pytest.raises(EngineStoppedError):
                result.result(timeout=60)
        assert not executor.is_healthy()
        with pytest.raises(EngineStoppedError):
            start(executor, words(1), 1)
        executor.shutdown()
    assert not any(process.is_running() for process in processes)
    wait_until(lambda: leftovers(known) == before, "nothing is left")


def test_a_checkpoint_that_cannot_be_loaded_says_why(
    llama_checkpoint, tmp_path, engine_host
) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    for file in llama_checkpoint.iterdir():
        data = file.read_bytes()
        (folder / file.name).write_bytes(data[:5000] if file.suffix == ".safetensors" else data)
    known = names_left()
    before = leftovers(known)
    with (
        pytest.raises(ConfigurationError, match="cannot load weights"),
        running(folder, host=engine_host),
    ):
        pass
    wait_until(lambda: leftovers(known) == before, "nothing is left")


def test_a_checkpoint_that_never_loads_is_given_up(tmp_path, engine_host) -> None:
    os.mkfifo(tmp_path / "config.json")  # whoever opens it waits for a writer
    args = LlmArgs(model=str(tmp_path), engine_config={"load_seconds": 2})
    known = names_left()
    before = leftovers(known)
    with pytest.raises(EngineError, match=r"cannot start: its process was stuck: not ready after"):
        GenerationExecutorProxy(args, None, engine_host)
    wait_until(lambda: leftovers(known) == before, "nothing is left")


def test_a_host_that_never_answers_is_given_up(llama_checkpoint) -> None:
    args = LlmArgs(model=str(llama_checkpoint), engine_config={"load_seconds": 2})
    known = names_left()
    before = leftovers(known)
    with HostProcess() as host:
        os.kill(host.pid, signal.SIGSTOP)
        with pytest.raises(EngineError, match=r"host process did not answer within 2 s"):
            GenerationExecutorProxy(args, None, host)
    wait_until(lambda: leftovers(known) == before, "nothing is left")


def leftovers(known: set[Path]) -> tuple[Any, ...]:
    """What an engine could leave behind: processes, threads, and names that are not known."""
    engines = sorted(
        process.pid for process in psutil.Process().children(recursive=True) if engine_like(process)
    )
    threads = sorted(t.name for t in threading.enumerate() if t.name.startswith("trtllm-"))
    return names_left() - known, engines, threads


def engine_like(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "engine_host" in " ".join(process.cmdline())
    return False


OWNER = """
import sys, time
from pathlib import Path
sys.path[:0] = ["tests", "."]
from tensorrt_llm.executor.host_process import HostProcess
host = HostProcess()
from support.engine import running, start, text_prompt
with running(Path(sys.argv[1]), host=host) as executor:
    results = [start(executor, text_prompt([5, 6, 7]), 4000) for _ in range(2)]
    next(iter(results[0]))
    print(executor.engine_pid, host.pid, flush=True)
    time.sleep(600)
"""


def test_an_owner_that_is_killed_takes_everything_along(llama_checkpoint) -> None:
    """Even an engine that cannot see anything any more."""
    known = names_left()
    before = leftovers(known)
    command = [sys.executable, "-c", OWNER, str(llama_checkpoint)]
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as owner:
        processes = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
        assert len(processes) == 2 and all(engine_like(process) for process in processes)
        os.kill(processes[0].pid, signal.SIGSTOP)
        owner.kill()
    wait_until(lambda: not any(p.is_running() for p in processes), "both have ended")
    wait_until(lambda: leftovers(known) == before, "nothing is left")
