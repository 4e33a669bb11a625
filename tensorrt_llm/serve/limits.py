# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Default limits of a request. Apart, so that the command line can show them without the server."""

DEFAULT_MAX_REQUEST_BYTES = 320 * 2**20
"""Most bytes of a body: room for the largest piece of media in base64."""

DEFAULT_MAX_MEDIA_ITEMS = 128
"""Most pieces of media in a request."""

DEFAULT_MAX_HEADER_BYTES = 32 * 2**10
"""Most bytes of a request's path and headers."""

DEFAULT_MAX_STORED_BYTES = 512 * 2**20
"""Most bytes of all stored responses, with the media of their conversations, and of all files."""

DEFAULT_STORED_SECONDS = 24 * 3600
"""Time that responses and files are stored."""

MAX_THUMBNAILS = 1024
"""Most thumbnails that the page of the caches may be given."""

MAX_STORED = 10_000
"""Most responses that are stored, and most files."""
