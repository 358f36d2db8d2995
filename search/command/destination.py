"""The destination of winners: the checkout's records, a folder of the user's, both or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ir.errors import KernelError
from search.command.arguments import Arguments
from search.command.output import require_folder
from search.command.problem import Problem
from search.command.surroundings import Surroundings
from search.record.record import require_same_spec

OPTION = "--out"
USUAL = "speciate_out"  # the folder outside a checkout


@dataclass(frozen=True, slots=True)
class Destination:
    """Where winners go.

    checkout: the tree whose kernels_generated/ takes them; None for nowhere.  all: every winner
    goes there, and not the library's alone.  out: a folder that takes them; None for none.
    named: the user named that folder; otherwise a faster winner there is kept.
    """

    checkout: Path | None = None
    all: bool = False
    out: Path | None = None
    named: bool = False

    def promotes(self, problem: Problem) -> bool:
        """Whether a winner goes to the checkout: by itself, a kernel of the library for a target
        of the project that is not for tests."""
        usual = problem.library and problem.ours and not problem.backend.manifest.for_tests
        return self.checkout is not None and (self.all or usual)

    def writes(self, problem: Problem) -> bool:
        """Whether a winner goes to the folder."""
        for_tests = problem.backend.manifest.for_tests
        return self.out is not None and (self.named or not for_tests)


def destination(asked: Arguments, around: Surroundings, problems: Sequence[Problem]) -> Destination:
    """Where winners go. KernelError where the user wants what cannot be, told before a search."""
    if asked.promote:
        _require_checkout(around, problems)
    checkout = around.checkout if asked.promote is not False else None
    named = asked.out is not None
    out = around.path(asked.out) if asked.out is not None else None
    silent = asked.promote is None and asked.model_new is None
    if out is None and around.checkout is None and silent:
        out = around.folder / USUAL
    found = Destination(checkout, asked.promote is True, out, named)
    written = [problem for problem in problems if found.writes(problem)]
    if out is not None and written:
        _require_folder(out, written, named and not asked.overwrite)
    return found


def _require_checkout(around: Surroundings, problems: Sequence[Problem]) -> None:
    if around.checkout is None:
        raise KernelError(
            "there is no checkout to write to",
            where="--promote",
            hint="run it by `bazel run` or inside a checkout; --out=DIR needs none",
        )
    foreign = [p.machine.name for p in problems if not p.ours]
    if foreign:
        raise KernelError(
            f"a record for target `{foreign[0]}` could not be tested later, as its file is not "
            "the project's",
            where="--promote",
            hint="put the file into backends/targets/ and name the target; --out=DIR needs neither",
        )


def _require_folder(out: Path, problems: Sequence[Problem], new: bool) -> None:
    """KernelError where winners could not be written. new: what is there may not be replaced."""
    for problem in problems:
        settings = problem.settings
        folder = out / settings.kernel / settings.target
        require_folder(OPTION, folder)
        if new and folder.exists():
            raise KernelError(
                f"`{folder}` is there already",
                where=OPTION,
                hint="name another folder, or give --overwrite to replace it",
            )
        require_same_spec(folder, settings.spec)
