# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

import pytest

from tensorrt_llm import inputs


@pytest.mark.parametrize("name", inputs.__all__)
def test_every_public_name_resolves(name):
    assert getattr(inputs, name) is not None
    assert name in dir(inputs)


def test_other_names_do_not():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = inputs.no_such_name


def test_importing_the_package_imports_no_media_library():
    heavy = ("soundfile", "soxr", "PIL", "httpx", "transformers")
    script = f"import sys, tensorrt_llm.inputs; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
