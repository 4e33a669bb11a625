# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``docs/serving.md`` lists exactly the routes that there are."""

from __future__ import annotations

import re
from pathlib import Path

from support.asgi_client import Client

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")


def test_every_route_is_documented(client: Client) -> None:
    paths = client.send("GET", "/openapi.json").json()["paths"]
    served = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    named = set(re.findall(r"`(GET|POST|DELETE) (/[^`]*)`", PAGE))
    assert named - {("GET", "/openapi.json")} == served
