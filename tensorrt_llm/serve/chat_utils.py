# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the messages of a chat request, part by part, in the order sent.

Whatever is wrong is named by where it stands, for example ``messages[0].content[1]``. Nothing is
skipped: a part that cannot be used refuses the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorrt_llm.errors import LimitExceededError, RequestError, UnsupportedModalityError
from tensorrt_llm.inputs.encoded_text import EncodedText

ROLES = {
    "system": "system",
    # OpenAI's newer name; templates know the older one.
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
DETAILS = ("auto", "low", "high")

# Fields of a message that OpenAI's own answers carry, and clients send back, with nothing in them.
_EMPTY_MESSAGE_FIELDS = ("tool_calls", "function_call", "refusal", "audio", "annotations")


@dataclass(frozen=True)
class TextSource:
    """A piece of text of a message."""

    text: str


@dataclass(frozen=True)
class MediaSource:
    """A piece of media of a message, not loaded yet.

    Attributes:
        modality: ``"image"`` or ``"audio"``.
        url: Where it is, unless ``data`` holds it.
        data: Its bytes in base64.
        format: Format of ``data``, as the client names it.
        uuid: The caller's id.
        part: Where it stood in the request.
    """

    modality: str
    part: str
    url: str | EncodedText | None = None
    data: str | EncodedText | None = None
    format: str | None = None
    uuid: str | None = None


Source: TypeAlias = "TextSource | MediaSource"


@dataclass(frozen=True)
class ParsedMessage:
    """A message with its content in order: plain text, or a list of parts."""

    role: str
    content: str | tuple[Source, ...]

    @property
    def media(self) -> tuple[MediaSource, ...]:
        """Its pieces of media."""
        if isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if isinstance(part, MediaSource))


def parse_messages(
    messages: Sequence[Mapping[str, Any]],
    modalities: tuple[str, ...],
    max_media_items: int,
    limit_mm_per_prompt: Mapping[str, int] | None = None,
) -> list[ParsedMessage]:
    """Reads all messages of a chat request.

    Args:
        messages: As the client sent them.
        modalities: What the model takes beside text.
        max_media_items: Most pieces of media in the request.
        limit_mm_per_prompt: Most pieces by modality, for those that have such a limit.

    Raises:
        RequestError: If something is wrong; its ``part`` says where.
    """
    parsed = [
        _parse_message(message, f"messages[{index}]", modalities)
        for index, message in enumerate(messages)
    ]
    counts = Counter(source.modality for message in parsed for source in message.media)
    limits = {
        f"limit_mm_per_prompt.{m}": (counts[m], n) for m, n in (limit_mm_per_prompt or {}).items()
    }
    limits["max_media_items"] = (counts.total(), max_media_items)
    for name, (count, most) in limits.items():
        if count > most:
            raise LimitExceededError(name, count, most, "items", part="messages")
    return parsed


def _parse_message(
    message: Mapping[str, Any], where: str, modalities: tuple[str, ...]
) -> ParsedMessage:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise RequestError(f"must be one of {', '.join(ROLES)}, got {role!r}", part=f"{where}.role")
    for name in _EMPTY_MESSAGE_FIELDS:
        if message.get(name):
            raise RequestError("is not available in this release", part=f"{where}.{name}")
    _refuse_unknown(message, ("role", "content", "name", *_EMPTY_MESSAGE_FIELDS), where)
    return ParsedMessage(
        ROLES[role], _parse_content(message.get("content"), f"{where}.content", modalities)
    )


def _parse_content(
    content: Any, where: str, modalities: tuple[str, ...]
) -> str | tuple[Source, ...]:
    if isinstance(content, str):
        return _plain(content, where)
    if not isinstance(content, list) or not content:
        raise RequestError(f"must be text or a list of parts, got {content!r:.80}", part=where)
    return tuple(
        _parse_part(part, f"{where}[{index}]", modalities) for index, part in enumerate(content)
    )


