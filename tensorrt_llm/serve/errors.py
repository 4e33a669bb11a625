# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a failure looks like over HTTP: status, headers and body.

The caller's mistakes are 4xx and say what is wrong; everything else is a fault of ours, answered
with 500 and logged with its traceback.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tensorrt_llm.errors import (
    DeadlineExceededError,
    EngineDiedError,
    EngineError,
    EngineRestartingError,
    EngineStoppedError,
    QueueFullError,
    RequestError,
)
from tensorrt_llm.llmapi.strict_model import describe_errors, describe_mistake
from tensorrt_llm.logger import get_logger
from tensorrt_llm.serve.openai_protocol import ErrorResponse

RETRY_AFTER_SECONDS = 1

_TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    408: "RequestTimeoutError",
    413: "RequestTooLargeError",
    429: "RateLimitError",
    431: "RequestTooLargeError",
    500: "InternalServerError",
    501: "NotImplementedError",
    503: "ServiceUnavailableError",
}

_logger = get_logger(__name__)


class UnknownIdError(RequestError):
    """An id that names nothing of whoever asks: HTTP 404."""


def error_response(error: Exception) -> Response:
    """The HTTP answer for an exception."""
    body, headers = describe(error)
    return Response(body.to_json(), body.code, headers, media_type="application/json")


def error_event(error: Exception) -> str:
    """The JSON text of an exception inside a stream, as OpenAI clients expect it there."""
    body, _ = describe(error)
    kind = "server_error" if body.code >= 500 else body.type
    event = {"message": body.message, "type": kind, "code": body.code, "param": body.param}
    return json.dumps({"error": event})


def describe(error: Exception) -> tuple[ErrorResponse, Mapping[str, str]]:
    """Says which body and headers an exception gets. Faults of ours are logged here."""
    if isinstance(error, HTTPException):
        return _body(error.status_code, str(error.detail)), error.headers or {}
    if isinstance(error, RequestValidationError):
        return _validation(error), {}
    if isinstance(error, ValidationError):
        return _mistake(describe_errors(error)[0]), {}
    if isinstance(error, UnknownIdError):
        body = _body(404, str(error), error.part)
        return body.model_copy(update={"type": "InvalidRequestError"}), {}
    if isinstance(error, RequestError):
        return _body(400, str(error), error.part), {}
    if isinstance(error, NotImplementedError):
        return _body(501, str(error)), {}
    if isinstance(error, QueueFullError):
        return _body(429, str(error)), {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if isinstance(error, DeadlineExceededError):
        return _body(408, str(error)), {}
    if isinstance(error, EngineRestartingError):
        return _body(503, str(error)), {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if isinstance(error, EngineStoppedError | EngineDiedError):
        # Said once by whoever ended it; the requests it took along need no traceback each.
        return _body(500, str(error)), {}
    _logger.error("a request failed: %s", error, exc_info=error)
    # Words of our own errors are meant for users; those of others may tell too much.
    message = str(error) if isinstance(error, EngineError) else "internal error"
    return _body(500, message), {}


def _validation(error: RequestValidationError) -> ErrorResponse:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return _body(400, f"the body is no valid JSON: {reason}")
    item = {**first, "loc": first["loc"][1:]}
    if not first["loc"][1:] and "error" not in first.get("ctx", {}):
        return _body(400, "the body must be a JSON object, with Content-Type: application/json")
    return _mistake(describe_mistake(item))


def _mistake(mistake: tuple[str, str]) -> ErrorResponse:
    path, reason = mistake
    return _body(400, f"{path}: {reason}", path)


def _body(status: int, message: str, param: str | None = None) -> ErrorResponse:
    kind = _TYPES.get(status, "BadRequestError" if status < 500 else "InternalServerError")
    return ErrorResponse(object="error", message=message, type=kind, param=param, code=status)
