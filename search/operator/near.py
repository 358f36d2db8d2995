"""Near: a few small moves from the first parent, guided by the times so far.

Time models distinguish schedules that are far from good. Their error is larger than the differences
between similar schedules, so here they only exclude hopeless ones. The guide is a linear model of
the logarithms of times in the moves from the parent (Bayesian, with a parabola for each numeric
decision). One model is drawn for each child (Thompson sampling). So concurrent candidates differ,
and untried moves are tried.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ir.edits.edits import difference
from ir.schedule import Decision, Schedule
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.loop.context import Context, GaveUp, Parent
from search.operator.space import SearchSpace, Setting, Tunable

# Verbs that divide work between blocks and threads. They determine the time of memory-bound
# kernels, often two of them together: a block with half as many elements and half as many threads
# does the same work in each thread.
CUTS = ("tile", "threads", "split_k", "persistent")
LIKING = 3  # factor on the probability of these verbs
SETTINGS = 160  # settings that are drawn for one child
HOPELESS = 1.5  # factor on the parent's time by the forecast
FAR = 6.0  # moves beyond which a time says little
LOST = 0.7  # logarithm of the ratio that a failure counts as
NOISE = 0.03  # of logarithms of times; includes the error of the model
# The prior: spread of a move's effect, spread of its curvature, and expected cost of a move.
SPREAD, BENT, COST = 0.06, 0.02, 0.015
ELSEWHERE = 0.25  # probability that a non-numeric decision takes any other value
REACH = 4  # largest number of moves of one decision that are distinguished


@dataclass(frozen=True, slots=True)
class Near:
    """Moves a few decisions by one or two values."""

    name: str = "near"
    parents: int = 1
    remote: bool = False
    by_name: bool = True  # named by searches that measure times (`search/loop/opening.py`)

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child with one to four decisions moved."""
        parent = context.parents[0]
        told = list(_told(context))
        seen = [schedule for schedule, _ in told]
        space = SearchSpace.of(
            parent.variant, parent.schedule, context.machine, context.sizes, seen
        )
        if not space.parameters:
            return GaveUp("there is nothing to move")
        known = [(space.setting(schedule), y) for schedule, y in told]
        most = HOPELESS * context.expected_us(parent.candidate)
        for setting in _ranked(space, known, rng):
            schedule = space.schedule(setting)
            note = "; ".join(str(e) for e in difference(space.base, schedule))
            found = context.offer(schedule, self.name, note or "another order of loops")
            if isinstance(found, Candidate) and context.expected_us(found) <= most:
                return found
        return GaveUp(f"none of {SETTINGS} settings near the parent is new, legal and promising")


def _told(context: Context) -> Iterator[tuple[Schedule, float]]:
    """The evaluated schedules of the parent's variant, with the logarithm of their time over the
    parent's."""
    first = context.parents[0]
    own = first.outcome.us if isinstance(first.outcome, Evaluation) else None
    for key, outcome in context.outcomes.items():
        candidate = context.graph.node(key)
        mine = first.candidate
        same = (candidate.variant, candidate.target, candidate.backend) == (
            mine.variant,
            mine.target,
            mine.backend,
        )
        if not same or candidate.source is not None or own is None:
            continue
        if outcome.us is not None:
            yield Parent(candidate).schedule, min(LOST, math.log(outcome.us / own))
        elif isinstance(outcome, Failure):
            yield Parent(candidate).schedule, LOST


def _ranked(
    space: SearchSpace, known: Sequence[tuple[Setting, float]], rng: random.Random
) -> list[Setting]:
    """Settings near the base, in the order of the expected time by one drawn model."""
    start, every = space.setting(space.base), list(space.parameters.values())
    weights = [LIKING if p.verb in CUTS else 1 for p in every]
    drawn = []
    for _ in range(SETTINGS):
        count = rng.choices((1, 2, 3, 4), (3, 3, 2, 1))[0]
        moved = {p.name: p for p in rng.choices(every, weights, k=count)}
        drawn.append({**start, **{n: _moved(p, start[n], rng) for n, p in moved.items()}})
    effects = _effects(every, start, known, rng)
    expected = np.stack([_features(every, start, s) for s in drawn]) @ effects
    return [drawn[n] for n in np.argsort(expected, kind="stable")]


def _moved(parameter: Tunable, number: int, rng: random.Random) -> int:
    """Another value.

    Among values that differ in one number, one of the two nearest on either side; the nearest are
    three times as likely. If there are none, any other value.
    """
    values = parameter.values
    if parameter.ordinal:
        row = list(range(len(values)))
    else:
        row = [n for n, value in enumerate(values) if _alike(value, values[number])]
    at = row.index(number)
    able = [n for n in row[max(0, at - 2) : at + 3] if n != number]
    if not able or (not parameter.ordinal and rng.random() < ELSEWHERE):
        return rng.choice([n for n in range(len(values)) if n != number])
    return rng.choices(able, [3 if abs(row.index(n) - at) == 1 else 1 for n in able])[0]


def _alike(one: Decision | None, other: Decision | None) -> bool:
    """Whether two decisions differ in at most one number."""
    if one is None or other is None or one.options == other.options:
        return one == other
    pairs = zip(one.options, other.options)
    differing = [(a, b) for a, b in pairs if a != b]
    same = len(one.options) == len(other.options) and len(differing) == 1
    return same and all(
        n[0] == m[0] and isinstance(n[1], int) and isinstance(m[1], int) for n, m in differing
    )


def _features(every: Sequence[Tunable], start: Setting, setting: Setting) -> np.ndarray:
    """The features of a setting in the model: for a numeric decision its move and the square of it;
    for any other, an indicator of each value except the base's."""
    found: list[float] = []
    for p in every:
        now, was = setting[p.name], start[p.name]
        if p.ordinal:
            by = max(-REACH, min(REACH, now - was))
            found += [by, by * by]
        else:
            found += [float(n == now) for n in range(len(p.values)) if n != was]
    return np.array(found)


def _effects(
    every: Sequence[Tunable],
    start: Setting,
    known: Sequence[tuple[Setting, float]],
    rng: random.Random,
) -> np.ndarray:
    """Draws the weights of the features from their posterior."""
    mean: list[float] = []
    spread: list[float] = []
    for p in every:
        if p.ordinal:
            mean += [0.0, COST]
            spread += [SPREAD, BENT]
        else:
            mean += [COST] * (len(p.values) - 1)
            spread += [SPREAD] * (len(p.values) - 1)
    prior = np.array(mean)
    precision = np.diag(1.0 / np.array(spread) ** 2)
    right = precision @ prior
    for setting, y in known:
        x = _features(every, start, setting)
        moves = sum(
            min(REACH, abs(setting[p.name] - start[p.name]))
            if p.ordinal
            else setting[p.name] != start[p.name]
            for p in every
        )
        weight = math.exp(-moves / FAR) / NOISE**2
        precision += weight * np.outer(x, x)
        right += weight * y * x
    cov = np.linalg.inv(precision)
    generator = np.random.default_rng(rng.getrandbits(32))
    drawn: np.ndarray = generator.multivariate_normal(
        cov @ right, (cov + cov.T) / 2, method="cholesky"
    )
    return drawn
