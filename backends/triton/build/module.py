"""Loading of an emitted source as a Python module with a `launch` function."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from backends.backend import BackendError


def load(file: Path, stage: str) -> ModuleType:
    """The module of a source file, executed anew. Triton reads the file again later, so it must
    stay.

    BackendError(stage) where it has no `launch`; exceptions of the source itself pass through.
    """
    name = f"kernel_{abs(hash(str(file)))}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None, f"{file} is no Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # decorators look up the module of their function
    spec.loader.exec_module(module)
    if not callable(getattr(module, "launch", None)):
        raise BackendError(stage, "the source has no function `launch`")
    return module


def launcher(file: Path, stage: str) -> Callable[..., Any]:
    """The `launch` of a source file, which takes the nest's global tensors in order."""
    return load(file, stage).launch
