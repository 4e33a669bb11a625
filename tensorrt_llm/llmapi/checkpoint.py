# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is read from a checkpoint folder before a model is loaded. Nothing in it is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError

from tensorrt_llm.errors import ConfigurationError


def check_checkpoint(model: str) -> Path:
    """Makes sure that a folder is a checkpoint in Hugging Face format.

    Raises:
        ConfigurationError: If it is not. Says what is missing.
    """
    path = Path(model)
    if not path.is_dir():
        raise ConfigurationError(f"model: there is no folder {model!r} (a local checkpoint folder)")
    config = path / "config.json"
    if not config.is_file():
        raise ConfigurationError(f"model: {model!r} is no checkpoint folder: it has no config.json")
    try:
        content = json.loads(config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"model: {str(config)!r} is no JSON: {error}") from error
    if not isinstance(content, dict) or "model_type" not in content:
        raise ConfigurationError(f"model: {str(config)!r} names no model_type")
    return path


def load_tokenizer(tokenizer: Any, model: str) -> Any:
    """Loads a tokenizer, or passes one on.

    Args:
        tokenizer: A folder, a tokenizer, or None for the model's own.
        model: Folder of the checkpoint.

    Raises:
        ConfigurationError: If the folder holds no tokenizer.
    """
    if tokenizer is not None and not isinstance(tokenizer, str | Path):
        return tokenizer
    # Imported here: transformers takes seconds, and a wrong option should be told at once.
    from transformers import AutoTokenizer

    folder = model if tokenizer is None else str(tokenizer)
    if not Path(folder).is_dir():
        raise ConfigurationError(f"tokenizer: there is no folder {folder!r}")
    from tensorrt_llm.inputs.model_config import load_config
    from tensorrt_llm.inputs.phi4mm_layout import PUBLISHED_MODEL_TYPE

    try:
        options: dict[str, Any] = {}
        if _model_type(folder) == PUBLISHED_MODEL_TYPE:
            # Without it the library guesses at a configuration that it does not know.
            options["config"] = load_config(folder)
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"tokenizer: cannot load one from {folder!r}: {_first_line(error)}"
        ) from error


def _model_type(folder: str) -> Any:
    """What a folder's configuration says, if it has one."""
    config = Path(folder, "config.json")
    if not config.is_file():
        return None
    content = json.loads(config.read_text(encoding="utf-8"))
    return content.get("model_type") if isinstance(content, dict) else None


def read_chat_template(template: str | None) -> str | None:
    """Gives the Jinja text of a template named by path or written out.

    Raises:
        ConfigurationError: If it is neither a file nor Jinja text.
    """
    if template is None or "{{" in template or "{%" in template:
        return template
    path = Path(template)
    if not path.is_file():
        raise ConfigurationError(f"chat_template: {template!r} is neither a file nor Jinja text")
    return path.read_text(encoding="utf-8")


def check_chat_template(tokenizer: Any, template: str | None) -> None:
    """Makes sure that the template in use is Jinja, where there is one.

    Args:
        tokenizer: Whose own template is used without another.
        template: Jinja text used instead.

    Raises:
        ConfigurationError: If it cannot be parsed. Says where.
    """
    if template is None and not getattr(tokenizer, "chat_template", None):
        return
    message = [{"role": "user", "content": "a"}]
    try:
        tokenizer.apply_chat_template(message, tokenize=False, chat_template=template)
    except TemplateSyntaxError as error:
        raise ConfigurationError(f"chat_template: line {error.lineno}: {error.message}") from error
    except (TemplateError, TypeError, ValueError):
        return  # It is Jinja, and does not take this message.


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
