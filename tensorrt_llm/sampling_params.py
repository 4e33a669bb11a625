# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How the next token is chosen and when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from tensorrt_llm.errors import RequestError

MAX_ANSWERS = 128
"""Most answers to one request."""


@dataclass(frozen=True)
class GuidedDecodingParams:
    """What the whole answer has to be. Exactly one of these is set.

    Attributes:
        json: A JSON schema, as text or as a mapping; a pydantic model stands for its schema.
        regex: A regular expression that the answer matches from beginning to end.
        grammar: A context-free grammar in Lark's notation, with a rule ``start``; also in the
            notation ``name ::= ...`` with a rule ``root``.
        json_object: Any JSON object.
        choice: Texts of which the answer is one.
    """

    json: str | dict[str, Any] | bool | None = None
    regex: str | None = None
    grammar: str | None = None
    json_object: bool = False
    choice: list[str] | None = None

    def __post_init__(self) -> None:
        schema = getattr(self.json, "model_json_schema", None)
        if schema is not None:
            object.__setattr__(self, "json", schema())
        names = [one.name for one in fields(self) if getattr(self, one.name) not in (None, False)]
        if len(names) != 1:
            raise RequestError(
                f"exactly one kind has to be set, got {', '.join(names) or 'none'}",
                part="guided_decoding",
            )
        if self.choice is not None and (not self.choice or "" in self.choice):
            raise RequestError("must be a list of non-empty texts", part="guided_decoding.choice")


# Values that change nothing, of the options that a beam search does not go with.
_WITH_BEAMS: dict[str, tuple[Any, ...]] = {
    "temperature": (None, 0, 1),
    "top_k": (None, 0, 1),
    "top_p": (None, 1),
    "min_p": (None, 0),
    "seed": (None,),
    "repetition_penalty": (None, 1),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "logit_bias": (None, {}),
    "bad": (None, []),
    "bad_token_ids": (None, []),
    "stop": (None, []),
    "min_tokens": (None, 0),
    "prompt_logprobs": (None,),
    "return_context_logits": (False,),
    "return_generation_logits": (False,),
    "guided_decoding": (None,),
}


