"""What became of a candidate: an evaluation, or the failure that stood in its way."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ir.errors import KernelError
from ir.provenance import CORRECT_BY, STAGES, TIME_KINDS
from search.core.quantity import positive

KINDS = ("wrong", "crash", "timeout", "memory", "refused", "machine", "slow")
MACHINE = "machine"  # says nothing of the candidate: tried again
SLOW = "slow"  # its time, by a glance, was much more than the best's: nothing of it was checked
CHANCE = ("timeout", "memory", "crash", MACHINE)  # these may be the machine's fault
NO_REASON = "no reason was given"


@dataclass(frozen=True, slots=True)
class ShapeError:
    """How far a result was from float64's at some sizes: the norm of the difference over the
    norm of the result; and how far plain arithmetic of the same precision is."""

    sizes: Mapping[str, int]
    rel_err: float
    reference_rel_err: float
    reduced: bool = False  # it stands for a tuning size: its tiling, at fewer elements


@dataclass(frozen=True, slots=True)
class Timed:
    """The time at one shape of a workload in microseconds, with figures."""

    sizes: Mapping[str, int]
    weight: float  # of the shape in the workload
    us: float
    # As in `Evaluation`.
    figures: Mapping[str, float] = field(default_factory=dict)
    engines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of a correct candidate."""

    # Microseconds at the tuning sizes, obtained as `time_kind` says; for a workload of several
    # shapes the weighted geometric mean.
    us: float
    time_kind: str
    correct_by: str
    errors: tuple[ShapeError, ...] = ()  # at all checked sizes
    # Features of the nest and of the run, by name; of a workload, at its heaviest shape.
    figures: Mapping[str, float] = field(default_factory=dict)
    # Busy share by engine; of a workload, at its heaviest shape.
    engines: Mapping[str, float] = field(default_factory=dict)
    source_digest: str = ""
    # sha256 of the code object that was timed; empty where a build makes none.
    code_sha256: str = ""
    # Duration of the evaluation by stage; not compared.
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    # At each shape of a workload, in its order; empty for a single shape.
    times: tuple[Timed, ...] = ()

    def __post_init__(self) -> None:
        _one_of("time_kind", self.time_kind, TIME_KINDS)
        _one_of("correct_by", self.correct_by, CORRECT_BY)
        if not positive(self.us):
            raise ValueError(f"a time must be positive and finite, not {self.us} us")
        seen: tuple[Evaluation | Timed, ...] = (self, *self.times)
        for one in seen:
            for name, value in (*one.figures.items(), *one.engines.items()):
                if not math.isfinite(value):
                    raise ValueError(f"the figure `{name}` is {value}")

    def faster_than(self, other: Evaluation | None) -> bool:
        """Whether this takes less time than `other` (or there is none); KernelError where the
        two times were obtained in different ways."""
        if other is None:
            return True
        same_kind(self.time_kind, other.time_kind)
        return self.us < other.us

    def at(self, sizes: Mapping[str, int]) -> Evaluation | None:
        """What this is at one shape of its workload alone; None where it was not timed there."""
        for one in self.times:
            if dict(one.sizes) == dict(sizes):
                return replace(self, us=one.us, figures=one.figures, engines=one.engines, times=())
        return None


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate that failed: the stage, the kind and a readable reason."""

    stage: str
    kind: str
    reason: str
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    # Evaluation at the shapes of a workload where it fits the machine; None: it fits at none, or
    # was not evaluated there.
    partly: Evaluation | None = None
    # Of one that is slow: about how many microseconds it takes. Whether it is right is not known, so it is
    # never the best, an elite, a parent or a record.
    us: float | None = None

    def __post_init__(self) -> None:
        _one_of("stage", self.stage, STAGES)
        _one_of("kind", self.kind, KINDS)
        if (self.kind == SLOW) != (self.us is not None and positive(self.us)):
            raise ValueError(f"what is {self.kind} has a time of {self.us} us")
        if not self.reason.strip():  # as of an error without words
            object.__setattr__(self, "reason", NO_REASON)

    @property
    def by_chance(self) -> bool:
        """Whether it may be the machine's fault and not the candidate's. A time that cannot be
        true is a measured one."""
        return self.kind in CHANCE or (self.stage, self.kind) == ("time", "wrong")

    @property
    def slow(self) -> bool:
        """Whether it was not checked, as it is too slow to be of use."""
        return self.kind == SLOW

    @property
    def headline(self) -> str:
        """The first line of the reason that says something."""
        return next(line.strip() for line in self.reason.splitlines() if line.strip())


Evaluated = Evaluation | Failure


def at(outcome: Evaluated, sizes: Mapping[str, int]) -> Evaluation | None:
    """What became of a candidate at one shape of a workload; None where it does not work there."""
    whole = outcome.partly if isinstance(outcome, Failure) else outcome
    return whole.at(sizes) if whole else None


def same_kind(kind: str, other: str) -> None:
    """KernelError unless two times were obtained in the same way."""
    if kind != other:
        raise KernelError(
            f"a {kind} time cannot be compared with a {other} one",
            allowed="times obtained in one way, " + " or ".join(TIME_KINDS),
            hint="start a new run on this machine",
        )


def to_json(evaluated: Evaluated) -> str:
    """One line of JSON; `from_json` gives an equal value back, to the last bit."""
    tag = "evaluation" if isinstance(evaluated, Evaluation) else "failure"
    return json.dumps({tag: asdict(evaluated)}, allow_nan=False)


def from_json(text: str) -> Evaluated:
    """What `to_json` wrote; ValueError, KeyError or TypeError where the text is something else."""
    found = json.loads(text)
    tag, table = next(iter(found.items())) if isinstance(found, dict) and found else ("", None)
    if tag not in ("evaluation", "failure") or not isinstance(table, dict):
        raise ValueError(f"neither an evaluation nor a failure: {text[:80]!r}")
    if tag == "evaluation":
        return _evaluation(table)
    partly = table.pop("partly", None)
    return Failure(**table, partly=_evaluation(partly) if partly else None)


def _evaluation(table: dict[str, Any]) -> Evaluation:
    errors = tuple(ShapeError(**e) for e in table.pop("errors"))
    times = tuple(Timed(**t) for t in table.pop("times", ()))
    return Evaluation(errors=errors, times=times, **table)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(allowed)}")
