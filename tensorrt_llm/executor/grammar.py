# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a guided answer has to be, as a grammar of llguidance."""

from __future__ import annotations

import json

from tensorrt_llm.errors import RequestError
from tensorrt_llm.sampling_params import GuidedDecodingParams


def grammar_of(guided: GuidedDecodingParams) -> str:
    """The grammar that the engine compiles.

    Raises:
        RequestError: If it cannot be made, or is none. Says why.
    """
    # Imported here: most programs never guide an answer.
    from llguidance import LLMatcher

    try:
        grammar = _grammar(guided)
    except (ValueError, TypeError) as error:
        raise RequestError(str(error), part="guided_decoding") from error
    problem = LLMatcher.validate_grammar(grammar)
    if problem:
        raise RequestError(f"no valid grammar: {problem}", part="guided_decoding")
    return grammar


def _grammar(guided: GuidedDecodingParams) -> str:
    from llguidance import LLMatcher
    from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

    if guided.json_object:
        return LLMatcher.grammar_from_json_schema({"type": "object"})
    if guided.json is not None:
        schema = guided.json if isinstance(guided.json, str) else json.dumps(guided.json)
        return LLMatcher.grammar_from_json_schema(schema)
    if guided.regex is not None:
        return LLMatcher.grammar_from_regex(guided.regex)
    if guided.choice is not None:
        # JSON spells texts as Lark does.
        texts = " | ".join(json.dumps(text, ensure_ascii=False) for text in guided.choice)
        return LLMatcher.grammar_from_lark(f"start: {texts}")
    try:
        return LLMatcher.grammar_from_lark(any_to_lark(guided.grammar or ""))
    except GbnfToLarkError as error:
        raise ValueError(str(error)) from error
