"""Loads a source: its kernels as a module, and its `launch` as a plan that this project executes."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from triton.runtime import driver

from backends.backend import BackendError
from backends.shared.python_text import plain_tree
from backends.triton.build.direct import Direct, Kind, again, described, kind, lying, unwatched
from backends.triton.build.plan import Argument, Descriptor, Launched, Plan, plan_of

_MOST_KNOWN = 64  # plans, and kinds of tensors, that a launcher caches


def load(file: Path, stage: str) -> ModuleType:
    """Imports a source file as a module, executing all of it. Only for sources that this project
    emitted; evaluated sources go through `launcher`.

    Raises BackendError(stage) where it has no `launch`; exceptions of the source itself pass
    through.
    """
    module = _empty(file)
    assert module.__spec__ is not None and module.__spec__.loader is not None
    module.__spec__.loader.exec_module(module)
    if not callable(getattr(module, "launch", None)):
        raise BackendError(stage, "the source has no function `launch`")
    return module


def launcher(file: Path, stage: str, alike: bool = False) -> Launcher:
    """The launcher of a source file's kernels on the nest's global tensors in order, according to
    its `launch`. Only the kernels among the file's functions are created. Triton reads the file
    again later, so it must remain. alike: whether all calls have contiguous tensors of the same
    dtypes and shapes. Raises BackendError(stage) where the file has no `launch`."""
    tree = plain_tree(file.read_text(encoding="utf-8"))
    plan = plan_of(tree)
    if plan is None:
        raise BackendError(stage, "the source has no function `launch`")
    return Launcher(plan, _kernels(file, tree), alike)


class Launcher:
    """Executes a plan. The plan is evaluated once for tensors of known sizes, and Triton chooses
    kernels once for tensors of a known kind (`direct.kind`)."""

    def __init__(self, plan: Plan, module: ModuleType, alike: bool = False):
        self._plan, self._module = plan, module
        self._kind = lying if alike else kind
        self._known: dict[object, list[Launched]] = {}
        self._direct: dict[Kind, list[Direct]] = {}

    def __call__(self, *tensors: Any) -> None:
        plain = unwatched()
        if plain and self._direct:
            active = driver.active
            device = active.get_current_device()
            ready = self._direct.get(self._kind(device, tensors))
            if ready is not None and not any(one.hooks for one in ready):
                stream = active.get_current_stream(device)
                for one in ready:
                    one(tensors, stream)
                return
        made = self._ordinary(tensors)
        if plain and len(self._direct) < _MOST_KNOWN and (found := again(made)):
            self._direct[self._kind(driver.active.get_current_device(), tensors)] = found

    def _ordinary(self, tensors: tuple[Any, ...]) -> list[tuple[Launched, Any, Any]]:
        """Launches through Triton. Returns each launch, its kernel, and Triton's result for it."""
        made = []
        for one in self._launches(tensors):
            kernel = getattr(self._module, one.kernel)
            given = (_given(a, tensors) for a in one.arguments)
            made.append((one, kernel, kernel[one.grid](*given, **one.options)))
        return made

    def compile(self, *tensors: Any) -> list[Any]:
        """Compiles what a call with such tensors would launch; returns Triton's compiled kernels.
        The tensors' contents do not matter, nor do their addresses, as long as they are multiples
        of 16 bytes."""
        made = []
        for one in self._launches(tensors):
            kernel = getattr(self._module, one.kernel)
            given = (_given(a, tensors) for a in one.arguments)
            made.append(kernel.run(*given, grid=one.grid, warmup=True, **one.options))
        return made

    def _launches(self, tensors: tuple[Any, ...]) -> list[Launched]:
        at = tuple((tuple(t.shape), tuple(t.stride()), t.dtype) for t in tensors)
        launches = self._known.get(at)
        if launches is None:
            launches = self._plan.launches(tensors)
            if len(self._known) < _MOST_KNOWN:
                self._known[at] = launches
        return launches


def _given(value: Any, tensors: tuple[Any, ...]) -> Any:
    if isinstance(value, Argument):
        return tensors[value.position]
    return described(value, tensors) if isinstance(value, Descriptor) else value


def _kernels(file: Path, tree: ast.Module) -> ModuleType:
    """The module with a file's imports, constants and kernels, without its other functions. Line
    numbers are kept, as Triton reads the kernels' texts from the file."""
    kept: list[ast.stmt] = [
        node for node in tree.body if not isinstance(node, ast.FunctionDef) or node.decorator_list
    ]
    module = _empty(file)
    exec(compile(ast.Module(kept, []), str(file), "exec"), module.__dict__)
    return module


def _empty(file: Path) -> ModuleType:
    name = f"kernel_{abs(hash(str(file)))}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None, f"{file} is no Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # decorators look up the module of their function
    return module
