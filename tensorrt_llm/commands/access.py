# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Options that say who may ask the server: API keys, TLS, origins of web pages."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from tensorrt_llm.commands.config import server_option
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.limits import DEFAULT_MAX_HEADER_BYTES

ACCESS = "Access"

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

ACCESS_OPTIONS = [
    server_option(
        "--api_key",
        group=ACCESS,
        secret=True,
        multiple=True,
        metavar="KEY",
        help="A key that requests must carry (Authorization: Bearer KEY). May be repeated. Each "
        'key has caches of its own; keys given as "KEY SALT" with the same salt share theirs. '
        "Other users of this machine can see it; see --api_key_file.",
    ),
    server_option(
        "--api_key_file",
        group=ACCESS,
        type=_FILE,
        help="File with such keys, one a line.",
    ),
    server_option(
        "--ssl_certfile", group=ACCESS, type=_FILE, help="Certificate chain (PEM): serve https."
    ),
    server_option(
        "--ssl_keyfile",
        group=ACCESS,
        type=_FILE,
        help="Key of the certificate (PEM), unless --ssl_certfile holds it.",
    ),
    server_option(
        "--ssl_ca_certs",
        group=ACCESS,
        type=_FILE,
        help="Authorities (PEM), one of which must have signed a client's certificate; none is "
        "asked for by default.",
    ),
    server_option(
        "--allowed_origins",
        group=ACCESS,
        multiple=True,
        metavar="ORIGIN[,ORIGIN...]",
        help="Origins whose web pages may ask (CORS), for example https://chat.example, or * for "
        "all; none by default. May be repeated.",
    ),
    server_option(
        "--max_header_bytes",
        group=ACCESS,
        default=DEFAULT_MAX_HEADER_BYTES,
        show_default=True,
        type=click.IntRange(min=1024),
        help="Most bytes of a request's path and headers; more are refused (HTTP 431).",
    ),
]


def read_api_keys(options: Mapping[str, Any]) -> ApiKeys:
    """The keys of the command line and of the file.

    Raises:
        click.BadParameter: If one has not the form of a key. Names the option, not the key.
    """
    given, file = list(options["api_key"]), options["api_key_file"]
    try:
        keys = ApiKeys.parse(given)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="'--api_key'") from None
    if len(keys) < len(given):
        raise click.BadParameter("a key must not be blank", param_hint="'--api_key'")
    if file is None:
        return keys
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        if not ApiKeys.parse(lines):
            # An empty file must not open the server to everyone.
            raise ConfigurationError(f"{file} holds no key")
        return ApiKeys.parse([*lines, *given])
    except (OSError, UnicodeDecodeError, ConfigurationError) as error:
        reason = "it is no text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise click.BadParameter(reason, param_hint="'--api_key_file'") from None


def read_tls(options: Mapping[str, Any]) -> ssl.SSLContext | None:
    """What the server shows of itself over TLS; None without a certificate.

    Raises:
        click.BadParameter: If a file is none of its kind, or lacks its neighbour.
    """
    certificate, key, authorities = (
        options[f"ssl_{name}"] for name in ("certfile", "keyfile", "ca_certs")
    )
    if certificate is None:
        for name in ("ssl_keyfile", "ssl_ca_certs"):
            if options[name] is not None:
                raise click.BadParameter("only with --ssl_certfile", param_hint=f"'--{name}'")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    option = "--ssl_certfile" if key is None else "--ssl_certfile', '--ssl_keyfile"
    try:
        # Asked for a passphrase, openssl would wait at the terminal.
        context.load_cert_chain(certificate, key, password=_no_passphrase)
        if authorities is not None:
            option = "--ssl_ca_certs"
            context.load_verify_locations(authorities)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from None
    return context


def read_origins(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The origins whose pages may ask.

    Raises:
        click.BadParameter: If one is no origin.
    """
    given = ",".join(options["allowed_origins"]).split(",")
    origins = tuple(origin.strip() for origin in given if origin.strip())
    for origin in origins:
        if origin != "*" and not _is_origin(origin):
            raise click.BadParameter(
                f"{origin!r} is no origin such as https://chat.example:8443",
                param_hint="'--allowed_origins'",
            )
    return origins


def describe_access(keys: ApiKeys, tls: ssl.SSLContext | None, origins: tuple[str, ...]) -> str:
    """Who may ask, in one line."""
    number = f"{len(keys)} API key{'s' * (len(keys) != 1)}" if keys else "no API key"
    secrecy = "https" if tls else "http"
    return f"access: {number}, {secrecy}, web pages of {', '.join(origins) or 'no other origin'}"


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return (
        bool(parts.hostname) and text == f"{parts.scheme}://{parts.netloc}" and bool(parts.scheme)
    )


def _no_passphrase() -> str:
    raise ValueError("a key with a passphrase cannot be used")
