"""The outcome of a candidate: an evaluation or a failure."""

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
MACHINE = "machine"  # says nothing about the candidate, which is tried again
SLOW = "slow"  # the glance was much slower than the best, so correctness was not checked
CHANCE = ("timeout", "memory", "crash", MACHINE)  # the machine may have caused these
NO_REASON = "no reason was given"


@dataclass(frozen=True, slots=True)
class ShapeError:
    """The relative error at some sizes: norm of the difference from float64, over the norm of the
    float64 result. `reference_rel_err` is the same for plain arithmetic of equal precision."""

    sizes: Mapping[str, int]
    rel_err: float
    reference_rel_err: float
    reduced: bool = False  # a smaller shape, checked in place of a tuning size with the same tiling


@dataclass(frozen=True, slots=True)
class Timed:
    """The time at one shape of a workload in microseconds, with its figures."""

    sizes: Mapping[str, int]
    weight: float  # of the shape in the workload
    us: float
    # The same as in `Evaluation`.
    figures: Mapping[str, float] = field(default_factory=dict)
    engines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of a correct candidate."""

    # Microseconds at the tuning sizes; `time_kind` says how they were obtained. For a workload of
    # several shapes: the weighted geometric mean.
    us: float
    time_kind: str
    correct_by: str
    errors: tuple[ShapeError, ...] = ()  # at all checked sizes
    # Features of the nest and of the run, by name; for a workload, at its heaviest shape.
    figures: Mapping[str, float] = field(default_factory=dict)
    # Busy share by engine, 0 to 1; for a workload, at its heaviest shape.
    engines: Mapping[str, float] = field(default_factory=dict)
    source_digest: str = ""
    # SHA-256 of the code object that was timed; empty if a build makes none.
    code_sha256: str = ""
    # Duration of the evaluation by stage; not compared.
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    # The time at each shape of a workload, in its order; empty for a single shape.
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
        """Whether this time is shorter than that of `other`. True if there is no other.

        Raises KernelError if the two times are of different kinds.
        """
        if other is None:
            return True
        same_kind(self.time_kind, other.time_kind)
        return self.us < other.us

    def at(self, sizes: Mapping[str, int]) -> Evaluation | None:
        """The evaluation at one shape of the workload; None if it was not timed there."""
        for one in self.times:
            if dict(one.sizes) == dict(sizes):
                return replace(self, us=one.us, figures=one.figures, engines=one.engines, times=())
        return None


@dataclass(frozen=True, slots=True)
class Failure:
    """The outcome of a failed candidate: the stage, the kind and a readable reason."""

    stage: str
    kind: str
    reason: str
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    # Evaluation at those shapes of a workload that fit the machine; None: none fits, or none was
    # evaluated.
    partly: Evaluation | None = None
    # The rough time of a slow candidate in microseconds. Its correctness is unknown, so it is never
    # the best, an elite, a parent or a record.
    us: float | None = None

    def __post_init__(self) -> None:
        _one_of("stage", self.stage, STAGES)
        _one_of("kind", self.kind, KINDS)
        if (self.kind == SLOW) != (self.us is not None and positive(self.us)):
            raise ValueError(f"what is {self.kind} has a time of {self.us} us")
        if not self.reason.strip():  # for example of an exception without a message
            object.__setattr__(self, "reason", NO_REASON)

    @property
    def by_chance(self) -> bool:
        """Whether the machine and not the candidate may be the cause. An impossible time also
        counts, because it was measured."""
        return self.kind in CHANCE or (self.stage, self.kind) == ("time", "wrong")

    @property
    def slow(self) -> bool:
        """Whether it was not checked because it is too slow to be useful."""
        return self.kind == SLOW

    @property
    def headline(self) -> str:
        """The first line of the reason that is not empty."""
        return next(line.strip() for line in self.reason.splitlines() if line.strip())


Evaluated = Evaluation | Failure


def at(outcome: Evaluated, sizes: Mapping[str, int]) -> Evaluation | None:
    """The evaluation of an outcome at one shape of a workload; None if the candidate failed
    there."""
    whole = outcome.partly if isinstance(outcome, Failure) else outcome
    return whole.at(sizes) if whole else None


def same_kind(kind: str, other: str) -> None:
    """Raises KernelError if two times are of different kinds."""
    if kind != other:
        raise KernelError(
            f"a {kind} time cannot be compared with a {other} one",
            allowed="times obtained in one way, " + " or ".join(TIME_KINDS),
            hint="start a new run on this machine",
        )


def to_json(evaluated: Evaluated) -> str:
    """The outcome as one line of JSON. `from_json` returns an equal value, to the last bit."""
    tag = "evaluation" if isinstance(evaluated, Evaluation) else "failure"
    return json.dumps({tag: asdict(evaluated)}, allow_nan=False)


def from_json(text: str) -> Evaluated:
    """The outcome in a text of `to_json`. Raises ValueError, KeyError or TypeError for any other
    text."""
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
