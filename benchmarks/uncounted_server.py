# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-serve`` whose metrics count nothing, which no option of the real one brings about.

    python benchmarks/uncounted_server.py MODEL [OPTIONS]

Only to tell what counting costs: `observability.py` runs it beside the real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorrt_llm.commands.serve import main
from tensorrt_llm.serve.metrics import ServerMetrics


def _nothing(*_: Any) -> None:
    pass


@contextmanager
def _untimed(*_: Any) -> Iterator[None]:
    yield


def count_nothing() -> None:
    """Takes the counting out of this process."""
    for name in ("iterated", "request_ended", "responded"):
        setattr(ServerMetrics, name, _nothing)
    setattr(ServerMetrics, "timing", _untimed)  # noqa: B010  (a method, to the type checker)


if __name__ == "__main__":
    count_nothing()
    main()
