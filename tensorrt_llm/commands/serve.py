# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``trtllm-serve``: serves a checkpoint over HTTP.

Mistakes are told before anything slow is imported or loaded: exit code 2 names the option, exit
code 1 is a folder that cannot be served or a port that is taken. A stop by signal is no failure:
exit code 0.
"""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tensorrt_llm.commands.access import describe_access, read_api_keys, read_origins, read_tls
from tensorrt_llm.commands.config import (
    GroupedCommand,
    GroupedOption,
    describe_args,
    describe_options,
    read_llm_args,
)
from tensorrt_llm.commands.demo_model import DEMO, demo_checkpoint, is_demo
from tensorrt_llm.commands.explain import explain
from tensorrt_llm.commands.listen import bind, url_of
from tensorrt_llm.commands.serve_options import serve_options
from tensorrt_llm.errors import ConfigurationError, EngineError, RequestError
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.llmapi.checkpoint import check_checkpoint
from tensorrt_llm.llmapi.llm_args import LlmArgs, refuse_disaggregated, use_single_process
from tensorrt_llm.logger import configure
from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.trace_endpoint import check_tracing
from tensorrt_llm.version import __version__

if TYPE_CHECKING:
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.llmapi.llm import LLM

_ABSENT_COMMANDS = ("mm_embedding_serve", "disaggregated", "disaggregated_mpi_worker")


class DefaultServe(click.Group):
    """A group whose sub-command may be left out: it is ``serve`` then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default sub-command in."""
        if args and args[0] in _ABSENT_COMMANDS:
            raise click.UsageError(f"{args[0]} is not available in this release", ctx)
        if not args or (args[0] not in self.commands and args[0] != "--version"):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DefaultServe)
@click.version_option(__version__, prog_name="trtllm-serve")
def main() -> None:
    """Serves a multimodal model over HTTP, with safe reuse of KV blocks."""


@main.command(cls=GroupedCommand)
@click.argument("model", type=click.Path())
@serve_options
@click.pass_context
def serve(context: click.Context, model: str, config: Path | None, **options: Any) -> None:
    """Serves the checkpoint in folder MODEL (Hugging Face format) with an OpenAI-compatible API.

    Blocks of the KV cache are reused between requests that begin alike, media included; see
    --enable_block_reuse. The word "serve" may be left out. MODEL "demo" is a small trained model
    that sees and hears, of the source tree.
    """
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    configure(options["log_level"])
    if is_demo(model):
        try:
            model = demo_checkpoint()
        except ConfigurationError as error:
            raise click.ClickException(str(error)) from None
        options["served_model_name"] = options["served_model_name"] or DEMO
    of_model = [param.name for param in context.command.params if _sets_model_field(param)]
    args = read_llm_args(context, model, {name: options.pop(name) for name in of_model}, config)
    try:
        refuse_disaggregated()
        check_checkpoint(args.model)
        check_tracing(args.otlp_traces_endpoint)
    except (ConfigurationError, NotImplementedError) as error:
        raise click.ClickException(str(error)) from None
    _check_media_options(options)
    door = _Door(read_api_keys(options), read_tls(options), read_origins(options))
    access = _media_access(options)
    if options["dry_run"]:
        click.echo(f"{describe_args(args)}\n{describe_options(context)}")
        return
    sockets = _listen(options["host"], options["port"])
    click.echo(f"trtllm-serve {__version__}, configuration:\n{describe_args(args)}")
    # First of all what takes long: the engine's process imports while this one does.
    with _engine_host() as host, _load(args, host) as llm:
        _run(llm, access, door, options, sockets)


@dataclass(frozen=True)
class _Door:
    """Who may ask, and how."""

    keys: ApiKeys
    tls: ssl.SSLContext | None
    origins: tuple[str, ...]


main.add_command(explain)


def _run(
    llm: LLM,
    access: MediaAccess,
    door: _Door,
    options: dict[str, Any],
    sockets: list[socket.socket],
) -> None:
    from tensorrt_llm.serve.http_server import HttpServer
    from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig

    name = options["served_model_name"] or Path(llm.args.model).resolve().name
    config = ServerConfig(
        served_model_name=name,
        media_access=access,
        api_keys=door.keys,
        allowed_origins=door.origins,
        max_header_bytes=options["max_header_bytes"],
        max_request_bytes=options["max_request_bytes"],
        max_media_items=options["max_media_items"],
        limit_mm_per_prompt=options["limit_mm_per_prompt"],
        media_io_kwargs=options["media_io_kwargs"],
        tool_parser=options["tool_parser"],
        max_stored_bytes=options["max_stored_bytes"],
        stored_seconds=options["stored_seconds"],
        page_thumbnails=options["page_thumbnails"],
    )
    url = url_of(options["host"], sockets, "https" if door.tls else "http")
    click.echo(_describe_model(llm))
    click.echo(describe_access(door.keys, door.tls, door.origins))
    click.echo(f"serving {name!r} at {url}")
    server = HttpServer(
        OpenAIServer(llm, config).app,
        stop_engine=llm.shutdown,
        grace_seconds=options["grace_seconds"],
        log_level=_uvicorn_level(options["log_level"]),
        max_header_bytes=options["max_header_bytes"],
        tls=door.tls,
    )
    try:
        server.serve_until_stopped(sockets)
    except OSError as error:
        raise click.ClickException(f"cannot listen on {url}: {error.strerror} (--port)") from None


def _engine_host() -> AbstractContextManager[HostProcess | None]:
    if use_single_process():
        return nullcontext()
    try:
        return HostProcess()
    except EngineError as error:
        raise click.ClickException(str(error)) from None


def _load(args: LlmArgs, host: HostProcess | None) -> LLM:
    # Imported here: torch takes seconds, and wrong options are told before.
    from tensorrt_llm.llmapi.llm import LLM

    try:
        given = {name: getattr(args, name) for name in args.model_fields_set}
        return LLM(**given, engine_host=host)
    except (ConfigurationError, EngineError) as error:
        raise click.ClickException(str(error)) from None


def _media_access(options: dict[str, Any]) -> MediaAccess:
    from tensorrt_llm.inputs.media_access import MediaAccess
    from tensorrt_llm.inputs.media_limits import MediaLimits

    given = ",".join(options["allowed_media_domains"])
    domains = tuple(host.strip() for host in given.split(",") if host.strip())
    with _blaming("--media_limits"):
        limits = MediaLimits.from_mapping(options["media_limits"])
    with _blaming("--allowed_media_domains"):
        return MediaAccess(
            allowed_local_media_path=options["allowed_local_media_path"],
            allowed_domains=domains or None,
            allow_loopback=options["allow_loopback_media"],
            limits=limits,
        )


def _check_media_options(options: dict[str, Any]) -> None:
    from tensorrt_llm.inputs.media_decode import MODALITIES, resolve_options

    for name in ("limit_mm_per_prompt", "media_io_kwargs"):
        with _blaming(f"--{name}"):
            for modality, value in options[name].items():
                if modality not in MODALITIES:
                    known = ", ".join(MODALITIES)
                    raise ConfigurationError(f"unknown modality {modality!r}; known: {known}")
                if name == "media_io_kwargs":
                    resolve_options(modality, value, None)
                elif type(value) is not int or value < 0:
                    raise ConfigurationError(f"{modality}: a whole number from 0 on, not {value!r}")


@contextmanager
def _blaming(option: str) -> Iterator[None]:
    """Turns a mistake into one of the command line's own, at that option."""
    try:
        yield
    except (ConfigurationError, RequestError) as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from None


def _listen(host: str, port: int) -> list[socket.socket]:
    try:
        return bind(host, port)
    except OSError as error:
        raise click.ClickException(
            f"cannot listen on {host}:{port}: {error.strerror} (--host, --port)"
        ) from None


def _describe_model(llm: LLM) -> str:
    info = llm.model_info
    return (
        f"model: {info.model_type}, {info.dtype} on {info.device}, up to {info.max_seq_len} tokens "
        f"a request; KV pool of {info.kv_cache_tokens} tokens in {info.kv_cache_blocks} blocks\n"
        f"{llm.reuse_policy.describe()}"
    )


def _uvicorn_level(level: str) -> str:
    return {"internal_error": "critical", "verbose": "debug"}.get(level, level)


def _sets_model_field(param: click.Parameter) -> bool:
    return isinstance(param, GroupedOption) and bool(param.llm_args_field)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the program without failure while it loads."""
    raise SystemExit(0)