def _parse_part(part: Any, where: str, modalities: tuple[str, ...]) -> Source:
    if isinstance(part, str):
        return TextSource(_plain(part, where))
    if not isinstance(part, dict):
        raise RequestError(f"must be an object, got {part!r:.80}", part=where)
    kind = part.get("type")
    parse = _PART_TYPES.get(kind) if isinstance(kind, str) else None
    if parse is None:
        known = ", ".join(_PART_TYPES)
        raise RequestError(f"type must be one of {known}, got {kind!r:.80}", part=where)
    source = parse(part, where)
    if isinstance(source, MediaSource) and source.modality not in modalities:
        raise UnsupportedModalityError(source.modality, modalities, part=where)
    return source


def _text(part: Mapping[str, Any], where: str) -> Source:
    _refuse_unknown(part, ("type", "text"), where)
    if not isinstance(part.get("text"), str):
        raise RequestError(f"text must be a string, got {part.get('text')!r:.80}", part=where)
    return TextSource(_plain(part["text"], where))


def _plain(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # JSON can spell half of a surrogate pair, which is no character.
        raise RequestError(f"no valid Unicode text: {error.reason}", part=where) from error
    return text


def _by_url(modality: str, field: str) -> Callable[[Mapping[str, Any], str], Source]:
    """A parser of parts that hold a URL under ``field``, as a string or as ``{"url": ...}``."""

    def parse(part: Mapping[str, Any], where: str) -> Source:
        _refuse_unknown(part, ("type", field, "uuid", "detail"), where)
        value = part.get(field)
        if isinstance(value, dict):
            _refuse_unknown(value, ("url", "detail"), f"{where}.{field}")
            url, detail = value.get("url"), value.get("detail", part.get("detail"))
        else:
            url, detail = value, part.get("detail")
        if not _is_there(url):
            raise RequestError(
                f'{field} must be a URL or {{"url": ...}}, got {value!r:.80}', part=where
            )
        if detail is not None and detail not in DETAILS:
            raise RequestError(
                f"detail must be one of {', '.join(DETAILS)}, got {detail!r:.80}", part=where
            )
        return MediaSource(modality, where, url=url, uuid=_uuid(part, where))

    return parse


def _input_audio(part: Mapping[str, Any], where: str) -> Source:
    _refuse_unknown(part, ("type", "input_audio", "uuid"), where)
    value = part.get("input_audio")
    if not isinstance(value, dict):
        raise RequestError(
            f'input_audio must be {{"data": ..., "format": ...}}, got {value!r:.80}', part=where
        )
    _refuse_unknown(value, ("data", "format"), f"{where}.input_audio")
    data, kind = value.get("data"), value.get("format")
    if not _is_there(data):
        raise RequestError("input_audio.data must be audio in base64", part=where)
    if kind is not None and not isinstance(kind, str):
        raise RequestError(f"input_audio.format must be a string, got {kind!r:.80}", part=where)
    return MediaSource("audio", where, data=data, format=kind, uuid=_uuid(part, where))


_PART_TYPES: Mapping[str, Callable[[Mapping[str, Any], str], Source]] = {
    "text": _text,
    "image_url": _by_url("image", "image_url"),
    "input_image": _by_url("image", "image_url"),
    "audio_url": _by_url("audio", "audio_url"),
    "input_audio": _input_audio,
    "video_url": _by_url("video", "video_url"),
}


def _is_there(text: Any) -> bool:
    """Whether it is text that is not blank; long text is not."""
    return isinstance(text, EncodedText) or (isinstance(text, str) and bool(text.strip()))


def _uuid(part: Mapping[str, Any], where: str) -> str | None:
    uuid = part.get("uuid")
    if uuid is None or (isinstance(uuid, str) and uuid.strip()):
        return uuid
    raise RequestError(f"uuid must be text that is not blank, got {uuid!r:.80}", part=where)


def _refuse_unknown(value: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in value:
        if name not in known:
            raise RequestError("unknown field", part=f"{where}.{name}")
