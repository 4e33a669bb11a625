# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the demo model on one GPU.

    python examples/demo_model/train.py VOICES.npz OUT --minutes 9
    python examples/demo_model/train.py VOICES.npz OUT --minutes 9 --resume OUT/state.pt

``voices.py`` makes the voices. The learning rate falls over the time given, so a run of any length
ends with a model that can be used; a resumed one starts lower. OUT gets ``state.pt``, the weights
in half precision for ``export.py``, and ``log.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.demo_model.architecture import load_tokenizer, make_config
from examples.demo_model.batches import Batches
from examples.demo_model.trained_model import TrainedModel
from examples.demo_model.voices import VoiceBank

CHECKPOINT = Path(__file__).with_name("checkpoint")
WEIGHTS = {"answer": 1.0, "cells": 0.3, "heard": 0.3}
WARM_UP_STEPS = 200
LOG_EVERY = 50


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Train the demo model.")
    parser.add_argument("voices", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=max(len(os.sched_getaffinity(0)) - 1, 1))
    parser.add_argument("--resume", type=Path)
    arguments = parser.parse_args()
    train(arguments)


def train(arguments: argparse.Namespace) -> None:
    """Trains for the minutes given and writes what came of it."""
    began = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    arguments.out.mkdir(parents=True, exist_ok=True)
    model = TrainedModel(make_config(load_tokenizer(CHECKPOINT)), arguments.seed)
    first = 0
    if arguments.resume:
        state = torch.load(arguments.resume, map_location="cpu", weights_only=True)
        weights = {name: part.float() for name, part in state["model"].items()}
        found = model.load_state_dict(weights, strict=False)
        # A head that was added since the state was written starts afresh; nothing else may.
        unknown = [name for name in found.missing_keys if not name.startswith("cell_heads.")]
        if unknown or found.unexpected_keys:
            raise ValueError(f"{arguments.resume} is of another model: {unknown or found}")
        first = state["step"]
    model.to(device)
    batches = Batches(
        CHECKPOINT,
        VoiceBank.load(arguments.voices),
        arguments.seed,
        arguments.batch,
        1_000_000,
        first,
    )
    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=arguments.workers,
        prefetch_factor=3 if arguments.workers else None,
        pin_memory=device.type == "cuda",
    )
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
        fused=device.type == "cuda",
    )
    print(
        f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}, torch "
        f"{torch.__version__}, from step {first}, ready in {time.monotonic() - began:.0f} s"
    )
    step = first
    with open(arguments.out / "log.jsonl", "a", encoding="utf-8") as log:
        for made in loader:
            spent = (time.monotonic() - began) / (60 * arguments.minutes)
            if spent >= 1:
                break
            warm = min(1.0, (step - first + 1) / WARM_UP_STEPS)
            rate = arguments.rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * spent)))
            for group in optimizer.param_groups:
                group["lr"] = rate
            batch = made.to(device)
            with torch.autocast(device.type, torch.bfloat16):
                losses = model(batch)
                loss = sum(weight * losses[name] for name, weight in WEIGHTS.items())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step % LOG_EVERY == 0 or step == first + 1:
                line = {"step": step, "seconds": round(time.monotonic() - began, 1), "rate": rate}
                line |= {name: round(float(value.detach()), 4) for name, value in losses.items()}
                log.write(json.dumps(line) + "\n")
                log.flush()
                if step % (10 * LOG_EVERY) == 0 or step == first + 1:
                    print(line, flush=True)
    weights = {name: part.to(torch.float16).cpu() for name, part in model.state_dict().items()}
    torch.save({"model": weights, "step": step}, arguments.out / "state.pt")
    print(f"{step} steps in {time.monotonic() - began:.0f} s: {arguments.out / 'state.pt'}")


if __name__ == "__main__":
    main()
