# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a repeat, a cold request and decoding cost at full size, beside stock transformers.

    python benchmarks/gpu/measure.py --json FILE

Phi-4-multimodal's configuration with random weights in bf16 (``checkpoint.py``), with its two
adapters of full rank, which a picture or a clip selects. The engine runs in its own process behind
the ``LLM`` API, and then behind ``trtllm-serve``; time to first token counts from the call on, with
media and preprocessing. Stock transformers runs in this process on the same device, afterwards,
without adapters, and its times begin with encoder inputs at hand.
"""

from __future__ import annotations

import base64
import gc
import io
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import httpx
import numpy as np
import soundfile
import torch
import transformers

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.demo_server import LocalServer
from tensorrt_llm.bench.workloads import Conversation, Request, clip, picture
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams

TEXT_TOKENS, PREFILL_TOKENS, DECODE_CONTEXT, DECODED = 4096, 8192, 4096, 64
REPEATS, COLD = 50, 5
MODEL = "phi4mm"
WORDS = "please look at every part and say what is there then go on to the next one "


def long_request(number: int) -> Request:
    """About 4k tokens of text, a picture of 17 crops, a clip of 16 s; another for each number."""
    text = f"Number {number}. " + WORDS * (TEXT_TOKENS // len(WORDS.split()))
    return Conversation().ask(text, picture(number, 1792, 1792), clip(number, 16.0))


def ids(number: int, count: int) -> list[int]:
    """Text as token ids that no other number begins with."""
    return np.random.default_rng(number).integers(300, 1200, count).tolist()


def first_token_ms(llm: LLM, inputs: Any) -> tuple[float, GenerationResult]:
    """From the call on, preprocessing included."""
    called = time.monotonic()
    result = llm.generate(inputs, SamplingParams(max_tokens=1, ignore_eos=True), use_tqdm=False)
    assert not isinstance(result, list) and result.times.first_token is not None
    return 1e3 * (result.times.first_token - called), result


def decode_ms(llm: LLM, batch: int) -> float:
    """Milliseconds a step once all requests generate, prompts cached before."""
    prompts = [ids(1000 + number, DECODE_CONTEXT) for number in range(batch)]
    sampling = SamplingParams(max_tokens=1, ignore_eos=True)
    llm.generate(prompts, sampling, use_tqdm=False)
    walls = []
    for count in (DECODED // 2, DECODED):
        begun = time.monotonic()
        sampling = SamplingParams(max_tokens=count, ignore_eos=True)
        llm.generate(prompts, sampling, use_tqdm=False)
        walls.append(time.monotonic() - begun)
    # What both runs have, such as handing the prompts over, falls out.
    return 1e3 * (walls[1] - walls[0]) / (DECODED - DECODED // 2)


def summary(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered), 2),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 2),
        "runs": len(ordered),
    }


def of_engine(folder: Path, **options: Any) -> dict[str, Any]:
    """The engine's figures, and the prompts that stock transformers gets."""
    begun = time.monotonic()
    with LLM(
        str(folder), dtype="bfloat16", device="cuda", kv_cache_config={"max_tokens": 400_000},
        max_seq_len=65_536, max_num_tokens=16_384, **options,
    ) as llm:  # fmt: skip
        rows: dict[str, Any] = {"start_seconds": round(time.monotonic() - begun, 1)}
        first_token_ms(llm, long_request(90).inputs)  # pays for warming up
        cold, answers = [], []
        for number in range(COLD):
            took, result = first_token_ms(llm, long_request(number).inputs)
            assert result.cached_tokens < 32
            cold.append(took)
            answers.append(result.outputs[0].token_ids)
        rows["prompt_tokens"] = len(result.prompt_token_ids)
        rows["cold_ttft"] = summary(cold)
        asked = long_request(COLD - 1).inputs  # the same objects again, as a program holds them
        warm, engine = [], []
        for _ in range(REPEATS):
            took, result = first_token_ms(llm, asked)
            assert result.cached_tokens == rows["prompt_tokens"] - 1
            assert result.outputs[0].token_ids == answers[-1]
            warm.append(took)
        rows["repeat_ttft"] = summary(warm)
        ready = llm.preprocess(asked)
        for _ in range(REPEATS):
            took, _result = first_token_ms(llm, ready)
            engine.append(took)
        rows["repeat_ttft_preprocessed"] = summary(engine)
        text = ids(5, DECODE_CONTEXT)
        first_token_ms(llm, text)
        rows["repeat_ttft_text_4k"] = summary(
            [first_token_ms(llm, text)[0] for _ in range(REPEATS)]
        )
        first_token_ms(llm, ids(6, PREFILL_TOKENS))
        rows["prefill_8k"] = summary(
            [first_token_ms(llm, ids(7 + n, PREFILL_TOKENS))[0] for n in range(COLD)]
        )
        rows["decode_batch_1_4k_ms"] = round(decode_ms(llm, 1), 3)
        rows["decode_batch_64_4k_ms"] = round(decode_ms(llm, 64), 3)
        rows["prompt"] = ready.prompt
    return rows


