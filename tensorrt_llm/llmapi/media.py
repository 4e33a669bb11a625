# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the media of a prompt dict: which items there are, in which order, with which ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorrt_llm.errors import RequestError, UnsupportedModalityError
from tensorrt_llm.inputs.media_decode import MODALITIES, resolve_options
from tensorrt_llm.inputs.multimodal_data import EmbeddingData

KNOWN_KEYS = (
    "prompt",
    "prompt_token_ids",
    "multi_modal_data",
    "multi_modal_embeddings",
    "multi_modal_uuids",
    "mm_processor_kwargs",
    "media_io_kwargs",
)


@dataclass(frozen=True, eq=False)
class MediaInput:
    """One item of ``multi_modal_data``, not loaded yet.

    Attributes:
        modality: Its key in ``multi_modal_data`` or ``multi_modal_embeddings``.
        source: Whatever `MediaLoader.load` takes.
        uuid: The caller's id from ``multi_modal_uuids``.
        part: Where it stood, for messages.
    """

    modality: str
    source: Any
    uuid: str | None
    part: str


def check_keys(inputs: Mapping[str, Any]) -> None:
    """Refuses keys of a prompt dict that this release does not know.

    Raises:
        RequestError: If there is one, or if the prompt is given twice. The message names it.
    """
    for key, value in inputs.items():
        if key not in KNOWN_KEYS and value is not None:
            raise RequestError(f"unknown key; known are {', '.join(KNOWN_KEYS)}", part=key)
    if inputs.get("prompt") is not None and inputs.get("prompt_token_ids") is not None:
        raise RequestError("a prompt is either prompt or prompt_token_ids, not both", part="prompt")


def read_media(inputs: Mapping[str, Any], modalities: tuple[str, ...]) -> list[MediaInput]:
    """Lists the media of a prompt dict, modality by modality, each in the order given.

    Args:
        inputs: A prompt dict.
        modalities: What the model takes beside text.

    Raises:
        UnsupportedModalityError: If the model does not take a modality.
        RequestError: If items and ids do not match in number, or there is media and embeddings.
    """
    data = _by_modality(inputs, "multi_modal_data")
    embeddings = _by_modality(inputs, "multi_modal_embeddings")
    if data and embeddings:
        raise RequestError(
            "a prompt has either multi_modal_data or multi_modal_embeddings, not both",
            part="multi_modal_embeddings",
        )
    all_uuids = inputs.get("multi_modal_uuids") or {}
    for modality in all_uuids:
        if modality not in data and modality not in embeddings:
            raise RequestError(f"names {modality}, which has no data", part="multi_modal_uuids")
    result: list[MediaInput] = []
    for key, given in (("multi_modal_data", data), ("multi_modal_embeddings", embeddings)):
        for modality, value in given.items():
            where = f"{key}.{modality}"
            if modality not in modalities:
                raise UnsupportedModalityError(modality, modalities, part=where)
            # A list holds items; everything else, a (samples, rate) tuple too, is one item.
            items = value if isinstance(value, list) else [value]
            if given is embeddings:
                items = [_rows(rows, f"{where}[{index}]") for index, rows in enumerate(items)]
            uuids = _read_uuids(modality, all_uuids.get(modality), len(items))
            result.extend(
                MediaInput(modality, item, uuid, f"{where}[{index}]")
                for index, (item, uuid) in enumerate(zip(items, uuids, strict=True))
            )
    return result


def _by_modality(inputs: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = inputs.get(key) or {}
    if not isinstance(value, Mapping):
        raise RequestError("must be a dict by modality", part=key)
    return {modality: items for modality, items in value.items() if items is not None}


def _rows(rows: Any, where: str) -> EmbeddingData:
    if isinstance(rows, EmbeddingData):
        return rows
    try:
        return EmbeddingData(rows)
    except TypeError as error:
        raise RequestError(str(error), part=where) from error
    except RequestError as error:
        raise error.at(where) from None


def read_io_options(media_io_kwargs: Any) -> dict[str, Mapping[str, Any]]:
    """Options for loading media, by modality, each as `MediaLoader.load` takes them.

    Args:
        media_io_kwargs: As in a request: ``{"image": {...}}``.

    Raises:
        RequestError: If it is no dict of dicts by modality, or an option is unknown or out of
            range.
    """
    where = "media_io_kwargs"
    if media_io_kwargs is None:
        return {}
    if not isinstance(media_io_kwargs, Mapping):
        raise RequestError(f"must be an object, not {type(media_io_kwargs).__name__}", part=where)
    options: dict[str, Mapping[str, Any]] = {}
    for modality, given in media_io_kwargs.items():
        if modality not in MODALITIES:
            known = ", ".join(MODALITIES)
            raise RequestError(f"{modality!r:.80} is no modality; known: {known}", part=where)
        if given is not None:
            # Checked here as well, so that a mistake is seen also where no such item is sent.
            resolve_options(modality, None, given)
            options[modality] = given
    return options


def _read_uuids(modality: str, value: Any, num_items: int) -> Sequence[str | None]:
    where = f"multi_modal_uuids.{modality}"
    if value is None:
        return [None] * num_items
    uuids = [value] if isinstance(value, str) else list(value)
    if len(uuids) != num_items:
        raise RequestError(
            f"UUID list length {len(uuids)} doesn't match the {num_items} data items", part=where
        )
    for uuid in uuids:
        if uuid is not None and not (isinstance(uuid, str) and uuid.strip()):
            raise RequestError(f"must be None or text that is not blank, got {uuid!r}", part=where)
    return uuids
