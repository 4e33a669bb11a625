# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Options, YAML and defaults to one configuration, and mistakes back to the option at fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.commands.config import (
    GroupedCommand,
    describe_args,
    merge,
    model_option,
    read_llm_args,
    read_yaml,
    server_option,
)
from tensorrt_llm.llmapi.llm_args import LlmArgs


@click.command(cls=GroupedCommand)
@server_option("--port", group="Server", default=1, help="The port.")
@model_option("--max_batch_size", field="max_batch_size", group="Model", type=int)
@model_option("--tokens_per_block", field="kv_cache_config.tokens_per_block", group="KV", type=int)
@model_option("--reuse/--no_reuse", field="kv_cache_config.enable_block_reuse", group="KV")
@click.option("--config", type=click.Path(path_type=Path))
@click.pass_context
def command(context: click.Context, config: Path | None, port: int, **options: Any) -> None:
    """Says what it got."""
    click.echo(describe_args(read_llm_args(context, "folder", options, config)))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def got(*arguments: str) -> dict:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return yaml.safe_load(result.output)


def write(folder: Path, content: object) -> str:
    file = folder / "config.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(file)


def test_defaults_are_those_of_the_schema() -> None:
    assert LlmArgs(**got()) == LlmArgs(model="folder")


def test_options_set_their_fields() -> None:
    found = got("--max_batch_size", "3", "--tokens_per_block", "16", "--no_reuse")
    assert found["max_batch_size"] == 3
    assert found["kv_cache_config"]["tokens_per_block"] == 16
    assert found["kv_cache_config"]["enable_block_reuse"] is False


def test_the_file_wins_over_options_field_by_field(tmp_path: Path) -> None:
    file = write(tmp_path, {"kv_cache_config": {"enable_block_reuse": True}, "max_seq_len": 7})
    found = got("--no_reuse", "--tokens_per_block", "16", "--max_batch_size", "3", "--config", file)
    assert found["kv_cache_config"]["enable_block_reuse"] is True
    assert found["kv_cache_config"]["tokens_per_block"] == 16
    assert (found["max_batch_size"], found["max_seq_len"]) == (3, 7)


@pytest.mark.parametrize("content", ["", "# nothing", "{}"])
def test_an_empty_file_changes_nothing(tmp_path: Path, content: str) -> None:
    assert got("--config", write(tmp_path, content)) == got()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--tokens_per_block", "33"), "'--tokens_per_block': must be a power of two"),
        (("--max_batch_size", "0"), "'--max_batch_size': "),
        (("--max_batch_size", "x"), "'--max_batch_size': "),
    ],
)
def test_a_wrong_option_exits_2_and_is_named(arguments: tuple, hint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert f"Invalid value for {hint}" in result.output


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"kv_cache_config": {"tokens_per_block": 5}}, "kv_cache_config.tokens_per_block: must be"),
        ({"kv_cache_config": {"frobnicate": 5}}, "kv_cache_config.frobnicate: unknown field"),
        ({"kv_cache_config": 5}, "kv_cache_config: "),
        ({"frobnicate": 1}, "frobnicate: unknown field"),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size: tensor parallelism is not available"),
        ("- 1", "holds no mapping"),
        ("5: 1", "holds no mapping"),
        ("a: [", "while parsing"),
        ("\x00", "unacceptable character"),
    ],
)
def test_a_wrong_file_exits_2_and_is_named(tmp_path: Path, content: object, reason: str) -> None:
    file = write(tmp_path, content)
    result = run("--config", file)
    assert result.exit_code == 2
    assert f"Invalid value for '--config': {file}" in result.output
    assert reason in " ".join(result.output.split())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_help_lists_options_under_their_headings_with_the_fields_words() -> None:
    output = run("--help").output
    assert output.index("Server:") < output.index("--port")
    assert output.index("Model:") < output.index("--max_batch_size") < output.index("KV:")
    description = LlmArgs.model_fields["max_batch_size"].description
    assert description is not None and description in output


mappings = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


def leaves(mapping: dict, path: tuple = ()) -> dict[tuple, Any]:
    found: dict[tuple, Any] = {}
    for key, value in mapping.items():
        below = leaves(value, (*path, key)) if isinstance(value, dict) and value else None
        found |= below if below is not None else {(*path, key): value}
    return found


@given(mappings, mappings)
def test_merging_keeps_what_only_one_says_and_lets_the_second_win(
    first: dict, second: dict
) -> None:
    merged = leaves(merge(first, second))
    for path, value in leaves(second).items():
        # An empty block says nothing about what the other puts in it.
        if value != {}:
            assert merged[path] == value
    said = set(leaves(first)) | set(leaves(second))
    assert set(merged) <= said
    for path, value in leaves(first).items():
        overruled = any(
            path[: len(other)] == other or other[: len(path)] == path for other in leaves(second)
        )
        assert overruled or merged[path] == value
