# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The typed stub says what the compiled module has: names, parameters, defaults and bases."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import tensorrt_llm.bindings as bindings
from tensorrt_llm.bindings import _bindings

STUB = Path(bindings.__file__).with_name("_bindings.pyi")
CLASSES = {
    node.name: node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef)
}

FUNCTIONS = {
    node.name: node
    for node in ast.parse(STUB.read_text()).body
    if isinstance(node, ast.FunctionDef)
}


def parameters(function: ast.FunctionDef) -> list[tuple[str, str | None]]:
    """Names and defaults, without self."""
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.unparse(default) for default in function.args.defaults]
    padded = [None] * (len(names) - len(defaults)) + defaults
    named_only = [
        (argument.arg, default and ast.unparse(default))
        for argument, default in zip(
            function.args.kwonlyargs, function.args.kw_defaults, strict=True
        )
    ]
    return list(zip(names, padded, strict=True))[1:] + named_only


def compiled_signature(member: object) -> ast.FunctionDef:
    """The signature that the compiled function's docstring begins with."""
    doc = inspect.getdoc(member)
    assert doc is not None
    function = ast.parse(f"def {doc.splitlines()[0]}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def public_names(cls: type) -> set[str]:
    own = {name for name in vars(cls) if not name.startswith("_")}
    return own | ({"__init__"} if "__init__" in vars(cls) else set())


def test_stub_package_and_module_have_the_same_names() -> None:
    compiled = {name for name in dir(_bindings) if not name.startswith("_")}
    assert compiled == {*CLASSES, *FUNCTIONS}
    assert compiled == set(bindings.__all__)
    assert all(getattr(bindings, name) is getattr(_bindings, name) for name in compiled)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_class_agrees(name: str) -> None:
    cls, stub = getattr(_bindings, name), CLASSES[name]
    if stub.bases:
        assert [base.__name__ for base in cls.__bases__] == [ast.unparse(b) for b in stub.bases]
        return
    members = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    hand_made = {"__eq__"}
    constructor = set() if "__init__" in members else {"__init__"}  # made by the module alone
    assert set(members) - hand_made == public_names(cls) - constructor
    for member, node in members.items():
        compiled = inspect.getattr_static(cls, member)
        if any(ast.unparse(decorator) == "property" for decorator in node.decorator_list):
            assert isinstance(compiled, property), member
        elif member not in hand_made:
            assert parameters(node) == parameters(compiled_signature(compiled)), member


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_agrees(name: str) -> None:
    signature = compiled_signature(getattr(_bindings, name))
    names = [argument.arg for argument in signature.args.args]
    assert names == [argument.arg for argument in FUNCTIONS[name].args.args]


def test_class_docstrings_agree() -> None:
    for name, stub in CLASSES.items():
        expected = ast.get_docstring(stub)
        assert expected is not None
        assert inspect.getdoc(getattr(_bindings, name)) == expected.splitlines()[0]