@dataclass(frozen=True)
class SamplingParams:
    """Sampling options of one request. The default is greedy decoding.

    They work in this order: ``logit_bias``; ``repetition_penalty``; ``frequency_penalty`` and
    ``presence_penalty``; what may not come (``bad``, ``bad_token_ids``, ``min_tokens``,
    ``guided_decoding``); ``temperature``; ``top_k``; ``top_p``; ``min_p``.

    Attributes:
        max_tokens: Most tokens to generate. None lets the engine use what ``max_seq_len`` leaves.
        temperature: Divides the logits. None or 0 is greedy, unless ``top_k`` or ``top_p`` asks
            for sampling at temperature 1.
        top_k: Sample among the k likeliest tokens. None or 0 means all; 1 is greedy.
        top_p: Sample among the likeliest tokens whose probabilities sum to at least p, in (0, 1].
        min_p: Sample among tokens at least this many times as likely as the likeliest, in [0, 1].
        seed: Seed of this request's own random numbers. None draws one. Answer ``i`` of several is
            the answer to a request for one with ``seed + i``.
        repetition_penalty: Divides positive and multiplies negative logits of tokens that prompt
            or answer have, above 0; 1 changes nothing.
        presence_penalty: Taken from the logits of tokens that the answer has, in [-2, 2].
        frequency_penalty: Likewise, once for each time, in [-2, 2].
        logit_bias: Added to the logits of these tokens, by token id, in [-100, 100].
        bad: Text or texts whose tokens must not come one after the other, each also with a space
            before it.
        bad_token_ids: Token ids that must not come.
        stop: Text or texts that end the answer. The stop text is not part of the answer unless
            ``include_stop_str_in_output`` is set.
        include_stop_str_in_output: Keep the stop text at the end of the answer.
        stop_token_ids: Token ids that end the answer, beside the model's end-of-sequence ids.
        ignore_eos: Do not stop at the model's end-of-sequence ids.
        min_tokens: Nothing that ends the answer counts before it has so many tokens.
        skip_special_tokens: Leave special tokens out of the text.
        add_special_tokens: Let the tokenizer add its leading tokens to a text prompt.
        logprobs: Number of likeliest tokens to report with log-probabilities for each generated
            token, beside the token itself. None reports nothing.
        prompt_logprobs: The same for each prompt token but the first. The whole prompt is computed
            then: it takes nothing from the KV cache.
        return_context_logits: Return the float32 logits ``[prompt_len, vocab_size]`` after each
            prompt token, once for all answers. The whole prompt is computed then, too.
        return_generation_logits: Return the float32 logits ``[num_tokens, vocab_size]`` that each
            generated token was chosen from, as the model gave them.
        use_beam_search: Search for the likeliest answers with ``best_of`` beams and give the best
            ``n``, all at the end. Goes with none of the options that change how likely a token is.
        length_penalty: The score of an answer of a beam search is the sum of its log-probabilities
            divided by its length to this power.
        early_stopping: Whether a beam search stops once it has ``best_of`` whole answers. False
            stops when the best beam scores no better now than the worst of them, ``"never"`` when
            it could not at any length.
        n: Number of answers. The prompt is computed once for all.
        best_of: Generate so many answers, and give the ``n`` of them whose tokens are the likeliest
            together. None means ``n``.
        guided_decoding: What the whole answer has to be.
    """

    max_tokens: int | None = 32
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    bad: str | list[str] | None = None
    bad_token_ids: list[int] | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    min_tokens: int | None = None
    skip_special_tokens: bool = True
    add_special_tokens: bool = True
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    return_context_logits: bool = False
    return_generation_logits: bool = False
    use_beam_search: bool = False
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    n: int = 1
    best_of: int | None = None
    guided_decoding: GuidedDecodingParams | None = None

    def __post_init__(self) -> None:
        def check(ok: bool, name: str, rule: str) -> None:
            if not ok:
                raise RequestError(f"must be {rule}, got {getattr(self, name)!r}", part=name)

        def check_range(name: str, low: float, high: float) -> None:
            value = getattr(self, name)
            check(value is None or low <= value <= high, name, f"in [{low:g}, {high:g}]")

        check(self.max_tokens is None or self.max_tokens >= 1, "max_tokens", "at least 1")
        check(self.temperature is None or self.temperature >= 0, "temperature", "at least 0")
        # JSON's 1e999 is one; the tokens of a quotient by it would all be equally likely.
        check(self.temperature != math.inf, "temperature", "finite")
        check(self.top_k is None or self.top_k >= 0, "top_k", "at least 0")
        check(self.top_p is None or 0 < self.top_p <= 1, "top_p", "in (0, 1]")
        check_range("min_p", 0, 1)
        check(self.seed is None or 0 <= self.seed < 2**64, "seed", "in [0, 2**64)")
        penalty = self.repetition_penalty
        check(penalty is None or 0 < penalty < float("inf"), "repetition_penalty", "above 0")
        check_range("presence_penalty", -2, 2)
        check_range("frequency_penalty", -2, 2)
        biases = self.logit_bias or {}
        check(all(-100 <= b <= 100 for b in biases.values()), "logit_bias", "in [-100, 100]")
        check_range("logprobs", 0, 20)
        check_range("prompt_logprobs", 0, 20)
        check(self.min_tokens is None or self.min_tokens >= 0, "min_tokens", "at least 0")
        check_range("n", 1, MAX_ANSWERS)
        most = f"in [n, {MAX_ANSWERS}] (n is {self.n})"
        check(self.best_of is None or self.n <= self.best_of <= MAX_ANSWERS, "best_of", most)
        check("" not in self.stop_list, "stop", "non-empty text")
        check("" not in self.bad_list, "bad", "non-empty text")

        check(math.isfinite(self.length_penalty), "length_penalty", "a finite number")
        early = self.early_stopping
        check(isinstance(early, bool) or early == "never", "early_stopping", "a boolean or 'never'")
        if self.use_beam_search:
            self._check_beams()
        else:
            check(self.length_penalty == 1, "length_penalty", "1 without use_beam_search")
            check(early is False, "early_stopping", "false without use_beam_search")

    def _check_beams(self) -> None:
        """Refuses, by name, what a beam search does not go with."""
        if self.num_sequences < 2:
            raise RequestError("a beam search needs at least 2 beams", part="best_of")
        for name, values in _WITH_BEAMS.items():
            if getattr(self, name) not in values:
                raise RequestError("not with use_beam_search", part=name)

    @property
    def stop_list(self) -> tuple[str, ...]:
        """The stop texts as a tuple."""
        return _texts(self.stop)

    @property
    def bad_list(self) -> tuple[str, ...]:
        """The bad texts as a tuple."""
        return _texts(self.bad)

    @property
    def num_answers(self) -> int:
        """How many answers are told of; all that are generated, but for a beam search."""
        return self.n if self.use_beam_search else self.num_sequences

    @property
    def num_sequences(self) -> int:
        """How many token sequences are generated: answers, or beams."""
        return self.n if self.best_of is None else self.best_of

    @property
    def scored_logprobs(self) -> int | None:
        """``logprobs``, or 0 where they are needed to choose the best answers."""
        needed = self.use_beam_search or self.num_answers > self.n
        return 0 if self.logprobs is None and needed else self.logprobs

    @property
    def scores_prompt(self) -> bool:
        """Whether something is told of the prompt's own tokens, which the KV cache does not say."""
        return self.prompt_logprobs is not None or self.return_context_logits

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        if self.top_k == 1 or self.temperature == 0:
            return True
        unset = self.temperature is None
        return unset and not self.top_k and (self.top_p is None or self.top_p == 1)

    @property
    def penalizes(self) -> bool:
        """Whether tokens that came before count."""
        return (
            self.repetition_penalty not in (None, 1)
            or bool(self.presence_penalty)
            or bool(self.frequency_penalty)
        )


def _texts(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
