"""The file of a job: its kernels, targets and budget, checked before anything starts.

A search of the file is checked like the equivalent options of the command.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

from ir.errors import KernelError
from ir.source import near
from machines.fields.fields import COUNT, FLAG, SIZE, Fields, Kind, require
from search.cli.arguments import EVALUATIONS, Arguments
from search.cli.files import text_of
from search.cli.shapes import worded
from search.cli.suite import Problem, suite
from search.core.quantity import positive
from search.loop.rounds import ROUND, JobBudget, Share

ENDING = ".toml"
GUIDE = "docs/jobs.md lists the keys of a job's file"
NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}")
NAME_ALLOWED = "letters, digits, `_`, `.` and `-`, a letter first, up to 64"
SEARCH = "search"  # the table of a search
_HEADER = re.compile(r"\s*\[")
_BUDGET = re.compile(r"\s*\[\s*budget\s*\]")
_SEARCH = re.compile(r"\s*\[\[\s*search\s*\]\]")
_OPTION = re.compile(r"--[a-z][a-z-]*")


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _kind(allowed: str, holds: Callable[[Any], bool]) -> Kind:
    return Kind(allowed, holds, optional=True)


def _optional(kind: Kind) -> Kind:
    return replace(kind, optional=True)


_TEXT = _kind("a text", _text)
_TEXTS = _kind(
    "a list of texts, one at least",
    lambda v: isinstance(v, list) and bool(v) and all(map(_text, v)),
)
_AMOUNT = _kind(
    "a number greater than 0",
    lambda v: isinstance(v, int | float) and not isinstance(v, bool) and positive(v),
)
_WHOLE = _kind("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool))
_SIZE, _COUNT, _FLAG = _optional(SIZE), _optional(COUNT), _optional(FLAG)

TOP: Fields = {
    "name": _kind(
        NAME_ALLOWED,
        lambda v: isinstance(v, str) and bool(NAME.fullmatch(v)),
    ),
    "seed": _COUNT,
    "memory": _FLAG,
    "lessons": _FLAG,
    "held_out": _COUNT,
    "budget": _kind("a table", lambda v: isinstance(v, dict)),
    SEARCH: Kind(
        "tables `[[search]]`, one at least",
        lambda v: isinstance(v, list) and bool(v) and all(isinstance(each, dict) for each in v),
    ),
}
BUDGET: Fields = {"evaluations": _SIZE, "seconds": _AMOUNT, "round": _SIZE}
# By key of a search: the equivalent option of the command, and the type of its value.
OPTIONS: Mapping[str, tuple[str, Kind]] = {
    "targets": ("--target", replace(_TEXTS, optional=False)),
    "kernels": ("--kernel", _TEXTS),
    "problem": ("--problem", _TEXT),
    "task": ("--task", _TEXT),
    "reduced": ("--reduced", _FLAG),
    "allow_torch": ("--allow-torch", _TEXTS),
    "shapes": ("--shape", _TEXTS),
    "dispatch": ("--dispatch", _SIZE),
    "schedule": ("--schedule", _TEXT),
    "backends": ("--backend", _TEXTS),
    "evaluations": ("--evaluations", _SIZE),
    "seconds": ("--seconds", _AMOUNT),
    "policy": ("--policy", _TEXT),
    "operators": ("--operators", _TEXTS),
    "target_speedup": ("--target-speedup", _AMOUNT),
    "stagnation": ("--stagnation", _SIZE),
    "seed": ("--seed", _COUNT),
    "models": ("--model", _TEXTS),
    "max_tokens": ("--max-tokens", _SIZE),
    "max_cost": ("--max-cost", _AMOUNT),
}
OF_SEARCH: Fields = {
    **{key: kind for key, (_, kind) in OPTIONS.items()},
    "weight": _AMOUNT,
    "priority": _WHOLE,
}
# By attribute: options of the command that a job's file replaces.
REFUSED = {
    **{key: option for key, (option, _) in OPTIONS.items()},
    "held_out": "--held-out",
    "memory": "--memory",
    "lessons": "--lessons",
    "secret": "--secret",
}


def require_unsaid(asked: Arguments) -> None:
    """Raises KernelError for an option that belongs in a job's file, or that no job supports."""
    others = {"resume": "--resume", "replay": "--replay", "no_store": "--no-store"}
    others |= {"model_new": "--model-new", "trace": "--trace"}
    for name, option in {**REFUSED, **others}.items():
        if getattr(asked, name) not in (None, (), False):
            keys = {each: key for key, (each, _) in OPTIONS.items()}
            keys |= {"--memory": "memory", "--lessons": "lessons", "--held-out": "held_out"}
            key = keys.get(option)
            raise KernelError(
                f"{option} and --job do not go together",
                where=option,
                hint=f"say `{key}` in the file" if key else "leave one of them out",
            )


