# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One line of JSON in the log for each request that left the engine, without anything it said."""

from __future__ import annotations

import json
from typing import Any

from tensorrt_llm.executor.result import RequestEnd
from tensorrt_llm.logger import get_logger
from tensorrt_llm.serve.prompt_rows import place_of, rows_by_modality

_logger = get_logger(__name__)


def describe_request(end: RequestEnd) -> dict[str, Any]:
    """A request in numbers; times in milliseconds from when it was handed to the engine."""
    times, prompt = end.times, end.request.prompt
    return {
        "request_id": end.request_id,
        "outcome": "error" if end.error is not None else end.finish_reason,
        "error": None if end.error is None else type(end.error).__name__,
        "prompt_tokens": rows_by_modality(prompt, len(prompt)),
        "cached_tokens": rows_by_modality(prompt, end.cached_tokens),
        # The last token is computed whatever is cached, so there is always one.
        "computed_from": place_of(prompt, end.cached_tokens),
        "generated_tokens": end.num_generated,
        "first_token_ms": _milliseconds(times.arrival, times.first_token),
        "total_ms": _milliseconds(times.arrival, times.finished),
    }


def log_request(request: dict[str, Any]) -> None:
    """Writes the line."""
    _logger.info("request %s", json.dumps(request))


def _milliseconds(begin: float, end: float | None) -> float | None:
    return None if end is None else round(1e3 * (end - begin), 1)
