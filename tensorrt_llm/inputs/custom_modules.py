# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Model families from outside: packages that register themselves when they are imported.

They are the operator's own code, named on the command line or installed beside this package, and
never come from a checkpoint. Both processes import them: the door for its input processor, the
engine for its model.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from tensorrt_llm.errors import ConfigurationError

ENTRY_POINT_GROUP = "tensorrt_llm.families"


def load_custom_modules(folders: Iterable[str]) -> frozenset[str]:
    """Imports installed families (by entry point) and those in folders, each once a process.

    Args:
        folders: Packages: folders with an ``__init__.py``.

    Returns:
        Names of the top-level packages that were imported.

    Raises:
        ConfigurationError: If one cannot be imported. Says which and why.
    """
    names = set()
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            entry.load()
        except Exception as error:  # whatever code of others may raise
            raise ConfigurationError(
                f"the family {entry.name!r} ({entry.value}) cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error
        names.add(entry.module.partition(".")[0])
    names.update(_import_folder(Path(folder).resolve()) for folder in folders)
    return frozenset(names)


def _import_folder(folder: Path) -> str:
    name, file = folder.name, folder / "__init__.py"
    if not file.is_file():
        raise ConfigurationError(f"custom_module_dirs: {str(folder)!r} holds no __init__.py")
    present = sys.modules.get(name)
    if present is not None:
        if getattr(present, "__file__", None) == str(file):
            return name
        raise ConfigurationError(
            f"custom_module_dirs: {str(folder)!r} cannot be imported: there is another module "
            f"named {name!r}"
        )
    spec = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever code of others may raise
        del sys.modules[name]
        raise ConfigurationError(
            f"custom_module_dirs: {str(folder)!r} cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error
    return name
