# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The site holds every page, and names options, fields, events and messages that there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from scripts.describe_configuration import page as configuration_page
from tensorrt_llm.commands.serve import main, serve
from tensorrt_llm.llmapi import event_stream
from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.llmapi.strict_model import StrictModel
from tensorrt_llm.serve.openai_protocol import PromptTokensDetails, Usage

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = "configuration.md"
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in DOCS.rglob("*.md")
}
PAGES[MADE] = configuration_page()
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages_of(entries: list) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else pages_of(value)


def anchors(page: str) -> set[str]:
    """As the site's builder makes them of headings."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), re.M)
    plain = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles]
    return {re.sub(r"[\s-]+", "-", title) for title in plain}


def test_every_page_is_in_the_navigation_once() -> None:
    named = list(pages_of(SITE["nav"]))
    assert sorted(named) == sorted(PAGES)
    assert SITE["strict"] and SITE["theme"]["font"] is False


def test_links_between_pages_lead_somewhere() -> None:
    count = 0
    for name, page in PAGES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", page):
            if target.startswith("https://"):
                continue
            if target.startswith("images/"):
                assert (DOCS / target).is_file(), f"{name}: {target}"
                continue
            file, _, anchor = target.partition("#")
            assert (file or name) in PAGES, f"{name}: {target}"
            assert not anchor or anchor in anchors(PAGES[file or name]), f"{name}: {target}"
            count += 1
    assert count > 20


def options(command: click.Command) -> set[str]:
    named = (param for param in command.params if isinstance(param, click.Option))
    return {name for param in named for name in (*param.opts, *param.secondary_opts)}


def fields(model: type[StrictModel]) -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield name
        inner = [part for part in re.findall(r"\w+Config", repr(info.annotation))]
        for part in inner:
            yield from fields(getattr(__import__(model.__module__, fromlist=[part]), part))


def test_the_configuration_page_names_every_option_and_field() -> None:
    named = set(re.findall(r"`([^`]+)`", PAGES[MADE]))
    assert options(serve) <= named
    last = {name.split(".")[-1] for name in named}
    wanted = set(fields(LlmArgs))
    assert {"stall_seconds", "hwm", "max_loras"} <= wanted
    assert wanted <= last, wanted - last


@pytest.mark.parametrize(
    "name", ["index.md", "scaling.md", "troubleshooting.md", "limits.md", "migration.md"]
)
def test_options_that_pages_name_are_there(name: str) -> None:
    known = set().union(*(options(command) for command in main.commands.values()))
    # Of the other engines only what stands in the first column is theirs.
    lines = PAGES[name].splitlines()
    ours = [" | ".join(line.split(" | ")[1:]) if " | " in line else line for line in lines]
    named = set(re.findall(r"--[a-z][a-z_]+", "\n".join(ours)))
    assert named <= known, named - known


def test_metrics_that_pages_name_are_there() -> None:
    known = set(re.findall(r"trtllm_\w+", PAGES["metrics.md"]))
    for name in ("scaling.md", "troubleshooting.md", "migration.md", "index.md"):
        named = set(re.findall(r"trtllm_\w+", PAGES[name])) - {"trtllm_llm"}
        assert named <= known, named - known


def test_usage_fields_are_documented() -> None:
    section = PAGES["serving.md"].split("\n## Usage\n")[1].split("\n## ")[0]
    named = {name.split(".")[-1] for name in re.findall(r"`([\w.]+)`", section)}
    wanted = {*Usage.model_fields, *PromptTokensDetails.model_fields} - {"prompt_tokens_details"}
    assert wanted <= named, wanted - named


def test_events_are_documented() -> None:
    section = PAGES["kv-cache.md"].split("\n## Events\n")[1].split("\n## ")[0]
    streamed = (event_stream.BlockStored, event_stream.BlockRemoved, event_stream.AllBlocksCleared)
    for event in streamed:
        (line,) = re.findall(rf"^\| `{event.__name__}` \|(.*)\|$", section, re.M)
        assert re.findall(r"`(\w+)`", line) == list(event.__struct_fields__)
    source = (ROOT / "cpp/tensorrt_llm/batch_manager/kvCacheEventsJson.cpp").read_text("utf-8")
    kinds = set(re.findall(r"\b(created|stored|removed|updated)\b", source))
    assert kinds == {"created", "stored", "removed", "updated"}
    assert kinds <= set(re.findall(r"`(\w+)`", section))


def written(node: ast.AST) -> str | None:
    """A text of the code, with ... for what differs."""
    if isinstance(node, ast.JoinedStr):
        parts = node.values
        return "".join(part.value if isinstance(part, ast.Constant) else "..." for part in parts)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def test_every_message_of_the_troubleshooting_page_exists() -> None:
    texts = [
        re.sub(r"%[dsr]|(\.\.\.)+", "...", text)
        for path in (ROOT / "tensorrt_llm").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (text := written(node))
    ]
    page = PAGES["troubleshooting.md"]
    messages = re.findall(r"^\| `([^`]+)` \| [^|]+\|$", page.split("## At start")[1], re.M)
    assert len(messages) > 25
    for message in messages:
        assert any(message.strip(". ") in text for text in texts), message