def of_door(folder: Path) -> dict[str, Any]:
    """Time to the first token over HTTP: the request with its media as ``data:`` URIs."""
    program = (sys.executable, "-c", "from tensorrt_llm.commands.serve import main; main()")
    options = ["--served_model_name", MODEL, "--max_seq_len", "65536", "--max_num_tokens", "16384"]
    options += ["--kv_cache_max_tokens", "400000", "--dtype", "bfloat16"]
    log = folder.parent / "trtllm-server.log"
    with LocalServer([str(folder), *options], log, program=program) as server:
        server.wait_until_ready()
        with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
            is_json = {"content-type": "application/json"}

            def ask(number: int) -> tuple[float, int]:
                body = json.dumps(chat_body(number)).encode()
                begun = time.monotonic()
                reply = client.post("/v1/chat/completions", content=body, headers=is_json)
                took = 1e3 * (time.monotonic() - begun)
                usage = reply.raise_for_status().json()["usage"]
                return took, usage["prompt_tokens_details"]["cached_tokens"]

            ask(90)
            cold = [ask(number)[0] for number in range(COLD)]
            warm = [ask(COLD - 1) for _ in range(REPEATS)]
    assert all(cached > TEXT_TOKENS for _, cached in warm)
    return {"cold_ttft": summary(cold), "repeat_ttft": summary([took for took, _ in warm])}


def chat_body(number: int) -> dict[str, Any]:
    """A chat of about 4k tokens of text, a picture of 17 crops as JPEG, a clip of 16 s as WAV."""
    picture_file, clip_file = io.BytesIO(), io.BytesIO()
    seen, heard = picture(number, 1792, 1792).data, clip(number, 16.0).data
    seen.save(picture_file, "JPEG", quality=95)
    soundfile.write(clip_file, *heard, format="WAV", subtype="PCM_16")

    def uri(kind: str, file: io.BytesIO) -> dict[str, str]:
        return {"url": f"data:{kind};base64,{base64.b64encode(file.getvalue()).decode()}"}

    words = f"Number {number}. " + WORDS * (TEXT_TOKENS // len(WORDS.split()))
    content = [
        {"type": "text", "text": words},
        {"type": "image_url", "image_url": uri("image/jpeg", picture_file)},
        {"type": "audio_url", "audio_url": uri("audio/wav", clip_file)},
    ]
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 1,
        "ignore_eos": True,
    }