@dataclass(frozen=True, slots=True)
class JobSearch:
    """A kernel for a target, with its share of the job."""

    problem: Problem
    share: Share


@dataclass(frozen=True, slots=True)
class Job:
    """Searches with one budget."""

    name: str  # for a person; a store numbers jobs with the same name
    searches: tuple[JobSearch, ...]
    budget: JobBudget
    memory: bool = False
    lessons: bool = False
    held_out: int | None = None  # None: the default number of shapes
    seed: int = 0
    notes: tuple[str, ...] = ()  # for a person: the backends that are left out, and why
    target_files: tuple[str, ...] = ()  # of targets that do not belong to the project

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of its searches."""
        return tuple(each.problem for each in self.searches)


def read_job(asked: Arguments, path: Callable[[str], Path]) -> Job:
    """The job in the user's file. Raises KernelError for the first fault, with its place in the
    file.

    path: makes a user's path absolute. Paths in the file are relative to its folder.
    """
    assert asked.job is not None, "a file was named"
    file = path(asked.job)
    return _Reader(asked, file).job()


class _Reader:
    """Reads one file."""

    def __init__(self, asked: Arguments, file: Path):
        self.file = file
        self.text = text_of(file, "--job", ENDING)
        self.lines = self.text.splitlines()
        self.asked = asked

    def job(self) -> Job:
        """The whole job."""
        try:
            table = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise KernelError(str(error), where=str(self.file), allowed="TOML") from None
        self._require(table, TOP)
        name = table.get("name") or self.file.stem
        if not NAME.fullmatch(name):
            self._refuse(None, "name", f"would be `{name}`, as the file's", NAME_ALLOWED)
        given = table.get("budget", {})
        self._require(given, BUDGET, prefix="budget.")
        budget = JobBudget(
            _int(given.get("evaluations")), given.get("seconds"), int(given.get("round", ROUND))
        )
        seed = int(table.get("seed", 0))
        limited = (budget.evaluations, budget.seconds) != (None, None)
        searches: list[JobSearch] = []
        notes: dict[str, None] = {}
        for number, each in enumerate(table[SEARCH], 1):
            found, said = self._searches(number, {"seed": seed, **each}, limited)
            self._require_alike(number, searches, found)
            searches += found
            notes |= dict.fromkeys(said)
        self._require_turns(table[SEARCH], limited)
        return Job(
            name,
            tuple(searches),
            budget,
            memory=table.get("memory", False),
            lessons=table.get("lessons", False),
            held_out=_int(table.get("held_out")),
            seed=seed,
            notes=tuple(notes),
            target_files=self._target_files(table[SEARCH]),
        )

    def _target_files(self, tables: list[dict[str, Any]]) -> tuple[str, ...]:
        named = dict.fromkeys(name for each in tables for name in each["targets"])
        return tuple(str(self._path(name)) for name in named if name.endswith(ENDING))

    def _searches(
        self, number: int, table: Mapping[str, Any], limited: bool
    ) -> tuple[list[JobSearch], tuple[str, ...]]:
        """The searches of one table, and notes for a person."""
        self._require(table, OF_SEARCH, number)
        most = _int(table.get("evaluations"))
        if most is None and table.get("seconds") is None and not limited:
            most = EVALUATIONS
        share = Share(
            float(table.get("weight", 1.0)), table.get("priority", 0), most, table.get("seconds")
        )
        try:
            found = suite(self._arguments(table), self._path)
        except KernelError as error:
            raise self._in_file(number, error) from None
        return [JobSearch(problem, share) for problem in found.problems], found.notes

    def _arguments(self, table: Mapping[str, Any]) -> Arguments:
        """The equivalent arguments of the command for a table."""
        given = {key: table[key] for key in OPTIONS if key in table}
        for key in ("targets", "kernels", "allow_torch", "backends", "operators", "models"):
            given[key] = tuple(dict.fromkeys(given.get(key, ())))
        for key in ("dispatch", "evaluations", "stagnation", "seed", "max_tokens"):
            given[key] = _int(given.get(key))
        given["shapes"] = tuple(worded(text) for text in table.get("shapes", ()))
        return replace(self.asked, **{"reduced": False, **given})

    def _path(self, given: str) -> Path:
        return self.file.parent / Path(given).expanduser()

    def _require_alike(self, number: int, earlier: list[JobSearch], found: list[JobSearch]) -> None:
        """Raises KernelError if two searches would have the same record for different kernels."""
        for new, old in product(found, earlier):
            one, other = new.problem.settings, old.problem.settings
            if one.kernel != other.kernel:
                continue
            if one.spec != other.spec:
                self._refuse(
                    number,
                    "kernels",
                    f"names another `{one.kernel}` than an earlier search",
                    hint="give one of the two another name",
                )
            if one.target == other.target and one.shapes != other.shapes:
                self._refuse(
                    number,
                    "shapes",
                    f"are others than an earlier search has for `{one.kernel}` on `{one.target}`, "
                    "and there is one record for both",
                    hint="give all shapes to one search, with `dispatch` for several kernels",
                )

    def _require_turns(self, tables: list[dict[str, Any]], limited: bool) -> None:
        """Raises KernelError if a search of a higher priority leaves nothing to the others."""
        least = min(each.get("priority", 0) for each in tables)
        for number, each in enumerate(tables, 1):
            unlimited = limited and "evaluations" not in each and "seconds" not in each
            if each.get("priority", 0) > least and unlimited:
                self._refuse(
                    number,
                    "priority",
                    f"is {each.get('priority', 0)}, and without a limit of its own this search leaves "
                    f"nothing to those of priority {least}",
                    hint="give it `evaluations` or `seconds`, or a `weight` instead of a priority",
                )

    def _require(
        self,
        table: Mapping[str, Any],
        fields: Fields,
        number: int | None = None,
        prefix: str = "",
    ) -> None:
        def refuse(key: str, what: str, allowed: str = "", hint: str = "") -> None:
            name = key.removeprefix(prefix)
            hint = near(name, fields, GUIDE) if name in table and name not in fields else ""
            self._refuse(number, key, what, allowed, hint or GUIDE)

        require(table, fields, refuse, prefix)

    def _refuse(
        self, number: int | None, key: str, what: str, allowed: str = "", hint: str = ""
    ) -> NoReturn:
        raise KernelError(
            f"`{key}` {what}", where=self._where(number, key), allowed=allowed, hint=hint
        )

    def _in_file(self, number: int, error: KernelError) -> KernelError:
        """An error about options, as one about their keys."""
        keys = {option: key for key, (option, _) in OPTIONS.items()}

        def worded_here(text: str) -> str:
            return _OPTION.sub(lambda found: f"`{keys.get(found[0], found[0])}`", text)

        key = keys.get(error.where, "")
        where = self._where(number, key)
        if not key and error.where:
            where += f", {error.where}"
        return KernelError(
            f"`{key}`: {worded_here(error.what)}" if key else worded_here(error.what),
            place=error.place,
            where=where,
            allowed=worded_here(error.allowed),
            hint=worded_here(error.hint),
        )

    def _where(self, number: int | None, key: str) -> str:
        """A place in the file: the line of a key, else the line of its table."""
        first, last = 0, len(self.lines)
        if number is not None:
            heads = [n for n, line in enumerate(self.lines) if _SEARCH.match(line)]
            # Inline tables, `search = [{...}]`, have no lines of their own.
            if len(heads) < number:
                return f"{self.file}, search {number}"
            first = heads[number - 1]
            after = (n for n in range(first + 1, last) if _HEADER.match(self.lines[n]))
            last = next(after, last)
        elif key.startswith("budget."):
            first = next((n for n, x in enumerate(self.lines) if _BUDGET.match(x)), 0)
        own = re.compile(rf"\s*{re.escape(key.rpartition('.')[2])}\s*=") if key else None
        found = [n for n in range(first, last) if own and own.match(self.lines[n])]
        line = found[0] if found else first if number is not None else None
        at = f"{self.file}, line {line + 1}" if line is not None else str(self.file)
        return f"{at}, search {number}" if number is not None else at


def _int(value: float | None) -> int | None:
    return None if value is None else int(value)
