"""Targets as the user names them: by the name of a project's target, or by a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from backends.registry import target, target_names
from ir.errors import KernelError
from ir.machine import Machine


def machine(name: str, path: Callable[[str], Path]) -> tuple[Machine, bool]:
    """A target by name or by file, and whether it belongs to the project."""
    by_file = name.endswith(".toml") or "/" in name
    try:
        return target(str(path(name)) if by_file else name), not by_file
    except KernelError as error:
        raise (error if error.where else error.within("--target")) from None


def machine_of(
    run: str, stored: str, named: Sequence[str], path: Callable[[str], Path]
) -> tuple[Machine, bool]:
    """The target of a stored run, as in `machine`.

    stored: its name in the run. named: at most one target that the user names. Raises KernelError
    if the project has no such target and none is named, because a store does not keep target files.
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
