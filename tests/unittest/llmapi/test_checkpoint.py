# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is no checkpoint is told in one line, before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.llmapi.checkpoint import (
    check_chat_template,
    check_checkpoint,
    load_tokenizer,
    read_chat_template,
)


def test_a_checkpoint_is_accepted(llama_checkpoint: Path) -> None:
    assert check_checkpoint(str(llama_checkpoint)) == llama_checkpoint


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "has no config.json"),
        ("{", "is no JSON"),
        ("[]", "names no model_type"),
        (json.dumps({"a": 1}), "names no model_type"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, content: str | None, match: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigurationError, match=match):
        check_checkpoint(str(tmp_path))


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(ConfigurationError, match="there is no folder 'no/such'"):
        check_checkpoint("no/such")


def test_tokenizers(llama_checkpoint: Path, tmp_path: Path) -> None:
    own = load_tokenizer(None, str(llama_checkpoint))
    assert load_tokenizer(str(llama_checkpoint), "elsewhere").get_vocab() == own.get_vocab()
    assert load_tokenizer(own, "elsewhere") is own
    with pytest.raises(ConfigurationError, match="tokenizer: there is no folder"):
        load_tokenizer("no/such", str(llama_checkpoint))
    with pytest.raises(ConfigurationError, match="tokenizer: cannot load one from"):
        load_tokenizer(None, str(tmp_path))


def test_code_in_a_tokenizer_folder_is_not_run(llama_checkpoint: Path, tmp_path: Path) -> None:
    for file in llama_checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    trap = tmp_path / "ran"
    (tmp_path / "trap.py").write_text(f"open({str(trap)!r}, 'w').close()\n")
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config["auto_map"] = {"AutoTokenizer": ["trap.Tokenizer", "trap.Tokenizer"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    load_tokenizer(None, str(tmp_path))
    assert not trap.exists()


def test_templates(tmp_path: Path) -> None:
    file = tmp_path / "template.jinja"
    file.write_text("{{ messages }}", encoding="utf-8")
    assert read_chat_template(None) is None
    assert read_chat_template(str(file)) == "{{ messages }}"
    assert read_chat_template("{% if x %}y{% endif %}") == "{% if x %}y{% endif %}"
    with pytest.raises(ConfigurationError, match="neither a file nor Jinja text"):
        read_chat_template("no/such.jinja")


def test_a_template_is_parsed_before_a_request_needs_it(llama_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(llama_checkpoint)
    check_chat_template(tokenizer, None)
    check_chat_template(tokenizer, "{{ raise_exception('not this message') }}")
    with pytest.raises(ConfigurationError, match=r"chat_template: line 2: .*endif"):
        check_chat_template(tokenizer, "{{ messages }}\n{% if messages %}")
    tokenizer.chat_template = None
    check_chat_template(tokenizer, None)
