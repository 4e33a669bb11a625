# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``/kv_cache/ui``: one page that shows what the caches do, and the numbers that it reads."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.access import check_administrator, tenant_of
from tensorrt_llm.serve.api_keys import Tenant
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.latest_answer import LatestAnswer
from tensorrt_llm.serve.metrics import ServerMetrics
from tensorrt_llm.serve.route_table import READING_ERRORS, RouteTable
from tensorrt_llm.serve.thumbnails import Thumbnails

_KINDS = {
    "style.css": "text/css",
    "app.js": "text/javascript",
    "drawing.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
# The page is its own files and the server's numbers; nothing else is loaded, run or framed.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
# Nothing that users have sent stays in a browser's cache or stands on another site's page.
_PICTURE_HEADERS = {
    **_HEADERS,
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class UiRoutes:
    """Serves the page.

    Args:
        llm: The loaded model.
        metrics: What was counted of requests.
        thumbnails: Of media items; None where none are shown.
    """

    def __init__(self, llm: LLM, metrics: ServerMetrics, thumbnails: Thumbnails | None) -> None:
        self._llm = llm
        self._metrics = metrics
        self._thumbnails = thumbnails
        self._contents = LatestAnswer(llm.contents, "page")
        folder = files("tensorrt_llm.serve").joinpath("ui")
        names = ("index.html", *_KINDS)
        self._files = {name: folder.joinpath(name).read_bytes() for name in names}

    def close(self) -> None:
        """Takes no more work."""
        self._contents.close()

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        table.add("GET", "/kv_cache/ui", self.page, errors=READING_ERRORS, kinds=("text/html",))
        table.add("GET", "/kv_cache/ui/{name}", self.part, errors=(), documented=False)
        table.add("GET", "/kv_cache/state", self.state)
        table.add("GET", "/kv_cache/thumbnails/{name}", self.thumbnail, errors=(), documented=False)

    @guarded
    async def page(self, http: Request) -> Response:
        """The page."""
        check_administrator(http)
        return Response(self._files["index.html"], headers=_HEADERS, media_type="text/html")

    @guarded
    async def part(self, name: str, http: Request) -> Response:
        """A file of the page."""
        check_administrator(http)
        if name not in _KINDS:
            raise HTTPException(404, "Not Found")
        return Response(self._files[name], headers=_HEADERS, media_type=_KINDS[name])

    @guarded
    async def thumbnail(self, name: str, http: Request) -> Response:
        """A small picture of a media item, to whom the state names it."""
        check_administrator(http)
        shown = self._thumbnails
        jpeg = None if shown is None else shown.jpeg(name, tenant_of(http))
        if jpeg is None:
            raise HTTPException(404, "Not Found")
        return Response(jpeg, headers=_PICTURE_HEADERS, media_type="image/jpeg")

    @guarded
    async def state(self, http: Request) -> Response:
        """What the page shows: the engine's contents, tokens by modality, the latest requests."""
        check_administrator(http)
        contents = await self._contents.get()
        if contents is None:
            raise HTTPException(503, "the engine has not answered yet")
        engine = dict(contents)
        return JSONResponse(
            {
                "model": self._llm.model_info.model_type,
                "block_map": engine.pop("blockMap"),
                "items": [self._item(one, tenant_of(http)) for one in engine.pop("items")],
                "engine": engine,
                "tokens": self._metrics.tokens(),
                "requests": list(reversed(self._metrics.recent)),
            }
        )

    def _item(self, item: dict[str, Any], viewer: Tenant | None) -> dict[str, Any]:
        """An item as people are told of it: without what it is made of and whose it is."""
        told = dict(item)
        identity, cache_salt = told.pop("identity"), told.pop("cacheSalt")
        if self._thumbnails is not None:
            name = self._thumbnails.name(identity, cache_salt, viewer)
            told["thumbnail"] = None if name is None else f"thumbnails/{name}"
        return told
