# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Turns every failure of a route into its answer: one request's failure is its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from starlette.responses import Response

from tensorrt_llm.serve.errors import error_response
from tensorrt_llm.serve.streaming import ClientDisconnectedError

# What other servers write for a client that hung up; nobody receives it.
_CLIENT_CLOSED_REQUEST = 499

_Parameters = ParamSpec("_Parameters")
_Route = Callable[_Parameters, Coroutine[Any, Any, Response]]


def guarded(route: _Route[_Parameters]) -> _Route[_Parameters]:
    """A route that answers with an error where the given one raises."""

    @functools.wraps(route)
    async def answer(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Response:
        try:
            return await route(*args, **kwargs)
        except ClientDisconnectedError:
            return Response(status_code=_CLIENT_CLOSED_REQUEST)
        except Exception as error:
            return error_response(error)

    return answer
