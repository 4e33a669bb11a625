# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Media that is kept is decoded once for each way of decoding it, whatever the memo forgets."""

from __future__ import annotations

import numpy as np
import pytest
from support.media import image_bytes, picture

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.kept_media import KeptMedia
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.multimodal_data import MediaHasher


@pytest.mark.parametrize("kind", ["PNG", "BMP"])
def test_a_repeat_costs_nothing_and_is_the_same_item(kind: str) -> None:
    loader = MediaLoader(MediaAccess(trusted=True), MediaHasher())
    data = image_bytes(picture(5), kind)
    kept, expected = KeptMedia("image", data), loader.load("image", data)
    items = [kept.item(loader, part="p", uuid="u") for _ in range(3)]
    assert loader.decodes == 2, "once to compare with, once here"
    for item in items:
        assert (item.modality, item.part, item.uuid) == ("image", "p", "u")
        assert item.payload_digest == expected.payload_digest
    assert (np.asarray(items[2].data) == np.asarray(expected.data)).all()
    assert loader.decodes == 3, "its content was asked for"
    kept.item(loader)
    assert loader.decodes == 3


def test_other_options_are_another_way() -> None:
    loader = MediaLoader(MediaAccess(trusted=True), MediaHasher())
    clear = picture(6).convert("RGBA")
    clear.putalpha(100)
    kept = KeptMedia("image", image_bytes(clear))
    ways = [None, {"rgba_background_color": [0, 0, 0]}, {"rgba_background_color": [9, 9, 9]}]
    digests = [[kept.item(loader, options=way).payload_digest for way in ways] for _ in range(2)]
    assert digests[0] == digests[1] and len(set(digests[0])) == 3
    assert loader.decodes == 3
    with pytest.raises(RequestError):
        kept.item(loader, options={"nonsense": 1})
