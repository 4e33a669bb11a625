# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which status and words each failure gets."""

from __future__ import annotations

import json
import logging

import pytest
from starlette.exceptions import HTTPException

from tensorrt_llm.errors import (
    EmbeddingMismatchError,
    EngineStoppedError,
    LimitExceededError,
    MediaBlockedError,
    QueueFullError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.serve.errors import error_event, error_response


@pytest.mark.parametrize(
    ("error", "status", "kind", "param"),
    [
        (RequestError("no", part="messages[0]"), 400, "BadRequestError", "messages[0]"),
        (MediaBlockedError("no"), 400, "BadRequestError", None),
        (LimitExceededError("max_seq_len", 9, 8, "tokens"), 400, "BadRequestError", None),
        (UnsupportedModalityError("video", ("image",)), 400, "BadRequestError", None),
        (QueueFullError("full"), 429, "RateLimitError", None),
        (NotImplementedError("later"), 501, "NotImplementedError", None),
        (HTTPException(404), 404, "NotFoundError", None),
        (HTTPException(405), 405, "MethodNotAllowedError", None),
        (EmbeddingMismatchError("image", 3, 4), 500, "InternalServerError", None),
        (EngineStoppedError("stopped"), 500, "InternalServerError", None),
        (ZeroDivisionError("secret"), 500, "InternalServerError", None),
    ],
)
def test_status_and_body(error: Exception, status: int, kind: str, param: str | None) -> None:
    response = error_response(error)
    body = json.loads(response.body)
    assert response.status_code == status
    assert list(body) == ["object", "message", "type", "param", "code"]
    assert (body["object"], body["type"], body["param"], body["code"]) == (
        "error",
        kind,
        param,
        status,
    )


def test_messages_carry_the_part_and_both_numbers() -> None:
    error = LimitExceededError("max_seq_len", 9, 8, "tokens", part="messages")
    message = json.loads(error_response(error).body)["message"]
    assert message == "messages: 9 tokens exceed max_seq_len (8 tokens)"


def test_a_full_queue_says_when_to_come_back() -> None:
    assert int(error_response(QueueFullError("full")).headers["Retry-After"]) >= 1


def test_our_faults_are_logged_and_tell_clients_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "tensorrt_llm"):
        body = error_response(ZeroDivisionError("secret")).body
        assert "secret" not in bytes(body).decode()
        error_response(RequestError("the caller's"))
    (record,) = caplog.records
    assert record.exc_info is not None and "secret" in record.getMessage()


def test_inside_a_stream_the_error_has_openais_shape() -> None:
    assert json.loads(error_event(EmbeddingMismatchError("image", 3, 4)))["error"] == {
        "message": "the image encoder gave 3 rows for a placeholder run of 4 tokens",
        "type": "server_error",
        "code": 500,
        "param": None,
    }
    event = json.loads(error_event(RequestError("no", part="messages[0]")))["error"]
    assert (event["type"], event["param"]) == ("BadRequestError", "messages[0]")
