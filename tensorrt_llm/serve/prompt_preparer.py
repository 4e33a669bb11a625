# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From the body of a request to a prompt that the engine takes: media, template, tokens.

What takes time runs in threads of its own, so that the event loop never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from tensorrt_llm.errors import RequestError, UnsupportedModalityError
from tensorrt_llm.inputs.chat_template import MediaPart, TextPart
from tensorrt_llm.inputs.data import MediaItem, ProcessedPrompt
from tensorrt_llm.inputs.kept_media import KeptMedia
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.llmapi.media import read_io_options
from tensorrt_llm.llmapi.preprocessor import ChatOptions, Preprocessor
from tensorrt_llm.serve.chat_utils import (
    FileLookup,
    MediaSource,
    ParsedMessage,
    Source,
    TextSource,
    no_files,
    parse_messages,
)
from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest
from tensorrt_llm.serve.thumbnails import Thumbnails
from tensorrt_llm.serve.tool_use import ToolUse

_MEDIA_THREADS = 16
_PREPARE_THREADS = 4

# A text of so many characters is a prompt before another thread would have begun with it.
_SHORT_CHARACTERS = 512
# What a template writes around each.
_PART_CHARACTERS = 16

_Value = TypeVar("_Value")


class PromptPreparer:
    """Makes prompts of what requests hold.

    Args:
        preprocessor: The model's own.
        loader: Loads the media that requests name.
        max_items: Most pieces of media in a request.
        limits: Most pieces by modality.
        tools: Knows how the model takes tools.
        thumbnails: Are made of what was decoded; None where nobody is to see any.
    """

    def __init__(
        self,
        preprocessor: Preprocessor,
        loader: MediaLoader,
        max_items: int,
        limits: Mapping[str, int],
        tools: ToolUse,
        thumbnails: Thumbnails | None = None,
    ) -> None:
        self._preprocessor = preprocessor
        self._loader = loader
        self._max_items = max_items
        self._limits = limits
        self._tools = tools
        self._thumbnails = thumbnails
        # Apart, so that slow downloads never keep prompts without media waiting.
        self._media_threads = ThreadPoolExecutor(_MEDIA_THREADS, "media")
        self._prepare_threads = ThreadPoolExecutor(_PREPARE_THREADS, "prepare")

    def close(self) -> None:
        """Takes no more work; what has not begun is dropped."""
        for threads in (self._media_threads, self._prepare_threads):
            threads.shutdown(wait=False, cancel_futures=True)

    async def conversation(
        self, body: ChatCompletionRequest, files: FileLookup = no_files
    ) -> ProcessedPrompt:
        """The prompt of a conversation; ``files`` gives uploaded media by id.

        Raises:
            RequestError: If something in it is wrong. Names the part.
        """
        return await self.dialogue(self.read(body, files=files), body)

    def read(
        self,
        body: ChatCompletionRequest,
        earlier: Sequence[ParsedMessage] = (),
        files: FileLookup = no_files,
    ) -> list[ParsedMessage]:
        """The messages of a conversation, after earlier ones that were read before.

        Raises:
            RequestError: If something in them is wrong. Names the part.
        """
        return parse_messages(
            body.messages,
            self._preprocessor.modalities,
            self._max_items,
            self._limits,
            earlier,
            files,
        )

    async def check_kept(self, media: KeptMedia, scope: str | None) -> None:
        """Decodes media that is to be kept, and remembers what it is.

        Raises:
            RequestError: If it cannot be read, or the model does not take it.
        """
        known = self._preprocessor.modalities
        if media.modality not in known:
            raise UnsupportedModalityError(media.modality, known)
        await _in(self._media_threads, partial(media.item, self._loader, scope=scope))

    async def keep(self, messages: Sequence[ParsedMessage]) -> list[ParsedMessage]:
        """The messages with the bytes of their media, which come from elsewhere only this once.

        Raises:
            RequestError: If media cannot be had. Names the part.
        """
        loader = self._loader.for_request()

        async def kept(source: Source) -> Source:
            if isinstance(source, TextSource) or source.kept is not None:
                return source
            return await _in(self._media_threads, _kept, loader, source)

        result = []
        for message in messages:
            content = message.content
            if not isinstance(content, str):
                content = tuple(await all_of(kept(source) for source in content))
            result.append(replace(message, content=content))
        return result

    def at_once(
        self, messages: Sequence[ParsedMessage], body: ChatCompletionRequest
    ) -> ProcessedPrompt | None:
        """As ``dialogue``, where that takes less than handing it to another thread; else None."""
        if body.tools or not _is_short(messages):
            return None
        read_io_options(body.media_io_kwargs)
        return self._preparation(messages, body)([])

    async def dialogue(
        self, messages: Sequence[ParsedMessage], body: ChatCompletionRequest
    ) -> ProcessedPrompt:
        """The prompt of messages that were read, with the options of a request.

        Raises:
            RequestError: If something in them is wrong. Names the part.
        """
        sources = [source for message in messages for source in message.media]
        prepare = self._preparation(messages, body)
        io_options = read_io_options(body.media_io_kwargs)
        # One URL named twice in a request is one thing, and fetched once.
        loader = self._loader.for_request()
        load = partial(_load, loader, io_options=io_options, scope=body.cache_salt)
        if len(sources) == 1:
            # The thread that has loaded the item goes on: handing over costs more than a repeat.
            return await _in(self._media_threads, lambda: prepare([load(sources[0])]))
        items = await all_of(_in(self._media_threads, load, source) for source in sources)
        return await self.in_thread(prepare, items)

    def _preparation(
        self, messages: Sequence[ParsedMessage], body: ChatCompletionRequest
    ) -> Callable[[Sequence[MediaItem]], ProcessedPrompt]:
        """What makes the prompt once all media are loaded."""
        options = ChatOptions(
            add_generation_prompt=body.add_generation_prompt,
            add_special_tokens=body.add_special_tokens,
            template_kwargs=body.chat_template_kwargs,
            tools=self._tools.told(body),
            opening=self._tools.opening(body),
        )

        def prepare(items: Sequence[MediaItem]) -> ProcessedPrompt:
            with naming("messages"):
                prompt = self._preprocessor.process_chat(
                    _with_items(messages),
                    items,
                    options,
                    body.mm_processor_kwargs,
                    body.cache_salt,
                )
            if self._thumbnails is not None:
                self._thumbnails.remember(body.cache_salt, items, prompt)
            return prompt

        return prepare

    async def plain(
        self,
        prompt: str | list[int],
        part: str,
        *,
        add_special_tokens: bool,
        cache_salt: str | None = None,
    ) -> ProcessedPrompt:
        """A prompt given as text or token ids.

        Raises:
            RequestError: If something in it is wrong. Names ``part``.
        """
        process = partial(
            self._preprocessor.process_inputs,
            loader=self._loader,
            add_special_tokens=add_special_tokens,
            scope=cache_salt,
        )
        with naming(part):
            return await self.in_thread(process, prompt)

    async def in_thread(self, work: Callable[..., _Value], *args: Any) -> _Value:
        """Runs what takes time without holding up the event loop."""
        return await _in(self._prepare_threads, work, *args)


