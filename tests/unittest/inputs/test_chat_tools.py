# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Where templates take tools, and what tools must not spell."""

from __future__ import annotations

import json

import pytest

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.chat_tools import place_tools, refuse_special_tokens

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"ø": {}}}}
USER = {"role": "user", "content": "x"}
AS_VARIABLE = "{% if tools %}{{ tools | tojson }}{% endif %}"
IN_MESSAGE = "{% for message in messages %}{{ message['tools'] }}{% endfor %}"


def test_tools_go_where_the_template_looks() -> None:
    assert place_tools(AS_VARIABLE, [USER], [TOOL]) == ([USER], {"tools": [TOOL]})
    for template in (IN_MESSAGE, "{{ message.tools }}", '{{ message["tools"] }}'):
        (system, user), variables = place_tools(template, [USER], [TOOL])
        assert (system["role"], system["content"], user, variables) == ("system", "", USER, {})
        assert json.loads(system["tools"]) == [TOOL["function"]]
    given = {"role": "system", "content": "Be kind."}
    (system, user), _ = place_tools(IN_MESSAGE, [given, USER], [TOOL])
    assert (system["content"], user) == ("Be kind.", USER) and "tools" in system
    with pytest.raises(RequestError, match="takes no tools") as raised:
        place_tools("{{ messages }}", [USER], [TOOL])
    assert raised.value.part == "tools"


@pytest.mark.parametrize("value", ["a <|end|>", ["<|end|>"], {"a": [{"<|end|>": 1}]}])
def test_special_tokens_are_refused_wherever_they_stand(value: object) -> None:
    with pytest.raises(RequestError, match="is a special token") as raised:
        refuse_special_tokens(value, ["<|x|>", "<|end|>"], "tools")
    assert raised.value.part == "tools"


@pytest.mark.parametrize("value", ["a <|end", ["<|", "end|>"], {"a": 1}, None, 5])
def test_what_spells_none_passes(value: object) -> None:
    refuse_special_tokens(value, ["<|x|>", "<|end|>"], "tools")
