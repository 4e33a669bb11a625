# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Imports go one way: the house rules as data, a checker, and proof that the checker sees breaches.

Every import statement counts for the rules, also one inside a function or under `TYPE_CHECKING`:
what a room knows about is what matters. For cycles only what runs when a module loads counts.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "tensorrt_llm"
ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 600

# A module may import modules of lower rank, and of its own rank within its own room. The longest
# prefix decides; a package's __init__ has the highest rank found below it, for it re-exports.
RANKS = {
    "version": 0,
    "errors": 0,
    "logger": 0,
    "bindings": 0,
    "sampling_params": 1,
    "inputs": 1,
    "llmapi.strict_model": 1,
    "llmapi.llm_args": 1,
    "_torch.attention_backend": 1,
    "_torch.load_progress": 1,
    "_torch.peft": 1,
    "inputs.registry": 2,
    "inputs.processors": 2,
    "_torch.models": 2,
    "executor": 2,
    "_torch.pyexecutor": 3,
    "executor.executor": 4,
    "executor.messages": 4,
    "executor.ipc": 4,
    "executor.engine_process": 4,
    "executor.proxy": 4,
    "executor.worker": 4,
    "executor.worker_main": 4,
    "executor.engine_host": 4,
    "executor.host_process": 4,
    "llmapi": 5,
    "serve": 6,
    "bench": 6,
    "commands": 7,
}

# The rooms: modules below one of these are at home with each other.
ROOMS = (
    "bindings",
    "inputs",
    "_torch.attention_backend",
    "_torch.peft",
    "_torch.models",
    "_torch.pyexecutor",
    "executor",
    "llmapi",
    "serve",
    "bench",
    "commands",
)

# Closed rooms: besides themselves they import these and nothing else of ours.
CLOSED = {
    "bindings": (),
    "_torch.attention_backend": ("errors", "logger"),
    "_torch.peft": ("errors", "logger"),
}

# Whatever their ranks: the first never imports the others.
NEVER = {
    "inputs": ("_torch", "executor", "llmapi", "serve", "commands"),
    "_torch.models": ("_torch.pyexecutor",),
}

# Only these import that room (besides itself).
ONLY_IMPORTED_BY = {
    "_torch.pyexecutor": ("executor.worker", "executor.worker_main"),
}


@dataclass(frozen=True)
class Import:
    """One import of a module of ours."""

    source: str  # importing module, without the package's name; "" is the package's own __init__
    target: str  # imported module, likewise
    line: int
    at_load: bool  # runs when the source loads


def _below(module: str, prefix: str) -> bool:
    return not prefix or module == prefix or module.startswith(f"{prefix}.")


