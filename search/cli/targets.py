"""Targets as the user names them: by the name of one of the project's, or by a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from backends.registry import target, target_names
from ir.errors import KernelError
from ir.machine import Machine


def machine(name: str, path: Callable[[str], Path]) -> tuple[Machine, bool]:
    """A target by name or by file, and whether it is one of the project's own."""
    by_file = name.endswith(".toml") or "/" in name
    try:
        return target(str(path(name)) if by_file else name), not by_file
    except KernelError as error:
        raise (error if error.where else error.within("--target")) from None


def machine_of(
    run: str, stored: str, named: Sequence[str], path: Callable[[str], Path]
) -> tuple[Machine, bool]:
    """The target of a stored run, as `machine` gives it.

    stored: its name in the run.  named: targets that the user names, at most one. KernelError
    where the project has no such target, and none is named: a store does not keep files.
    """
    if named:
        return machine(named[0], path)
    if stored not in target_names(for_tests=True):
        raise KernelError(
            f"run `{run}` is for target `{stored}`, which the project does not have",
            where="--target",
            hint="for a target of your own, give its file too: --target=FILE.toml",
        )
    return machine(stored, path)