async def _in(threads: ThreadPoolExecutor, work: Callable[..., _Value], *args: Any) -> _Value:
    return await asyncio.get_running_loop().run_in_executor(threads, work, *args)


async def all_of(work: Iterable[Coroutine[Any, Any, _Value]]) -> list[_Value]:
    """Runs coroutines side by side; the first failure is raised."""
    return list(await asyncio.gather(*work))


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Names the part of the request that a mistake is in, where it names none itself."""
    try:
        yield
    except RequestError as error:
        error.at(part)
        raise


def _load(
    loader: MediaLoader,
    source: MediaSource,
    *,
    io_options: Mapping[str, Mapping[str, Any]],
    scope: str | None,
) -> MediaItem:
    if source.kept is not None:
        return source.kept.item(
            loader,
            part=source.part,
            uuid=source.uuid,
            options=io_options.get(source.modality),
            scope=scope,
        )
    how = partial(
        loader.load if source.data is None else loader.load_base64,
        source.modality,
        part=source.part,
        uuid=source.uuid,
        options=io_options.get(source.modality),
        scope=scope,
    )
    return how(source.url) if source.data is None else how(source.data, source.format)


def _kept(loader: MediaLoader, source: MediaSource) -> MediaSource:
    in_base64 = source.data is not None
    data = loader.read(source.data if in_base64 else source.url, base64=in_base64, part=source.part)
    return MediaSource(
        source.modality, source.part, uuid=source.uuid, kept=KeptMedia(source.modality, data)
    )


def _is_short(messages: Sequence[ParsedMessage]) -> bool:
    """Whether these are a few words, and no media."""
    characters = 0
    for message in messages:
        parts = (message.content,) if isinstance(message.content, str) else message.content
        for part in parts:
            if isinstance(part, MediaSource):
                return False
            characters += _PART_CHARACTERS + len(part if isinstance(part, str) else part.text)
        if message.more or characters > _SHORT_CHARACTERS:
            return False
    return True


def _with_items(messages: Sequence[ParsedMessage]) -> list[dict[str, Any]]:
    """Messages as templates take them, each media part naming the next item."""
    result: list[dict[str, Any]] = []
    item = 0
    for message in messages:
        content: Any = message.content
        if not isinstance(content, str):
            parts: list[TextPart | MediaPart] = []
            for source in content:
                if isinstance(source, MediaSource):
                    parts.append(MediaPart(source.modality, item))
                    item += 1
                else:
                    parts.append(TextPart(source.text))
            content = parts
        result.append({"role": message.role, "content": content, **message.more})
    return result