def of_stock(folder: Path, prompt: ProcessedPrompt) -> dict[str, Any]:
    """Stock transformers' figures."""
    model: Any = transformers.Phi4MultimodalForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, attn_implementation="sdpa"
    )
    model = model.to("cuda").eval()

    def generate(count: int, **inputs: Any) -> float:
        torch.cuda.synchronize()
        begun = time.monotonic()
        model.generate(
            **inputs, attention_mask=torch.ones_like(inputs["input_ids"]), eos_token_id=None,
            max_new_tokens=count, min_new_tokens=count, do_sample=False,
        )  # fmt: skip
        torch.cuda.synchronize()
        return 1e3 * (time.monotonic() - begun)

    def tokens(batch: int, count: int) -> torch.Tensor:
        return torch.tensor([ids(1000 + n, count) for n in range(batch)], device="cuda")

    def per_token(batch: int) -> float:
        inputs = tokens(batch, DECODE_CONTEXT)
        generate(1, input_ids=inputs)
        short, long = (generate(count, input_ids=inputs) for count in (2, 2 + DECODED // 2))
        return (long - short) / (DECODED // 2)

    media = {
        name: tensor.to("cuda")
        for item in prompt.items
        for name, tensor in dict(item.encoder_inputs).items()
    }
    whole = torch.from_numpy(prompt.token_ids).long()[None].cuda()
    rows: dict[str, Any] = {}

    def row(name: str, run: Callable[[], Any]) -> None:
        try:
            rows[name] = run()
        except Exception as error:  # a row that stock transformers cannot run is a row all the same
            rows[name] = f"failed: {type(error).__name__}: {error}"

    with torch.inference_mode():
        row(
            "cold_ttft",
            lambda: summary([generate(1, input_ids=whole, **media) for _ in range(COLD + 1)][1:]),
        )
        row(
            "prefill_8k",
            lambda: summary(
                [generate(1, input_ids=tokens(1, PREFILL_TOKENS)) for _ in range(COLD + 1)][1:]
            ),
        )
        row("decode_batch_1_4k_ms", lambda: round(per_token(1), 3))
        row("decode_batch_64_4k_ms", lambda: round(per_token(64), 3))
    return rows


def floors() -> dict[str, float]:
    """Least milliseconds of a decode step: weights, keys and values at the measured bandwidth."""
    size = 4 << 30
    source = torch.empty(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    target.copy_(source)
    begin.record()
    for _ in range(5):
        target.copy_(source)
    end.record()
    torch.cuda.synchronize()
    bandwidth = 10 * size / (1e-3 * begin.elapsed_time(end))
    # Decoder layers and head; keys and values of 32 layers, 8 heads, 128 wide.
    weights = 2 * (32 * (3072 * 5120 + 3072 * 3072 + 3 * 3072 * 8192) + 200_064 * 3072)
    cache = 2 * 2 * 32 * 8 * 128 * DECODE_CONTEXT
    return {
        "copy_bandwidth_tb_s": round(bandwidth / 1e12, 2),
        "decode_batch_1_4k_ms": round(1e3 * (weights + cache) / bandwidth, 3),
        "decode_batch_64_4k_ms": round(1e3 * (weights + 64 * cache) / bandwidth, 3),
    }


@click.command(help=__doc__)
@click.option("--json", "json_file", required=True, help="Where the figures go.")
@click.option("--graphs/--no-graphs", default=True, help="Also measure without CUDA graphs.")
@click.option("--stock/--no-stock", default=True, help="Also measure stock transformers.")
def main(json_file: str, graphs: bool, stock: bool) -> None:
    shm = Path("/dev/shm")
    roomy = shm.is_dir() and shutil.disk_usage(shm).free > 16 << 30
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=shm if roomy else None) as name:
        folder = Path(name)
        # In processes of their own: whoever measures has the device's memory alone.
        here = Path(__file__).resolve().parent
        subprocess.run([sys.executable, here / "checkpoint.py", folder, "--adapters"], check=True)
        report["trtllm-serve"] = of_door(folder)
        click.echo(json.dumps(report))
        ours = of_engine(folder)
        prompt = ours.pop("prompt")
        report["tensorrt_llm"] = ours
        click.echo(json.dumps(ours))
        if graphs:
            plain = of_engine(folder, cuda_graph_config=None)
            plain.pop("prompt")
            report["tensorrt_llm, no CUDA graphs"] = plain
            click.echo(json.dumps(plain))
        if stock:
            report["transformers"] = of_stock(folder, prompt)
        gc.collect()
        torch.cuda.empty_cache()
        report["floor"] = floors()
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.check_output(query, text=True).splitlines()[0].split(", ")
    report["machine"] = {
        "gpu": gpu,
        "driver": driver,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    click.echo(json.dumps(report, indent=2))
    Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
