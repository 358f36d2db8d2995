"""Termination: the rules that stop a search. Each gives its reason in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from search.core import quantity
from search.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search."""

    evaluations: int  # reported candidates
    seconds: float  # of all sessions of the run
    since_gain: int  # evaluations since the last gain
    best_us: float | None  # None if no candidate is correct
    roofline_us: float
    nothing_new: bool = False  # no operator had a new candidate
    first_us: float | None = None  # of the first schedule; None if it failed
    # Of models' answers. An unknown cost counts as 0.
    tokens: int = 0
    cost: float = 0.0


class StopRule(Protocol):
    """A rule that can stop the search."""

    def __call__(self, progress: Progress) -> str | None:
        """The reason to stop, in words; None to continue."""


@dataclass(frozen=True, slots=True)
class Evaluations:
    """Stops after `most` candidates."""

    most: int

    def __call__(self, progress: Progress) -> str | None:
        if progress.evaluations < self.most:
            return None
        were = "was" if progress.evaluations == 1 else "were"
        return f"{quantity.count(progress.evaluations, 'evaluation')} {were} asked for and made"


@dataclass(frozen=True, slots=True)
class Seconds:
    """Stops after `most` seconds."""

    most: float

    def __call__(self, progress: Progress) -> str | None:
        if progress.seconds < self.most:
            return None
        return f"the {self.most:g} s it was given are over"


@dataclass(frozen=True, slots=True)
class Stagnation:
    """Stops after `most` candidates in a row without a gain."""

    most: int

    def __call__(self, progress: Progress) -> str | None:
        if progress.since_gain < self.most:
            return None
        return f"no gain in the last {quantity.count(progress.since_gain, 'evaluation')}"


@dataclass(frozen=True, slots=True)
class RooflineShare:
    """Stops when the best reaches a share of the roofline."""

    share: float

    def __call__(self, progress: Progress) -> str | None:
        if progress.best_us is None or progress.roofline_us < self.share * progress.best_us:
            return None
        return f"{progress.roofline_us / progress.best_us:.0%} of the roofline is reached"


@dataclass(frozen=True, slots=True)
class Speedup:
    """Stops when the best is `factor` times as fast as the first schedule."""

    factor: float

    def __call__(self, progress: Progress) -> str | None:
        if progress.best_us is None or progress.first_us is None:
            return None
        reached = progress.first_us / progress.best_us
        if reached < self.factor:
            return None
        return f"it is {reached:.3g} times as fast as the first schedule"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Stops when models have used `most` tokens."""

    most: int

    def __call__(self, progress: Progress) -> str | None:
        if progress.tokens < self.most:
            return None
        return f"{progress.tokens} tokens are used, {self.most} were allowed"


@dataclass(frozen=True, slots=True)
class CostLimit:
    """Stops when models have cost `most`, in the currency of the prices."""

    most: float

    def __call__(self, progress: Progress) -> str | None:
        if progress.cost < self.most:
            return None
        return f"models have cost {progress.cost:.4g}, {self.most:g} were allowed"


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Stops when no new candidate is left."""

    def __call__(self, progress: Progress) -> str | None:
        return "nothing new is left to try" if progress.nothing_new else None


def rules_of(settings: Settings) -> tuple[StopRule, ...]:
    """The rules of some settings. The first that fires gives the reason."""
    chosen: tuple[tuple[Callable[[Any], StopRule], float | None], ...] = (
        (Evaluations, settings.evaluations),
        (Seconds, settings.seconds),
        (Stagnation, settings.stagnation),
        (RooflineShare, settings.roofline_share),
        (Speedup, settings.target_speedup),
        (Tokens, settings.max_tokens),
        (CostLimit, settings.max_cost),
    )
    return tuple(rule(most) for rule, most in chosen if most is not None)


def first_reason(rules: Sequence[StopRule], progress: Progress) -> str | None:
    """The reason of the first rule that fires; None if none does."""
    return next((reason for rule in rules if (reason := rule(progress))), None)
