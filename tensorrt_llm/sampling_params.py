# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How the next token is chosen and when to stop."""

from __future__ import annotations

from dataclasses import dataclass

from tensorrt_llm.errors import RequestError


@dataclass(frozen=True)
class SamplingParams:
    """Sampling options of one request. The default is greedy decoding.

    Attributes:
        max_tokens: Most tokens to generate. None lets the engine use what ``max_seq_len`` leaves.
        temperature: Divides the logits. None or 0 is greedy, unless ``top_k`` or ``top_p`` asks
            for sampling at temperature 1.
        top_k: Sample among the k likeliest tokens. None or 0 means all; 1 is greedy.
        top_p: Sample among the likeliest tokens whose probabilities sum to at least p, in (0, 1].
        seed: Seed of this request's own random stream. None draws one.
        stop: Text or texts that end the answer. The stop text is not part of the answer unless
            ``include_stop_str_in_output`` is set.
        include_stop_str_in_output: Keep the stop text at the end of the answer.
        stop_token_ids: Token ids that end the answer, beside the model's end-of-sequence ids.
        ignore_eos: Do not stop at the model's end-of-sequence ids.
        skip_special_tokens: Leave special tokens out of the text.
        add_special_tokens: Let the tokenizer add its leading tokens to a text prompt.
        logprobs: Number of likeliest tokens to report with log-probabilities for each generated
            token, beside the token itself. None reports nothing.
        return_generation_logits: Return the float32 logits ``[num_tokens, vocab_size]`` that each
            generated token was chosen from.
        n: Number of answers. Only 1 is supported.
    """

    max_tokens: int | None = 32
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    add_special_tokens: bool = True
    logprobs: int | None = None
    return_generation_logits: bool = False
    n: int = 1

    def __post_init__(self) -> None:
        def check(ok: bool, name: str, rule: str) -> None:
            if not ok:
                raise RequestError(f"must be {rule}, got {getattr(self, name)!r}", part=name)

        check(self.max_tokens is None or self.max_tokens >= 1, "max_tokens", "at least 1")
        check(self.temperature is None or self.temperature >= 0, "temperature", "at least 0")
        check(self.top_k is None or self.top_k >= 0, "top_k", "at least 0")
        check(self.top_p is None or 0 < self.top_p <= 1, "top_p", "in (0, 1]")
        check(self.seed is None or 0 <= self.seed < 2**64, "seed", "in [0, 2**64)")
        check(self.logprobs is None or 0 <= self.logprobs <= 20, "logprobs", "in [0, 20]")
        check(self.n == 1, "n", "1 (several answers a request are not supported yet)")
        check("" not in self.stop_list, "stop", "non-empty text")

    @property
    def stop_list(self) -> tuple[str, ...]:
        """The stop texts as a tuple."""
        if self.stop is None:
            return ()
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        if self.top_k == 1 or self.temperature == 0:
            return True
        unset = self.temperature is None
        return unset and not self.top_k and (self.top_p is None or self.top_p == 1)
