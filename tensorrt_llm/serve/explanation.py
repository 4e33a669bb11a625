# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Why a prompt's cached part ends where it does, in words for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorrt_llm.executor.executor import MatchReport
from tensorrt_llm.inputs.data import PlaceholderRun, ProcessedPrompt
from tensorrt_llm.serve.openai_protocol import Answer

_MOST_TEXT = 120


class Segment(Answer):
    """A stretch of a prompt: text, or an item from one of its rows to another.

    Attributes:
        kind: ``"text"``, or the item's modality.
        offset: Index of its first token.
        length: Its tokens.
        cached: Of these, how many would be found.
        text: Its text, the beginning of a long one; absent for an item.
        item: Number of the item in the prompt, from 0; absent for text, as are all that follow.
        part: Where it stood in the request.
        identity: What stands for it in block keys, in hexadecimal; null where it is unknown.
        rows: Rows of the item in this stretch.
        first_row: The first of them.
    """

    kind: str
    offset: int
    length: int
    cached: int
    text: str | None = None
    item: int | None = None
    part: str | None = None
    identity: str | None = None
    rows: int | None = None
    first_row: int | None = None


class ExplainResponse(Answer):
    """Answer of ``POST /kv_cache/explain``.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Of these, what a request would find now.
        tokens_per_block: Tokens of a block.
        reason: Why not more, as in docs/kv-cache.md.
        block: Index of the block at which the match ends.
        position: Index of the first token that is not shared.
        message: The same in a sentence.
        advice: What would make more of it shared; may be empty.
        segments: What the prompt is made of.
    """

    prompt_tokens: int
    cached_tokens: int
    tokens_per_block: int
    reason: str
    block: int
    position: int
    message: str
    advice: list[str]
    segments: list[Segment]


@dataclass(frozen=True)
class Pool:
    """What advice depends on.

    Attributes:
        tokens_per_block: Tokens of a block.
        tokens: Tokens that all blocks hold.
        partial_reuse: Whether parts of blocks are reused.
    """

    tokens_per_block: int
    tokens: int
    partial_reuse: bool


def explain(
    prompt: ProcessedPrompt, report: MatchReport, pool: Pool, decode: Callable[[list[int]], str]
) -> ExplainResponse:
    """Puts a report into words.

    Args:
        prompt: The prompt.
        report: What the engine says of it.
        pool: Where its blocks would be.
        decode: Gives the text of tokens.
    """
    found = segments(prompt, report.cached_tokens, decode)
    return ExplainResponse(
        prompt_tokens=len(prompt),
        cached_tokens=report.cached_tokens,
        tokens_per_block=pool.tokens_per_block,
        reason=report.reason,
        block=report.block,
        position=report.position,
        message=_message(prompt, report, pool, found, decode),
        advice=_advice(prompt, report, pool, found),
        segments=found,
    )


def segments(
    prompt: ProcessedPrompt, cached: int, decode: Callable[[list[int]], str]
) -> list[Segment]:
    """What a prompt is made of, in order and without gaps.

    Runs of one item with nothing but its own tags between them are one segment.
    """
    result: list[Segment] = []

    def add(kind: str, begin: int, end: int) -> Segment:
        segment = Segment(
            kind=kind,
            offset=begin,
            length=end - begin,
            cached=max(0, min(end, cached) - begin),
        )
        result.append(segment)
        return segment

    def add_text(begin: int, end: int) -> None:
        if begin < end:
            # No token is shorter than a byte, and few are as short: enough for what is shown.
            words = decode(prompt.token_ids[begin : min(end, begin + 4 * _MOST_TEXT)].tolist())
            add("text", begin, end).text = words[:_MOST_TEXT]

    done = 0
    for item, first_row, runs in _stretches(prompt):
        begin, last = runs[0].position, runs[-1]
        add_text(done, begin)
        done = last.position + last.length
        source, segment = prompt.items[item], add(prompt.items[item].modality, begin, done)
        segment.item, segment.part = item, source.part
        segment.identity = None if source.identity is None else source.identity.hex()
        segment.first_row, segment.rows = first_row, sum(run.length for run in runs)
    add_text(done, len(prompt))
    return result


def _stretches(prompt: ProcessedPrompt) -> list[tuple[int, int, list[PlaceholderRun]]]:
    """Item, first row and runs of each stretch that no other item interrupts."""
    runs = sorted(
        ((index, run) for index, item in enumerate(prompt.items) for run in item.runs),
        key=lambda entry: entry[1].position,
    )
    rows = [0] * len(prompt.items)
    result: list[tuple[int, int, list[PlaceholderRun]]] = []
    for index, run in runs:
        if result and result[-1][0] == index:
            result[-1][2].append(run)
        else:
            result.append((index, rows[index], [run]))
        rows[index] += run.length
    return result


