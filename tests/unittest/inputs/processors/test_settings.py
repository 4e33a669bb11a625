# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import numpy as np
import pytest

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.processors.settings import normalised, read_image_settings


@pytest.mark.parametrize("shape", [(3,), (5, 4, 3), (2, 5, 4, 3)])
def test_colours_are_brought_to_mean_and_deviation(shape) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    mean, std = (0.1, 0.5, 0.9), (0.5, 0.25, 2.0)
    found = normalised(pixels, mean, std)
    assert found.dtype == np.float32 and found.shape == shape
    expected = (pixels / 255 - np.array(mean)) / np.array(std)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("nested", [False, True])
def test_settings_are_found_in_both_layouts(tmp_path, nested) -> None:
    values = {"image_mean": [1, 2, 3]}
    name = "processor_config.json" if nested else "preprocessor_config.json"
    content = {"image_processor": values} if nested else values
    (tmp_path / name).write_text(json.dumps(content))
    assert read_image_settings(str(tmp_path), ["image_mean"]) == values
    with pytest.raises(ConfigurationError, match="no image settings"):
        read_image_settings(str(tmp_path), ["size"])
