# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that answers with a given text, so that what an answer means can be tested."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken
from transformers import LlamaConfig, LlamaForCausalLM

from examples.tiny.tokenizer import ASSISTANT, END, END_OF_TEXT, SYSTEM, USER, make_tokenizer

HIDDEN = 128

TEMPLATE = """\
{%- if tools -%}<|tool|>{{- tools | tojson -}}{%- endif -%}
{%- for message in messages -%}
<|{{ message.role }}|>{{- message.content -}}
{%- for call in message.tool_calls or [] -%}
{{- '<tool_call>' + (call.function | tojson) + '</tool_call>' -}}
{%- endfor -%}
<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""
SCRIPTS = {
    "<|assistant|>": [
        *("I look. ", "<tool_call>", '\n{"na', 'me": "look_', 'up", "arguments": {"ci', 'ty": "Os'),
        *('lo"}}', "\n</tool_call>", "\n<tool_call>\n", '{"name": "add", ', '"arguments": {}}\n'),
        "</tool_call>",
    ],
    '"arguments": ': ['{"city": ', '"Bergen"}', "}\n</tool_call> "],
    '{"name": "': ['add", "arguments"', ": {}}", " </tool_call>"],
}


def build_scripted(out: Path, template: str, scripts: dict[str, Sequence[str]]) -> Path:
    """Writes a Llama whose next token follows from the last one alone.

    Args:
        out: Folder.
        template: Chat template.
        scripts: What is written after a text, in pieces of one token each. No piece occurs twice,
            and none in any other text of a test. The end follows by itself.
    """
    tokenizer = make_tokenizer([END_OF_TEXT, END, USER, ASSISTANT, SYSTEM, "<|tool|>"], template)
    pieces = [piece for script in scripts.values() for piece in script]
    assert len(set(pieces)) == len(pieces)
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=tokenizer.convert_tokens_to_ids(END),
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                # Nothing is added to a token's own row.
                parameter.zero_()
        rows = model.get_input_embeddings().weight
        rows.normal_(generator=torch.Generator().manual_seed(0))
        head = model.get_output_embeddings().weight
        for before, script in scripts.items():
            ids = [tokenizer(before, add_special_tokens=False).input_ids[-1]]
            for piece in script:
                (token,) = tokenizer(piece, add_special_tokens=False).input_ids
                ids.append(token)
            ids.append(config.eos_token_id)
            for last, following in itertools.pairwise(ids):
                head[following] += rows[last]
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out
