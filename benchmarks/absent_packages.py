# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Lets a rival's module be imported where packages for GPUs, which it imports too, are absent."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from unittest.mock import MagicMock


class AbsentClass(type):
    """Of classes that have every attribute."""

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()


class AbsentModule(ModuleType):
    """A module that has every name: capitalised ones are classes, which may be derived from, the
    others do nothing."""

    __version__ = "0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        is_class = name[0].isupper() and not name.isupper()
        value = AbsentClass(name, (), {}) if is_class else MagicMock()
        setattr(self, name, value)
        return value


class AbsentPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the named packages, and all below them, as modules with every name.

    It comes last, so a package that is there is never hidden. ``names`` are separated by spaces.
    """

    def __init__(self, names: str) -> None:
        self._names = frozenset(names.split())

    def install(self) -> None:
        sys.meta_path.append(self)

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
