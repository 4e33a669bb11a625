# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Where traces go, and whether they can: told before anything slow is imported."""

from __future__ import annotations

import importlib.util
from urllib.parse import urlsplit

from tensorrt_llm.errors import ConfigurationError

_PATH = "/v1/traces"


def traces_address(endpoint: str) -> str:
    """The collector's address with its path, ``/v1/traces`` unless it says another."""
    return endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + _PATH


def check_tracing(endpoint: str | None) -> None:
    """Sees that traces can be sent, before anything is loaded.

    Raises:
        ConfigurationError: If the address is none, or the packages are not there.
    """
    if endpoint is None:
        return
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"otlp_traces_endpoint: {endpoint!r} is no address such as http://localhost:4318"
        )
    try:
        found = importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:
        found = None
    if found is None or importlib.util.find_spec("opentelemetry.sdk") is None:
        raise ConfigurationError(
            "otlp_traces_endpoint: traces need the extra [otel]: pip install opentelemetry-sdk "
            "opentelemetry-exporter-otlp-proto-http"
        )
