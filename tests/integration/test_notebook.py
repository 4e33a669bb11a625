# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A real notebook in a real kernel: blocking calls and awaits work while its loop runs."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from support.checkpoints import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
SECONDS = 180


def printed(cell: Any) -> str:
    return "".join(one["text"] for one in cell["outputs"] if one.get("name") == "stdout")


def value(cell: Any) -> str:
    (found,) = (one["data"] for one in cell["outputs"] if one["output_type"] == "execute_result")
    return found["text/plain"]


# The kernel's client leaves closing of its sockets to the collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_notebook_runs_from_top_to_bottom() -> None:
    written = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in written.cells)
    client = NotebookClient(
        written,
        timeout=SECONDS,
        resources={"metadata": {"path": str(EXAMPLES)}},
    )
    client.execute()
    _, asked, streamed, awaited, several, _ = (
        cell for cell in written.cells if cell["cell_type"] == "code"
    )
    first, again, reused = printed(asked).splitlines()
    right = json.loads((EXAMPLES / "demo_model/media/answers.json").read_text("utf-8"))
    assert first == again and right["picture_1.png"] in first
    cached, of = map(int, reused.split(" of "))
    assert cached == of - 1
    assert printed(streamed) == first
    assert value(awaited) == repr(first)
    assert value(several) == repr([first, first])
    # One bar for the list, and none in the other cells.
    bars = "".join(one.get("text", "") for one in several["outputs"] if one.get("name") == "stderr")
    assert "requests" in bars and "2/2" in bars
