"""A problem of KernelBench: a Python file that defines `Model`, `get_inputs` and `get_init_inputs`.

The file is code of others and runs when a problem is made: do that in a process of its own
(`frontends/kernelbench/apart.py`).
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from frontends.pytorch.trace import fake_mode
from ir.errors import KernelError

T = TypeVar("T")
NEEDED = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True)
class ProblemRun:
    """A problem that has run: its model in training mode, as KernelBench calls it, and inputs."""

    model: torch.nn.Module
    inputs: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem's text."""

    name: str  # the file's, without ending
    source: str
    path: str

    @staticmethod
    def read(path: str | Path) -> Problem:
        """The problem in a file; nothing runs. KernelError where it cannot be read."""
        return Problem(Path(path).stem, text_of(path), str(path))

    def made(self, seed: int = 0, fake: bool = False, place: str = "cpu") -> ProblemRun:
        """Runs the file: a model and its inputs, drawn with a seed.

        fake: tensors without memory and values, for what would not fit.  place: torch's name of
        the device that they are made on. KernelError where the code raises, or lacks a definition.
        """
        with fake_mode() if fake else nullcontext(), _on(place):
            return self._run(lambda names: self._made(names, seed))

    def inputs(self, seed: int, place: str = "cpu") -> tuple[Any, ...]:
        """Other inputs, drawn with another seed; the file runs anew."""

        def drawn(names: dict[str, Any]) -> tuple[Any, ...]:
            torch.manual_seed(seed)
            return tuple(names["get_inputs"]())

        with _on(place):
            return executed(self.source, self.path, drawn)

    def arguments(self) -> list[Any]:
        """What the model is made with; the file runs anew."""
        return executed(self.source, self.path, lambda names: list(names["get_init_inputs"]()))

    def _made(self, names: dict[str, Any], seed: int) -> ProblemRun:
        torch.manual_seed(seed)
        model = names["Model"](*names["get_init_inputs"]())
        if not isinstance(model, torch.nn.Module):
            raise KernelError("`Model` is no torch.nn.Module", where=self.path)
        torch.manual_seed(seed)
        return ProblemRun(model, tuple(names["get_inputs"]()))

    def _run(self, work: Callable[[dict[str, Any]], ProblemRun]) -> ProblemRun:
        def needed(names: dict[str, Any]) -> ProblemRun:
            missing = [name for name in NEEDED if name not in names]
            if missing:
                raise KernelError(
                    f"the problem defines no `{missing[0]}`",
                    where=self.path,
                    allowed=", ".join(NEEDED),
                    hint="KernelBench's format: a model, and functions for its arguments and inputs",
                )
            return work(names)

        return executed(self.source, self.path, needed)


def _on(place: str) -> Any:
    """Within it tensors are made on a device."""
    return nullcontext() if place == "cpu" else torch.device(place)


def text_of(path: str | Path) -> str:
    """A file's text; KernelError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or str(error)
        raise KernelError(
            f"cannot read the problem: {why}",
            where=str(path),
            allowed="a text file of Python in UTF-8",
            hint="give the path of a file that exists",
        ) from error


def executed(source: str, path: str, work: Callable[[dict[str, Any]], T]) -> T:
    """What `work` makes of the names that a file defines; KernelError where its code raises."""
    module = types.ModuleType("kernelbench_problem")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and pickles look for it
    lines = source.splitlines(keepends=True)
    linecache.cache[path] = (len(source), None, lines, path)
    try:
        exec(compile(source, path, "exec"), vars(module))
        return work(vars(module))
    except KernelError:
        raise
    except Exception as error:  # code of others
        raise KernelError(
            f"the problem raises {type(error).__name__}: {error}", where=path
        ) from error
