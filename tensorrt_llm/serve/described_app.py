# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The application, with a description that promises only what it does."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

# The framework's own refusal of a body, and its shape; here such a refusal is 400.
_UNUSED_STATUS = "422"
_UNUSED_SHAPES = ("HTTPValidationError", "ValidationError")


class DescribedApp(FastAPI):
    """A FastAPI application that describes its refusals as they are."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        if self.openapi_schema is None:
            document = super().openapi()
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop(_UNUSED_STATUS, None)
            for name in _UNUSED_SHAPES:
                document["components"]["schemas"].pop(name, None)
        return self.openapi_schema or {}