def _modules(package: Path) -> dict[str, Path]:
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _statements(node: ast.AST, at_load: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """Every import statement below a node, and whether it runs when the module loads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, at_load
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _statements(child, False)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for branch, runs in ((child.body, False), (child.orelse, at_load)):
                yield from _statements(ast.Module(branch, []), runs)
        else:
            yield from _statements(child, at_load)


def _targets(statement: ast.stmt, source: str, path: Path, modules: dict[str, Path]) -> list[str]:
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    else:
        assert isinstance(statement, ast.ImportFrom)
        base = statement.module or ""
        if statement.level:
            here = [PACKAGE, *source.split(".")] if source else [PACKAGE]
            parents = statement.level - (path.name == "__init__.py")
            base = ".".join([*here[: len(here) - parents], *([base] if base else [])])
        # `from a import b` imports a.b where that is a module, else a name out of a.
        known = {f"{PACKAGE}.{name}" for name in (*modules, *RANKS)}
        names = [
            f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base
            for alias in statement.names
        ]
    ours = [name for name in names if _below(name, PACKAGE)]
    return [name[len(PACKAGE) + 1 :] for name in ours]


def read_imports(package: Path) -> list[Import]:
    """Every import of our own modules in a package folder."""
    modules = _modules(package)
    found = []
    for source, path in modules.items():
        for statement, at_load in _statements(ast.parse(path.read_text(), str(path))):
            found += [
                Import(source, target, statement.lineno, at_load)
                for target in _targets(statement, source, path, modules)
            ]
    return found


def rank_of(module: str) -> int | None:
    """Rank of a module, or None where the rules do not know it."""
    inside = [rank for prefix, rank in RANKS.items() if _below(prefix, module)]
    if inside:
        return max(inside)
    prefixes = [prefix for prefix in RANKS if _below(module, prefix)]
    return RANKS[max(prefixes, key=len)] if prefixes else None


def room_of(module: str) -> str:
    """The room a module stands in; a module outside any room is a room of its own."""
    return next((room for room in ROOMS if _below(module, room)), module)


def _breach(edge: Import) -> str | None:
    source, target = edge.source, edge.target
    ranks = rank_of(source), rank_of(target)
    for name, rank in zip((source, target), ranks, strict=True):
        if rank is None:
            return f"{name!r} has no rank; give it one in RANKS"
    if room_of(source) != room_of(target) and ranks[0] <= ranks[1]:
        return f"rank {ranks[0]} imports rank {ranks[1]} of another room"
    if room_of(source) == room_of(target) and ranks[0] < ranks[1]:
        return f"rank {ranks[0]} imports rank {ranks[1]}"
    for room, allowed in CLOSED.items():
        if _below(source, room) and not any(_below(target, a) for a in (room, *allowed)):
            return f"the closed room {room} may import only {', '.join(allowed) or 'itself'}"
    for room, others in NEVER.items():
        forbidden = [other for other in others if _below(target, other)]
        if _below(source, room) and forbidden:
            return f"{room} never imports {forbidden[0]}"
    for room, importers in ONLY_IMPORTED_BY.items():
        inside = any(_below(source, name) for name in (room, *importers))
        if _below(target, room) and not inside:
            return f"only {', '.join(importers)} may import {room}"
    return None


def breaches(package: Path) -> list[str]:
    """One line for each import that breaks a rule."""
    lines = []
    for edge in read_imports(package):
        reason = _breach(edge)
        if reason:
            lines.append(f"{edge.source}:{edge.line} imports {edge.target}: {reason}")
    return lines


def find_cycle(package: Path) -> list[str]:
    """The modules of one import cycle, first one repeated at the end, or an empty list."""
    graph: dict[str, set[str]] = {}
    for edge in read_imports(package):
        if not edge.at_load:
            continue
        # Importing a.b.c loads a and a.b too, unless the importer is inside them already.
        parts = edge.target.split(".")
        loaded = {".".join(parts[: n + 1]) for n in range(len(parts))}
        loaded = {n for n in loaded if n == edge.target or not _below(edge.source, n)}
        graph.setdefault(edge.source, set()).update(loaded)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def long_files(package: Path) -> list[str]:
    """Files of more than MAX_LINES lines, with their count."""
    counts = {p: len(p.read_text().splitlines()) for p in sorted(package.rglob("*.py"))}
    return [f"{p.name}: {n} lines, at most {MAX_LINES}" for p, n in counts.items() if n > MAX_LINES]


def test_imports_go_one_way() -> None:
    assert breaches(ROOT / PACKAGE) == []


def test_no_import_cycles() -> None:
    assert find_cycle(ROOT / PACKAGE) == []


def test_files_read_in_a_sitting() -> None:
    assert long_files(ROOT / PACKAGE) == []


def _plant(folder: Path, files: dict[str, str]) -> Path:
    package = folder / PACKAGE
    for name, text in {"__init__.py": "", "errors.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("inputs/data.py", "from tensorrt_llm.inputs.registry import X", "rank 1 imports rank 2"),
        ("inputs/registry.py", "import tensorrt_llm.executor.executor", "rank 2 imports rank 4"),
        ("inputs/data.py", "from tensorrt_llm._torch import models", "rank 1 imports rank 2"),
        (
            "inputs/registry.py",
            "from tensorrt_llm.llmapi.llm_args import X",
            "inputs never imports llmapi",
        ),
        (
            "executor/result.py",
            "from tensorrt_llm._torch.models import modeling_x",
            "rank 2 imports rank 2 of another room",
        ),
        (
            "_torch/models/modeling_x.py",
            "def f():\n    from tensorrt_llm._torch.pyexecutor import sampler",
            "rank 2 imports rank 3",
        ),
        (
            "_torch/attention_backend/x.py",
            "from ...bindings import X",
            "the closed room _torch.attention_backend",
        ),
        (
            "inputs/data_uri.py",
            "from tensorrt_llm.sampling_params import X",
            "rank 1 imports rank 1 of another room",
        ),
        ("bindings/__init__.py", "from tensorrt_llm.version import X", "rank 0 imports rank 0"),
        (
            "serve/openai_server.py",
            "from tensorrt_llm._torch.pyexecutor import x",
            "only executor.worker, executor.worker_main may import _torch.pyexecutor",
        ),
        ("serve/chat_utils.py", "from ..commands import serve", "rank 6 imports rank 7"),
        ("serve/x.py", "from tensorrt_llm import LLM", "rank 6 imports rank 7"),
        ("surprise.py", "import tensorrt_llm.errors", "'surprise' has no rank"),
    ],
)
def test_the_checker_sees_a_planted_breach(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    found = breaches(_plant(tmp_path, {name: text}))
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inputs/registry.py", "from tensorrt_llm.inputs.data import X"),
        ("inputs/data.py", "from .multimodal import X\nfrom .. import errors"),
        ("executor/worker.py", "from tensorrt_llm._torch.pyexecutor import x"),
        ("executor/result.py", "from tensorrt_llm.executor.request import X"),
        ("executor/__init__.py", "from tensorrt_llm.executor.executor import X"),
        ("_torch/pyexecutor/x.py", "from tensorrt_llm import bindings"),
        ("_torch/pyexecutor/scheduler/x.py", "from ..llm_request import X\nimport torch"),
        ("_torch/attention_backend/x.py", "from tensorrt_llm.logger import get_logger"),
        ("llmapi/llm.py", "from tensorrt_llm.llmapi.llm_args import X"),
        ("commands/serve.py", "from tensorrt_llm.serve import openai_server"),
        ("commands/serve.py", "import tensorrt_llm_other"),
    ],
)
def test_the_checker_lets_a_rightful_import_pass(tmp_path: Path, name: str, text: str) -> None:
    assert breaches(_plant(tmp_path, {name: text})) == []


def test_the_checker_sees_a_planted_cycle(tmp_path: Path) -> None:
    package = _plant(
        tmp_path,
        {
            "inputs/a.py": "from tensorrt_llm.inputs import b",
            "inputs/b.py": "import tensorrt_llm.inputs.c",
            "inputs/c.py": "from .a import X",
        },
    )
    assert set(find_cycle(package)) == {"inputs.a", "inputs.b", "inputs.c"}


def test_the_checker_sees_a_cycle_through_a_package_init(tmp_path: Path) -> None:
    package = _plant(
        tmp_path,
        {
            "inputs/__init__.py": "from tensorrt_llm.inputs.a import X",
            "inputs/a.py": "import tensorrt_llm.executor.x",
            "executor/__init__.py": "import tensorrt_llm.executor.y",
            "executor/y.py": "import tensorrt_llm.inputs.b",
            "inputs/b.py": "",
        },
    )
    assert find_cycle(package)


def test_an_import_that_does_not_run_at_load_makes_no_cycle(tmp_path: Path) -> None:
    package = _plant(
        tmp_path,
        {
            "inputs/a.py": "from tensorrt_llm.inputs import b",
            "inputs/b.py": (
                "from typing import TYPE_CHECKING\n"
                "if TYPE_CHECKING:\n    from tensorrt_llm.inputs.a import X\n"
                "def f():\n    from tensorrt_llm.inputs.a import X\n"
            ),
        },
    )
    assert find_cycle(package) == []


def test_the_checker_sees_a_file_that_is_too_long(tmp_path: Path) -> None:
    package = _plant(tmp_path, {"inputs/a.py": "\n" * MAX_LINES, "inputs/b.py": "\n" * 601})
    assert long_files(package) == ["b.py: 601 lines, at most 600"]
