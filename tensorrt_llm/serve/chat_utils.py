# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the messages of a chat request, part by part, in the order sent.

Whatever is wrong is named by where it stands, for example ``messages[0].content[1]``. Nothing is
skipped: a part that cannot be used refuses the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tensorrt_llm.errors import LimitExceededError, RequestError, UnsupportedModalityError
from tensorrt_llm.inputs.encoded_text import EncodedText
from tensorrt_llm.inputs.kept_media import KeptMedia
from tensorrt_llm.serve.tool_messages import TOOL_FIELDS, read_tool_fields

ROLES = {
    "system": "system",
    # OpenAI's newer name; templates know the older one.
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
DETAILS = ("auto", "low", "high")

# Fields of a message that OpenAI's own answers carry, and clients send back, with nothing in them.
_EMPTY_MESSAGE_FIELDS = ("function_call", "refusal", "audio", "annotations")


@dataclass(frozen=True)
class TextSource:
    """A piece of text of a message."""

    text: str


@dataclass(frozen=True)
class MediaSource:
    """A piece of media of a message, not loaded yet.

    Attributes:
        modality: ``"image"``, ``"audio"`` or ``"video"``.
        url: Where it is, unless ``data`` holds it.
        data: Its bytes in base64.
        format: Format of ``data``, as the client names it.
        uuid: The caller's id.
        part: Where it stood in the request.
        kept: What an earlier request left with the server, instead of the above.
        file_id: The id of an uploaded file, until it is looked up.
    """

    modality: str
    part: str
    url: str | EncodedText | None = None
    data: str | EncodedText | None = None
    format: str | None = None
    uuid: str | None = None
    kept: KeptMedia | None = None
    file_id: str | None = None


Source: TypeAlias = "TextSource | MediaSource"
FileLookup: TypeAlias = Callable[[str], "KeptMedia | None"]

ANY_MODALITY = ""
"""Stands where a part names a file, and the file says what it is."""


def no_files(file_id: str) -> None:
    """Looks up files where none are kept."""


@dataclass(frozen=True)
class _Context:
    """What parts are read against: what the model takes, and what was uploaded."""

    modalities: tuple[str, ...]
    files: FileLookup


@dataclass(frozen=True)
class ParsedMessage:
    """A message with its content in order: plain text, or a list of parts.

    Attributes:
        role: Who speaks, as templates know it.
        content: What is said.
        more: Further fields for the template: calls of tools, and what a result is of.
    """

    role: str
    content: str | tuple[Source, ...]
    more: Mapping[str, Any] = field(default_factory=dict)

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
    earlier: Sequence[ParsedMessage] = (),
    files: FileLookup = no_files,
) -> list[ParsedMessage]:
    """Reads all messages of a chat request.

    Args:
        messages: As the client sent them.
        modalities: What the model takes beside text.
        max_media_items: Most pieces of media in the request.
        limit_mm_per_prompt: Most pieces by modality, for those that have such a limit.
        earlier: Messages before these, which were read for an earlier request.
        files: Gives uploaded media by id; None where there is none.

    Returns:
        All messages, the earlier ones first.

    Raises:
        RequestError: If something is wrong; its ``part`` says where.
    """
    context = _Context(modalities, files)
    parsed = [
        *earlier,
        *(
            _parse_message(message, f"messages[{index}]", context)
            for index, message in enumerate(messages)
        ),
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


def _parse_message(message: Mapping[str, Any], where: str, context: _Context) -> ParsedMessage:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise RequestError(f"must be one of {', '.join(ROLES)}, got {role!r}", part=f"{where}.role")
    for name in _EMPTY_MESSAGE_FIELDS:
        if message.get(name):
            raise RequestError("is not available in this release", part=f"{where}.{name}")
    known = ("role", "content", "name", *TOOL_FIELDS, *_EMPTY_MESSAGE_FIELDS)
    _refuse_unknown(message, known, where)
    more = read_tool_fields(message, role, where)
    content = message.get("content")
    if content is None and "tool_calls" in more:
        content = ""
    return ParsedMessage(ROLES[role], _parse_content(content, f"{where}.content", context), more)


def _parse_content(content: Any, where: str, context: _Context) -> str | tuple[Source, ...]:
    if isinstance(content, str):
        return _plain(content, where)
    if not isinstance(content, list) or not content:
        raise RequestError(f"must be text or a list of parts, got {content!r:.80}", part=where)
    return tuple(
        _parse_part(part, f"{where}[{index}]", context) for index, part in enumerate(content)
    )


def _parse_part(part: Any, where: str, context: _Context) -> Source:
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
    if isinstance(source, MediaSource):
        source = _from_file(source, context)
        if source.modality not in context.modalities:
            raise UnsupportedModalityError(source.modality, context.modalities, part=where)
    return source


def _from_file(source: MediaSource, context: _Context) -> MediaSource:
    """The piece of media that a part names by the id of a file."""
    if source.file_id is None:
        return source
    kept = context.files(source.file_id)
    if kept is None:
        raise RequestError(
            f"there is no file {source.file_id!r:.80}: it was never uploaded, has expired or was "
            "deleted, or had another cache_salt",
            part=source.part,
        )
    if source.modality not in (ANY_MODALITY, kept.modality):
        raise RequestError(
            f"file {source.file_id!r:.80} is {kept.modality}, not {source.modality}",
            part=source.part,
        )
    return replace(source, modality=kept.modality, kept=kept, file_id=None)


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
        _refuse_unknown(part, ("type", field, "file_id", "uuid", "detail"), where)
        value, file = part.get(field), part.get("file_id")
        if isinstance(value, dict):
            _refuse_unknown(value, ("url", "file_id", "detail"), f"{where}.{field}")
            file = value.get("file_id", file)
            url, detail = value.get("url"), value.get("detail", part.get("detail"))
        else:
            url, detail = value, part.get("detail")
        if not _is_there(url) and (url is not None or file is None):
            raise RequestError(
                f'{field} must be a URL or {{"url": ...}}, got {value!r:.80}', part=where
            )
        if detail is not None and detail not in DETAILS:
            raise RequestError(
                f"detail must be one of {', '.join(DETAILS)}, got {detail!r:.80}", part=where
            )
        if url is not None and file is not None:
            raise RequestError(f"either {field} or file_id, and not both", part=where)
        file_id = None if file is None else _file_id(file, where)
        return MediaSource(modality, where, url=url, file_id=file_id, uuid=_uuid(part, where))

    return parse


def _file(part: Mapping[str, Any], where: str) -> Source:
    _refuse_unknown(part, ("type", "file", "file_id", "uuid"), where)
    value = part.get("file", part)
    if not isinstance(value, dict):
        raise RequestError(f'file must be {{"file_id": ...}}, got {value!r:.80}', part=where)
    if value is not part:
        _refuse_unknown(value, ("file_id",), f"{where}.file")
    file_id = _file_id(value.get("file_id"), where)
    return MediaSource(ANY_MODALITY, where, file_id=file_id, uuid=_uuid(part, where))


def _file_id(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise RequestError(f"file_id must be the id of a file, got {value!r:.80}", part=where)
    return value


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
    "file": _file,
    "input_file": _file,
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
