# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``/prometheus/metrics``, and the middleware that counts answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.engine_metrics import EngineMetrics
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.latest_answer import LatestAnswer
from tensorrt_llm.serve.metrics import ServerMetrics
from tensorrt_llm.serve.route_table import READING_ERRORS, RouteTable
from tensorrt_llm.serve.tenant_store import TenantStore


class MetricsRoute:
    """Answers Prometheus.

    Args:
        llm: The loaded model.
        metrics: The server's own.
        stores: What keeps things for later requests, by what it keeps.
    """

    def __init__(
        self, llm: LLM, metrics: ServerMetrics, stores: Mapping[str, TenantStore[Any]]
    ) -> None:
        self._llm = llm
        self._metrics = metrics
        self._stores = stores
        self._engine = EngineMetrics()
        metrics.registry.register(self._engine)
        self._snapshot = LatestAnswer(llm.snapshot, "metrics")
        llm.listen(metrics)

    def close(self) -> None:
        """Takes no more work."""
        self._snapshot.close()

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        table.add(
            "GET",
            "/prometheus/metrics",
            self.prometheus,
            errors=READING_ERRORS,
            kinds=("text/plain",),
        )

    @guarded
    async def prometheus(self, http: Request) -> Response:
        """All metrics in Prometheus' text format."""
        engine, llm = self._engine, self._llm
        engine.up = llm.is_healthy()
        engine.restarts = llm.num_engine_restarts
        engine.memo = llm.media_memo.stats
        engine.stored = {name: store.stats for name, store in self._stores.items()}
        engine.snapshot = await self._snapshot.get()
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)


class CountAnswers:
    """Counts every HTTP answer by route and status.

    Args:
        app: The application.
        metrics: Where.
    """

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Only what the application declares: paths are the caller's to invent.
                route = getattr(scope.get("route"), "path", "other")
                self._metrics.responded(route, message["status"])
            await send(message)

        await self._app(scope, receive, counted)
