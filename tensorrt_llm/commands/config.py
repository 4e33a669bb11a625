# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Options, a YAML file and defaults to one configuration; mistakes back to the option at fault.

Options that set a field of `LlmArgs` take their default and their help from that field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.llmapi.strict_model import StrictModel, describe_errors

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FIELD_KEY = "llm_args_field"


class GroupedOption(click.Option):
    """An option that stands under a heading in the help.

    Args:
        group: The heading.
        llm_args_field: The field of `LlmArgs` that it sets, for example
            ``kv_cache_config.max_tokens``; empty for options of the server itself.
        secret: Whether its value is shown to nobody.
    """

    def __init__(
        self,
        *args: Any,
        group: str,
        llm_args_field: str = "",
        secret: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.secret = secret
        self.group = group
        self.llm_args_field = llm_args_field


class GroupedCommand(click.Command):
    """A command whose help lists its options by heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", "Other"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class JsonMapping(click.ParamType):
    """A JSON object, as text."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        """Parses the text."""
        if isinstance(value, dict):
            return value
        try:
            parsed = json.loads(value)
        except ValueError as error:
            self.fail(f"{value!r:.80} is no JSON: {error}", param, ctx)
        if not isinstance(parsed, dict):
            self.fail(f"{value!r:.80} is no JSON object", param, ctx)
        return parsed


def model_option(
    *names: str, field: str, group: str, **kwargs: Any
) -> Callable[[_Function], _Function]:
    """An option that sets a field of `LlmArgs`.

    Args:
        names: As for ``click.option``.
        field: Path of the field.
        group: Heading in the help.
        kwargs: As for ``click.option``.
    """
    info = _field_info(field)
    kwargs.setdefault("default", info.default)
    kwargs.setdefault("show_default", info.default is not None)
    return click.option(
        *names,
        field.replace(".", "__"),
        cls=GroupedOption,
        group=group,
        llm_args_field=field,
        help=info.description,
        **kwargs,
    )


def server_option(*names: str, group: str, **kwargs: Any) -> Callable[[_Function], _Function]:
    """An option of the server itself; as ``click.option``, with a heading."""
    return click.option(*names, cls=GroupedOption, group=group, **kwargs)


def read_llm_args(
    context: click.Context, model: str, options: Mapping[str, Any], config: Path | None
) -> LlmArgs:
    """Builds the configuration: defaults, then options, then the YAML file.

    Args:
        context: Of the command whose options these are.
        model: Folder of the checkpoint.
        options: Values of the `model_option`s, by parameter name.
        config: The YAML file.

    Raises:
        click.BadParameter: If a value is wrong. Names the option.
    """
    from_options: dict[str, Any] = {"model": model}
    for name, value in options.items():
        _put(from_options, name.split("__"), value)
    from_file = read_yaml(config) if config is not None else {}
    try:
        return LlmArgs(**merge(from_options, from_file))
    except ValidationError as error:
        path, reason = describe_errors(error)[0]
        if _has(from_file, path.split(".")):
            raise click.BadParameter(
                f"{config}: {path}: {reason}", context, param_hint="'--config'"
            ) from None
        raise click.BadParameter(reason, context, param_hint=_option_of(context, path)) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML mapping.

    Raises:
        click.BadParameter: If it is no YAML, or no mapping. Says where.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise click.BadParameter(f"{path}: {reason}", param_hint="'--config'") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise click.BadParameter(f"{path} holds no mapping of options", param_hint="'--config'")
    return content


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lays one mapping over another; nested mappings are merged, everything else replaced."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return result


def describe_args(args: LlmArgs) -> str:
    """The effective configuration as YAML text."""
    return yaml.safe_dump(args.effective(), sort_keys=False, default_flow_style=False).rstrip()


def describe_options(context: click.Context) -> str:
    """The options that set no field of `LlmArgs`, as comments beside its YAML; no secrets."""
    lines = []
    for param in context.command.params:
        if not isinstance(param, GroupedOption) or param.llm_args_field or param.name is None:
            continue
        value = context.params[param.name]
        if isinstance(value, tuple):
            value = list(value)
        if param.secret and value:
            value = "(given)"
        shown = value if isinstance(value, (bool, int, float, str, list, dict)) else None
        if isinstance(value, Path):
            shown = str(value)
        lines.append(f"# {param.opts[0]}: {json.dumps(shown)}")
    return "\n".join(lines)


def _field_info(path: str) -> FieldInfo:
    *blocks, name = path.split(".")
    model: type[StrictModel] = LlmArgs
    for block in blocks:
        factory = model.model_fields[block].default_factory
        assert isinstance(factory, type) and issubclass(factory, StrictModel)
        model = factory
    return model.model_fields[name]


def _put(target: dict[str, Any], path: list[str], value: Any) -> None:
    for block in path[:-1]:
        target = target.setdefault(block, {})
    target[path[-1]] = value


def _has(mapping: Any, path: list[str]) -> bool:
    for step in path:
        if not isinstance(mapping, Mapping) or step not in mapping:
            return False
        mapping = mapping[step]
    return True


def _option_of(context: click.Context, path: str) -> str:
    for param in context.command.params:
        if isinstance(param, GroupedOption) and param.llm_args_field == path:
            return f"'{param.opts[0]}'"
    return f"'{path}'"
