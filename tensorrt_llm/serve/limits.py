# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Default limits of a request. Apart, so that the command line can show them without the server."""

DEFAULT_MAX_REQUEST_BYTES = 320 * 2**20
"""Most bytes of a body: room for the largest piece of media in base64."""

DEFAULT_MAX_MEDIA_ITEMS = 128
"""Most pieces of media in a request."""
