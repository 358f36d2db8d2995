"""The destination of winners: the checkout, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ir.errors import KernelError
from search.command.arguments import Arguments
from search.command.problem import Problem
from search.command.surroundings import Surroundings


def _module(asked: Arguments) -> bool:
    return asked.problem is not None or asked.task is not None


def destination(
    asked: Arguments, around: Surroundings, problems: Sequence[Problem]
) -> Path | None:
    """Where winners go; None for nowhere. KernelError where the user wants what cannot be.

    Kernels of a module are of no suite: they go nowhere unless it is asked for.
    """
    foreign = [p.machine.name for p in problems if not p.ours]
    if not asked.promote:
        proof = all(not p.backend.manifest.for_tests for p in problems)
        by_itself = asked.promote is None and proof and not foreign and not _module(asked)
        return around.checkout if by_itself else None
    if around.checkout is None:
        raise KernelError(
            "there is no checkout to write to",
            where="--promote",
            hint="run it by `bazel run`, or from the root of a checkout",
        )
    if foreign:
        raise KernelError(
            f"a record for target `{foreign[0]}` could not be tested later, as its file is not "
            "the project's",
            where="--promote",
            hint="put the file into backends/targets/ and name the target",
        )
    return around.checkout
