# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Is the reason that ``explain`` gives a true one?"""

from __future__ import annotations

from dataclasses import replace

from tests.unittest.bindings.cache_checked import CheckedManager
from tests.unittest.bindings.cache_prompts import Prompt, Scope, root_name


def check_explanation(checked: CheckedManager, prompt: Prompt, probed: int) -> str:
    """Checks it against the book, where that is exact; gives the reason."""
    found = checked.manager.explain(
        checked.tokens(prompt), prompt.media(), prompt.scope.reuse_scope()
    )
    assert found.cached_tokens == probed
    assert found.position == 0 or probed <= found.position < len(prompt.tokens) + 1
    assert (found.reason == "reuse_disabled") == (not checked.settings.reuse)
    if not checked.settings.reuse or not checked.book.exact:
        return found.reason
    book, size = checked.book, checked.size
    whole = book.whole(prompt, reuse=True)
    assert found.block == len(whole)
    wanted = book.names(prompt, min(found.block + 1, len(prompt.tokens) // size))[found.block :]
    if found.reason == "evicted":
        assert wanted[0] not in book.present
    elif found.reason == "not_committed":
        assert any(
            wanted[0] in book.names(live.prompt, len(live.prompt.tokens) // size)
            for live in checked.live.values()
        )
    elif found.reason == "unidentified_media":
        assert found.position == prompt.first_unidentified()
        assert found.position // size == found.block
    elif found.reason in ("salt", "adapter", "adapter_mode"):
        assert found.position == 0
        assert any(
            reason_of(prompt.scope, other) == found.reason for other in scopes(checked, prompt)
        )
    elif found.reason == "tokens" or found.reason.startswith("media"):
        check_difference(checked, prompt, found.reason, found.position)
    return found.reason


def scopes(checked: CheckedManager, prompt: Prompt) -> list[Scope]:
    """Other scopes under which more of the prompt is findable."""
    book = checked.book
    count = len(book.whole(prompt, reuse=True)) + 1
    others = {live.prompt.scope for live in checked.live.values()} | checked.scopes
    return [
        scope
        for scope in others - {prompt.scope}
        if set(book.names(replace(prompt, scope=scope), count)) <= book.present
    ]


def reason_of(wanted: Scope, found: Scope) -> str:
    if wanted.salt != found.salt:
        return "salt"
    if wanted[1:3] != found[1:3]:
        return "adapter"
    return "adapter_mode"


def check_difference(checked: CheckedManager, prompt: Prompt, reason: str, position: int) -> None:
    """A findable block goes as far as the position, and there differs in what is named."""
    book, size = checked.book, checked.size
    whole = book.whole(prompt, reuse=True)
    begin = len(whole) * size
    parent = whole[-1] if whole else root_name(prompt.scope)
    wanted = book.block_of(prompt, parent, begin, min(begin + size, len(prompt.tokens)))
    offset = position - begin
    near = [book.known[name] for name in book.children(parent)]
    assert any(
        block.common(wanted) == offset < len(block.tokens)
        and (block.tokens[offset] != wanted.tokens[offset]) == (reason == "tokens")
        for block in near
    )