def _message(
    prompt: ProcessedPrompt,
    report: MatchReport,
    pool: Pool,
    found: Sequence[Segment],
    decode: Callable[[list[int]], str],
) -> str:
    total, cached = len(prompt), report.cached_tokens
    begin = report.block * pool.tokens_per_block
    block = f"block {report.block}, tokens {begin}-{min(begin + pool.tokens_per_block, total) - 1}"
    where = _where(prompt, report.position, found, decode)
    reason = {
        "complete": (
            "all that can be is found: the last token is always computed"
            if cached == total - 1
            else "all whole blocks are found; parts of blocks are not reused on this server"
        ),
        "reuse_disabled": "the server was started without block reuse",
        "unidentified_media": f"{block}: the identity of {where} is unknown, so nothing from "
        "there on is shared",
        "not_committed": f"{block}: a running request is computing it just now",
        "window": f"{block}: what its sliding-window layers need is gone",
        "evicted": f"{block}: it was cached, and was given up{_ago(report)} to make room",
        "salt": "requests with another cache_salt have cached it",
        "adapter": "requests with another adapter have cached it",
        "adapter_mode": "it is cached for prompts with other kinds of media, which the model "
        "treats in another way",
        "tokens": f"{block}: {where} differs from what is cached at this place",
        "media_identity": f"{block}: {where} differs from what is cached at this place: the "
        "same place in the prompt, other content or options",
        "media_offset": f"{block}: {where} stands where other rows of the same item are cached",
        "media_runs": f"{block}: the rows of {where} are laid out otherwise than those cached",
    }.get(report.reason, f"nothing is cached that goes on as this prompt does from token {cached}")
    return f"{cached} of {total} tokens would be found; {reason}."


def _ago(report: MatchReport) -> str:
    """How long ago, as one says it."""
    if report.evicted_ms is None:
        return ""
    seconds = report.evicted_ms // 1000
    for unit, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f" {seconds // unit} {name} ago"
    return f" {seconds} s ago" if seconds else " just now"


def _where(
    prompt: ProcessedPrompt,
    position: int,
    found: Sequence[Segment],
    decode: Callable[[list[int]], str],
) -> str:
    for segment in found:
        if segment.offset <= position < segment.offset + segment.length:
            if segment.item is None:
                break
            part = f" ({segment.part})" if segment.part else ""
            return f"{_name(segment, found)}{part}"
    if position >= len(prompt):
        return "the end of the prompt"
    word = decode([int(prompt.token_ids[position])])
    return f"token {position} ({word!r})"


def _name(segment: Segment, found: Sequence[Segment]) -> str:
    """An item by its number among those of its kind, counted from 1."""
    same = [other.item for other in found if other.kind == segment.kind]
    return f"{segment.kind} {list(dict.fromkeys(same)).index(segment.item) + 1}"


def _advice(
    prompt: ProcessedPrompt, report: MatchReport, pool: Pool, found: Sequence[Segment]
) -> list[str]:
    match report.reason:
        case "tokens":
            later = [segment for segment in found if segment.offset >= report.position]
            rest = len(prompt) - report.position
            advice = [
                "Prompts are compared from their beginning: put what requests share (instructions, "
                "documents, media) before what differs (names, dates, questions). From token "
                f"{report.position} on, {rest} tokens are computed again."
            ]
            media = [segment for segment in later if segment.item is not None]
            if media:
                names = ", ".join(dict.fromkeys(_name(segment, found) for segment in media))
                advice.append(f"Among them is {names}: before the difference it could be shared.")
            return advice
        case "media_identity":
            return [
                "An item is the same where content, mm_processor_kwargs, media_io_kwargs and uuid "
                "are: a picture that was scaled or compressed anew is another one."
            ]
        case "media_offset" | "media_runs":
            return ["The same options and the same layout of the prompt give the same rows."]
        case "salt":
            return ["Only requests with the same cache_salt share; give one to those that may."]
        case "adapter_mode":
            return ["Requests share only with those that hold the same kinds of media."]
        case "evicted":
            return [
                f"The pool holds {pool.tokens} tokens: raise kv_cache_config.max_tokens or "
                "free_gpu_memory_fraction, or set host_cache_size."
            ]
        case "not_committed":
            return ["A request that is sent now waits for it, and shares it."]
        case "reuse_disabled":
            return ["Start the server without --no_enable_block_reuse."]
        case "complete" if not pool.partial_reuse and report.cached_tokens < len(prompt) - 1:
            return ["Set kv_cache_config.enable_partial_reuse to share parts of blocks too."]
    return []
