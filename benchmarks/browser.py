# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a window, as the system has it: nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoBrowserError(RuntimeError):
    """This machine has no Chromium."""


def find_chromium() -> str:
    """Path of the system's Chromium; ``CHROMIUM`` names another one.

    Raises:
        NoBrowserError: If there is none.
    """
    wanted = os.environ.get("CHROMIUM")
    for name in (wanted,) if wanted else _NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise NoBrowserError(
        f"no Chromium ({wanted or ', '.join(_NAMES)}) on this machine: `make browser` installs "
        "Debian's, CHROMIUM=PATH names another"
    )


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Starts it.

    Raises:
        NoBrowserError: If there is none.
    """
    # Chromium's sandbox needs a user that is not root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    path = find_chromium()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
