# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Input processors: from a prompt and its media items to exact placeholder runs.

What is the same for every family is here: matching placeholders to items, expanding each to its
item's tokens, and the items' identities. A family says what its placeholders are, how one item is
preprocessed alone, and which options it takes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from tensorrt_llm.errors import (
    ConfigurationError,
    MediaError,
    PlaceholderMismatchError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.data import (
    DeferredContent,
    DeferredInputs,
    Digest,
    MediaItem,
    MediaSpan,
    ProcessedItem,
    ProcessedPrompt,
    StructuredPrompt,
)
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.model_config import load_config
from tensorrt_llm.inputs.multimodal_data import EmbeddingData, MediaHasher
from tensorrt_llm.inputs.multimodal_params import EMBEDDING_KEY
from tensorrt_llm.inputs.positions import position_shift, prompt_positions
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.tokenization import PromptTokenizer


@dataclass(frozen=True, eq=False)
class TokenizedPrompt:
    """A prompt text as tokens, its placeholders not expanded yet. Must not be changed.

    Attributes:
        text: The text.
        token_ids: int32 ``[n]``, one token for each placeholder.
        positions: Index of each placeholder's token, in prompt order.
        order: Index of the item that each stands for.
    """

    text: str
    token_ids: np.ndarray
    positions: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """About how many bytes the prompt takes."""
        # Four bytes a character at most, and two numbers of Python's for each placeholder.
        return 4 * len(self.text) + self.token_ids.nbytes + 72 * len(self.positions) + 256


class InputProcessor(ABC):
    """Makes processed prompts for one checkpoint. Immutable; safe to call from many threads.

    Args:
        model_path: Checkpoint folder. Nothing in it is executed.
        config: The checkpoint's configuration.
        tokenizer: Its tokenizer; never changed.
        hasher: Makes the items' identities.
    """

    modalities: tuple[str, ...] = ()
    """What the family takes beside text."""

    frame: tuple[str, str] = ("", "")
    """Text that belongs before and behind each placeholder, tokenised with what stands beside."""

    embedding_modalities: tuple[str, ...] = ()
    """Those of ``modalities`` whose items may come as rows (``EmbeddingData``)."""

    grid_modalities: tuple[str, ...] = ()
    """Those of ``embedding_modalities`` whose rows need a grid."""

    unidentified_modalities: tuple[str, ...] = ()
    """Those of ``modalities`` whose rows depend on more than ``prepare`` is given, so that nothing
    identifies them: a prompt shares nothing from such an item on."""

    def __init__(
        self,
        model_path: str,
        config: PretrainedConfig,
        tokenizer: PreTrainedTokenizerBase,
        hasher: MediaHasher,
    ) -> None:
        self.model_path = str(model_path)
        self.config = config
        self.tokenizer = tokenizer
        self._hasher = hasher
        self._tokenize = PromptTokenizer(tokenizer)
        self.read_settings()

    def read_settings(self) -> None:  # noqa: B027 - a family without settings reads none
        """Reads the checkpoint's processor settings: once, the last step of making a processor.

        Raises:
            ConfigurationError: If they are missing, or do not fit the encoder.
        """

    @abstractmethod
    def placeholder_token_id(self, modality: str) -> int:
        """The token that stands for an item of one of ``modalities``."""

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Checks a request's options and fills in the defaults. Here: there are none.

        Raises:
            RequestError: If an option is unknown or its value is out of range.
        """
        refuse_unknown_options(mm_processor_kwargs, ())
        return {}

    @property
    def row_width(self) -> int:
        """Values of an embedding row."""
        return int(self.config.get_text_config(decoder=True).hidden_size)

    def lay_out_rows(
        self, modality: str, num_rows: int, grid: tuple[int, int] | None
    ) -> PreparedItem:
        """The tokens of an item that came as rows; here nothing but a placeholder for each.

        Args:
            modality: One of ``embedding_modalities``.
            num_rows: How many rows there are.
            grid: Their lines and columns, for ``grid_modalities`` only.

        Raises:
            MediaError: If an item never has so many.
        """
        return PreparedItem.of_rows(
            self.placeholder_token_id(modality), num_rows, encoder_inputs={}
        )

    @abstractmethod
    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one item alone.

        Args:
            item: The item, of one of ``modalities``.
            options: Result of ``resolve_options``.
            present: Modalities of all items of the request.

        Returns:
            What depends on nothing but these three, so that it may be remembered for a repeat.

        Raises:
            MediaError: If the item is nothing the encoder can take.
        """

    def adapter_mode(self, present: frozenset[str]) -> str:
        """What the family selects from the modalities present; part of the block key's scope."""
        return ""

    def numbered_placeholder(self, modality: str) -> re.Pattern[str] | None:
        """Pattern of placeholders that name their item, counting from 1 in group 1, if any."""
        return None

    def placeholder_text(self, modality: str) -> str:
        """What stands in a prompt text for one item.

        Raises:
            UnsupportedModalityError: If the model does not take the modality.
        """
        self._check_modality(modality)
        token = self.tokenizer.convert_ids_to_tokens(self.placeholder_token_id(modality))
        assert isinstance(token, str)
        return token

    def locate_placeholders(
        self, text: str, items: Sequence[MediaItem], add_special_tokens: bool = True
    ) -> StructuredPrompt:
        """Finds the placeholders in a text that a trusted caller wrote as a whole.

        Accepts the tokenizer's own placeholder, the k-th of a modality standing for its k-th item,
        and the family's numbered form, which says its k.

        Args:
            text: The prompt. Special tokens in it are special.
            items: The media items.
            add_special_tokens: Whether the tokenizer shall add its own tokens.

        Raises:
            UnsupportedModalityError: If the model does not take an item's modality.
            PlaceholderMismatchError: If placeholders and items of a modality disagree.
        """
        self._check_items(items)
        found: list[tuple[int, int, str, int]] = []
        for modality in self.modalities:
            own = [index for index, item in enumerate(items) if item.modality == modality]
            found += self._locate_modality(text, modality, own)
        pieces, media = [], []
        done = length = 0
        for start, end, placeholder, item in sorted(found):
            pieces += [text[done:start], placeholder]
            length += start - done
            media.append(MediaSpan(length, length + len(placeholder), item))
            length += len(placeholder)
            done = end
        pieces.append(text[done:])
        return StructuredPrompt(
            "".join(pieces), media=tuple(media), add_special_tokens=add_special_tokens
        )

    def tokenize(self, prompt: StructuredPrompt) -> TokenizedPrompt:
        """Tokenises a located text; `process` takes the result as it takes the text.

        Raises:
            ConfigurationError: If a media placeholder is not one special token.
            RequestError: If the text cannot be written in tokens.
        """
        token_ids, positions = self._tokenize(prompt.framed(*self.frame))
        token_ids.setflags(write=False)
        order = tuple(span.item for span in prompt.media)
        return TokenizedPrompt(prompt.text, token_ids, tuple(positions), order)

    def process(
        self,
        prompt: StructuredPrompt | TokenizedPrompt | Sequence[int],
        items: Sequence[MediaItem],
        mm_processor_kwargs: Mapping[str, Any] | None = None,
        *,
        memo: MediaMemo | None = None,
        scope: str | None = None,
    ) -> ProcessedPrompt:
        """Tokenises, expands each placeholder to its item's tokens, and identifies the items.

        Args:
            prompt: A located text, tokenised or not, or token ids with one placeholder token for
                each item, the k-th of a modality standing for its k-th item.
            items: The media items, in any order.
            mm_processor_kwargs: The request's processor options.
            memo: Remembers items, so that those of a repeat are not preprocessed again before
                the engine looks at their encoder inputs.
            scope: Tenant whose memories may be used.

        Returns:
            The prompt, its items in prompt order.

        Raises:
            UnsupportedModalityError: If the model does not take an item's modality.
            PlaceholderMismatchError: If placeholders and items disagree.
            RequestError: If an option is unknown or out of range.
            MediaError: If an item is nothing the encoder can take.
        """
        self._check_items(items)
        options = self.resolve_options(mm_processor_kwargs or {})
        text: str | None = None
        positions: Sequence[int]
        order: Sequence[int]
        if isinstance(prompt, StructuredPrompt):
            prompt = self.tokenize(prompt)
        if isinstance(prompt, TokenizedPrompt):
            text, ids = prompt.text, prompt.token_ids
            positions, order = prompt.positions, prompt.order
            _check_order(order, len(items))
        else:
            ids = np.asarray(prompt, dtype=np.int32)
            positions, order = self._find_in_ids(ids, items)
        present = frozenset(item.modality for item in items)
        recalled = [self._recall(memo, scope, items[index], options, present) for index in order]
        token_ids, starts = _expand(ids, positions, [prepared for prepared, _ in recalled])
        processed = tuple(
            self._processed_item(items[index], *ready, start)
            for index, ready, start in zip(order, recalled, starts, strict=True)
        )
        places = [
            (start, ready.positions) for start, (ready, _) in zip(starts, recalled, strict=True)
        ]
        return ProcessedPrompt(
            token_ids,
            processed,
            text,
            self.adapter_mode(present),
            prompt_positions(len(token_ids), places),
            position_shift(places),
        )

    def _recall(
        self,
        memo: MediaMemo | None,
        scope: str | None,
        item: MediaItem,
        options: Mapping[str, Any],
        present: frozenset[str],
    ) -> tuple[PreparedItem, Mapping[str, torch.Tensor]]:
        """What is remembered of an item, with encoder inputs on demand; else prepares it."""
        digest = self._digest(item)
        if memo is None or digest is None:
            prepared = self._prepare(item, options, present)
            return prepared, prepared.encoder_inputs
        maker = (type(self).__qualname__, self.model_path)
        key = memo.item_key(digest, maker, item.modality, options, sorted(present), scope=scope)
        remembered: PreparedItem | None = memo.get(key)
        if remembered is None:
            prepared = self._prepare(item, options, present)
            light = prepared.without_inputs()
            memo.put(key, light, light.nbytes)
            return prepared, prepared.encoder_inputs
        inputs = DeferredInputs(lambda: self._prepare(item, options, present).encoder_inputs)
        return remembered, inputs

    def _digest(self, item: MediaItem) -> Digest | None:
        """What stands for an item's content; None where nothing can."""
        return None if item.modality in self.unidentified_modalities else item.payload_digest

    def _prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        try:
            if isinstance(item.content, EmbeddingData):
                return self._prepare_rows(item.modality, item.content)
            return self.prepare(item, options, present)
        except RequestError as error:
            if item.part is not None:
                error.at(item.part)
            raise

    def _prepare_rows(self, modality: str, given: EmbeddingData) -> PreparedItem:
        rows = given.as_tensor(self.row_width)
        if (given.grid is not None) != (modality in self.grid_modalities):
            raise MediaError(
                f"{modality} rows of this model "
                + (
                    "have no grid: give the rows alone"
                    if given.grid is not None
                    else "need a grid: give EmbeddingData(rows, grid=(lines, columns))"
                )
            )
        return replace(
            self.lay_out_rows(modality, rows.shape[0], given.grid),
            encoder_inputs={EMBEDDING_KEY: rows},
            context={"rows": "given"},
        )

    def _processed_item(
        self,
        item: MediaItem,
        prepared: PreparedItem,
        encoder_inputs: Mapping[str, torch.Tensor],
        start: int,
    ) -> ProcessedItem:
        identity = self._hasher.identity(
            item.modality, self._digest(item), prepared.context, item.uuid
        )
        return ProcessedItem(
            modality=item.modality,
            identity=identity,
            runs=prepared.runs(start),
            encoder_inputs=encoder_inputs,
            encoder_kwargs=prepared.encoder_kwargs,
            uuid=item.uuid,
            part=item.part,
            deferred=item.content if isinstance(item.content, DeferredContent) else None,
            grid=prepared.grid,
        )

    def _locate_modality(
        self, text: str, modality: str, own: Sequence[int]
    ) -> list[tuple[int, int, str, int]]:
        """Placeholders of one modality: (start, end, the tokenizer's own spelling, item)."""
        placeholder = self.placeholder_text(modality)
        pattern = re.escape(placeholder)
        numbered = self.numbered_placeholder(modality)
        if numbered is not None:
            pattern += f"|{numbered.pattern}"
        matches = list(re.finditer(pattern, text))
        if len(matches) != len(own):
            raise _mismatch(modality, len(matches), len(own))
        found, in_order = [], 0
        for match in matches:
            number = match[1] if numbered is not None else None
            index = in_order if number is None else int(number) - 1
            in_order += number is None
            if not 0 <= index < len(own):
                raise PlaceholderMismatchError(
                    f"{match[0]} names an {modality} that is not there: {len(own)} were given"
                )
            found.append((*match.span(), placeholder, own[index]))
        if len({item for *_, item in found}) != len(own):
            raise PlaceholderMismatchError(
                f"the placeholders in the prompt name one {modality} twice and another not at all: "
                f"{', '.join(match[0] for match in matches)}"
            )
        return found

    def _find_in_ids(
        self, ids: np.ndarray, items: Sequence[MediaItem]
    ) -> tuple[list[int], list[int]]:
        """Positions of placeholder tokens in prompt order, and the item that each stands for."""
        found: list[tuple[int, int]] = []
        for modality in self.modalities:
            positions = np.flatnonzero(ids == self.placeholder_token_id(modality)).tolist()
            own = [index for index, item in enumerate(items) if item.modality == modality]
            if len(positions) != len(own):
                raise _mismatch(modality, len(positions), len(own))
            found += zip(positions, own, strict=True)
        found.sort()
        return [position for position, _ in found], [item for _, item in found]

    def _check_items(self, items: Sequence[MediaItem]) -> None:
        for item in items:
            self._check_modality(item.modality, item.part)
            rows = isinstance(item.content, EmbeddingData)
            if rows and item.modality not in self.embedding_modalities:
                raise RequestError(
                    f"this model takes no precomputed {item.modality} embeddings; send the "
                    f"{item.modality} itself",
                    part=item.part,
                )

    def _check_modality(self, modality: str, part: str | None = None) -> None:
        if modality not in self.modalities:
            raise UnsupportedModalityError(modality, self.modalities, part=part)


def _mismatch(modality: str, placeholders: int, items: int) -> PlaceholderMismatchError:
    return PlaceholderMismatchError(
        f"the prompt has {placeholders} {modality} placeholders, but {items} {modality} items "
        "were given"
    )


def _check_order(order: Sequence[int], num_items: int) -> None:
    if sorted(order) != list(range(num_items)):
        raise PlaceholderMismatchError(
            f"the prompt has placeholders for items {sorted(order)}, but {num_items} items were "
            "given"
        )


def _expand(
    ids: np.ndarray, positions: Sequence[int], prepared: Sequence[PreparedItem]
) -> tuple[np.ndarray, list[int]]:
    """Puts each item's tokens in place of its placeholder; gives where each begins."""
    pieces, starts = [], []
    done = length = 0
    for position, item in zip(positions, prepared, strict=True):
        pieces += [ids[done:position], item.token_ids]
        starts.append(length + position - done)
        length += position - done + len(item.token_ids)
        done = position + 1
    pieces.append(ids[done:])
    return np.concatenate(pieces, dtype=np.int32), starts


def fingerprint(version: str, settings: Any) -> str:
    """Short name of how a processor works.

    Args:
        version: Changes whenever the code gives other results for the same settings.
        settings: The checkpoint's processor settings, JSON-like.
    """
    text = json.dumps([version, settings], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def refuse_unknown_options(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises a RequestError that names the first unknown option and the known ones."""
    for name in given:
        if name not in known:
            takes = ", ".join(known) if known else "none"
            raise RequestError(
                f"unknown processor option {name!r}; this model takes: {takes}",
                part="mm_processor_kwargs",
            )


_Processor = TypeVar("_Processor", bound=type[InputProcessor])


class InputProcessorRegistry:
    """Which processor serves which ``model_type``."""

    def __init__(self) -> None:
        self._classes: dict[str, type[InputProcessor]] = {}

    def register(self, *model_types: str) -> Callable[[_Processor], _Processor]:
        """Class decorator: this class serves checkpoints of these ``model_type``s.

        Raises:
            ValueError: If one of them is taken.
        """

        def add(processor_class: _Processor) -> _Processor:
            for model_type in model_types:
                taken = self._classes.setdefault(model_type, processor_class)
                if taken is not processor_class:
                    raise ValueError(f"{model_type!r} is already served by {taken.__name__}")
            return processor_class

        return add

    def find(self, config: PretrainedConfig) -> type[InputProcessor] | None:
        """The class for a configuration, None if its ``model_type`` is not registered."""
        return self._classes.get(config.model_type)

    @property
    def model_types(self) -> tuple[str, ...]:
        """The registered ``model_type``s, sorted."""
        return tuple(sorted(self._classes))


INPUT_PROCESSORS = InputProcessorRegistry()
"""The families of this package. Filled while `processors` is imported, read-only afterwards."""

register_input_processor = INPUT_PROCESSORS.register


def create_input_processor(
    model_path: str,
    tokenizer: PreTrainedTokenizerBase,
    hasher: MediaHasher,
    config: PretrainedConfig | None = None,
) -> InputProcessor:
    """Makes the input processor of a checkpoint.

    Args:
        model_path: Checkpoint folder. Nothing in it is executed.
        tokenizer: Its tokenizer.
        hasher: Makes the items' identities.
        config: Its configuration; read from the folder if not given.

    Raises:
        ConfigurationError: If the configuration cannot be read, or the model takes media and no
            processor knows its family.
    """
    processors = importlib.import_module("tensorrt_llm.inputs.processors")
    if config is None:
        config = load_config(model_path)
    processor_class = INPUT_PROCESSORS.find(config)
    if processor_class is None:
        if takes_media(config):
            raise ConfigurationError(
                f"no input processor for model_type {config.model_type!r}; multimodal families: "
                f"{', '.join(INPUT_PROCESSORS.model_types)}"
            )
        processor_class = processors.TextInputProcessor
    return processor_class(model_path, config, tokenizer, hasher)


def takes_media(config: PretrainedConfig) -> bool:
    """Whether a configuration describes encoders beside the decoder."""
    parts = ("vision_config", "audio_config", "video_config", "embd_layer", "mm_vision_tower")
    return any(getattr(config, part, None) is not None for part in parts)
