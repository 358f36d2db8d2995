"""Upper bounds on call times, from requests of secret lengths: of a solution, the reference and an
empty call."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan
from typing import Any, Protocol

import torch

from benchmarks.foreign.counted import Drawn, PerCall, Request, batches, counted
from benchmarks.foreign.process import Refused
from benchmarks.foreign.stopwatch import Inputs
from benchmarks.foreign.sums import Sums
from benchmarks.foreign.truth import called

REQUESTS, SECONDS = 9, 0.2  # Requests of each, and the wanted time of the longest.
LEAST_CALLS, MOST_CALLS, MOST_SUMS = 32, 4096, 16384
CHECKED = 384  # Calls whose sums are compared.
# How far a result moves the next inputs, in periods of their factors for its norm. It is far enough
# that the inputs cannot be guessed without the result, and so little that its allowed errors (a
# share of its norm) leave no choice of them.
MOST_MOVED, MOVED_BY_ERRORS = 64.0, 0.25
UNSTEADY = 0.5  # Share by which the median of requests may exceed the fastest.
_Ask = Callable[[Request], list[list[float]]]


class Counts(Protocol):
    """A solution's process."""

    def draw(self) -> None: ...

    def count(self, request: Request, scales: Sequence[float]) -> list[list[float]]: ...


class Clocked(Protocol):
    """A value, and the seconds it took by the judge's clock."""

    @property
    def value(self) -> Any: ...

    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Answered:
    """A request, and the solution's answer."""

    request: Request
    sums: list[list[float]]

    @property
    def finite(self) -> bool:
        """Whether all sums are finite. After one that is not, all inputs would not be either."""
        return all(isfinite(s) for sums in self.sums for s in sums)


Counted = tuple[PerCall, list[Answered]]  # The time of calls, and the answers.


@dataclass(frozen=True, slots=True)
class Whole:
    """The time of calls with their overhead. nothing: a call that returns its input, so only the
    overhead."""

    solution: PerCall
    reference: PerCall
    nothing: PerCall
    runs: int  # Runs of the solution.

    @property
    def speedup(self) -> float:
        """The ratio of times with overhead, which is the same on both sides if a process serves as
        it should."""
        return self.reference.us / self.solution.us

    @property
    def speedup_at_least(self) -> float:
        """The ratio of the reference without overhead to the solution with it.

        Whatever overhead the solution's process avoids, this does not exceed the gain of its calls.
        """
        reference, nothing, solution = self.reference, self.nothing, self.solution
        least = reference.us - nothing.us - reference.within_us - nothing.within_us
        return max(0.0, least) / (solution.us + solution.within_us)

    def table(self) -> dict[str, float]:
        """Returns the table for a report, in microseconds."""
        return {
            "us": self.solution.us,
            "within_us": self.solution.within_us,
            "nothing_us": self.nothing.us,
            "reference_us": self.reference.us,
            "speedup": self.speedup,
            "speedup_at_least": self.speedup_at_least,
            "runs": self.runs,
        }


@dataclass(frozen=True, slots=True)
class Counting:
    """Calls at one shape.

    sets: of inputs.
    result: one of the reference's.
    seed: of requests, a secret.
    share: limit of the error of a sum, relative to its norm.
    """

    model: torch.nn.Module
    sets: Sequence[Sequence[Any]]
    result: Any
    seed: int
    share: float

    def asked(self, process: Counts, clocked: Callable[[Callable[[], Any]], Clocked]) -> Counted:
        """Returns the time of a solution's calls, and its answers."""
        process.draw()
        scales = self.scales
        return self._counted(lambda request: process.count(request, scales), clocked)

    def whole(
        self,
        solution: Counted,
        clocked: Callable[[Callable[[], Any]], Clocked],
        wait: Callable[[], None],
    ) -> Whole:
        """Measures the reference and an empty call in this process.

        The solution's process has ended, because it could keep the device busy and slow the
        reference. wait: for the device.
        """
        drawn, scales = [Drawn(s) for s in self.sets], self.scales

        def own(call: Callable[..., Any]) -> PerCall:
            def count(request: Request) -> list[list[float]]:
                with torch.no_grad():
                    sums = counted(call, drawn, request, scales)
                wait()
                return sums

            return self._counted(count, clocked)[0]

        per, answered = solution
        reference = own(copy.deepcopy(self.model))  # Calls may change it.
        runs = sum(a.request.calls for a in answered)
        return Whole(per, reference, own(lambda *_: self.result), runs)

    def _counted(self, ask: _Ask, clocked: Callable[[Callable[[], Any]], Clocked]) -> Counted:
        """Makes requests of lengths and seeds that the secret determines, in that order."""
        rng = random.Random(self.seed)
        most = self._calls(clocked(partial(ask, _request(rng, LEAST_CALLS))).seconds)
        requests = [_request(rng, rng.randint((most + 1) // 2, most)) for _ in range(REQUESTS)]
        found = [clocked(partial(ask, request)) for request in requests]
        answered = [Answered(r, f.value) for r, f in zip(requests, found, strict=True)]
        return PerCall.of(requests, [f.seconds for f in found]), answered

    @property
    def possible(self) -> bool:
        """Whether no two calls have the same inputs, and sums are finite."""
        vary = Inputs(self.sets[0]).vary
        return vary and any(self.scales) and all(isfinite(n) for n in Sums(0).norms(self.result))

    @property
    def scales(self) -> list[float]:
        """The factors of sums where the next call's inputs depend on them."""
        norms, moved = Sums(0).norms(self.result), min(MOST_MOVED, MOVED_BY_ERRORS / self.share)
        return [moved / norm if isfinite(norm) and norm > 1e-30 else 0.0 for norm in norms]

    def _calls(self, seconds: float) -> int:
        """Returns the calls of the longest request, given the time of the first."""
        most = min(MOST_CALLS, MOST_SUMS // max(1, len(self.scales)))
        wanted = int(SECONDS / max(seconds, 1e-9) * LEAST_CALLS)
        return max(LEAST_CALLS, min(most, wanted))

    def require_sums(self, answered: Sequence[Answered]) -> None:
        """Refuses sums that do not belong to the inputs of randomly chosen calls."""
        drawn, rng, scales = (
            [Drawn(s) for s in self.sets],
            random.Random(self.seed + 1),
            self.scales,
        )
        for each in answered:
            for n, total in enumerate(each.sums):
                if not all(map(isfinite, total)):  # All that follow would not be finite either.
                    raise Refused("wrong", f"in a counted call, number {n}: a sum is no number")
            count = min(each.request.calls, CHECKED // REQUESTS)
            chosen = set(rng.sample(range(each.request.calls), count))
            for n, right, sums, shift in self._right(drawn, scales, each, chosen):
                require_same(
                    f"in a counted call, number {n}", each.sums[n], right, sums, shift, self.share
                )

    def _right(
        self, drawn: Sequence[Drawn], scales: Sequence[float], each: Answered, chosen: set[int]
    ) -> Iterator[tuple[int, Any, Sums, int]]:
        """Yields the reference's results of chosen calls. Their inputs follow from the reported
        sums."""
        for batch in batches(each.request, len(drawn), drawn[0].together):
            here = [n for n in range(len(batch.shifts)) if batch.first + n in chosen]
            if not here:
                continue
            inputs, sums = drawn[batch.set], Sums(batch.seed)
            draws = inputs.draws(batch.seed)
            for at in here:
                n = batch.first + at
                before = each.sums[n - 1] if n else []
                given = inputs.filled(at, draws[at], before, scales)
                yield n, called(self.model, given), sums, batch.shifts[at]


def require_same(
    where: str, said: Sequence[float], right: Any, sums: Sums, shift: int, share: float
) -> None:
    """Refuses sums of a call that are not those of a result. share: limit of their error, relative
    to a sum's norm."""
    expected, spread = [float(s) for s in sums.of(right, shift)], sums.norms(right)
    if len(said) == len(expected) and all(
        abs(a - b) <= share * most or (isnan(a) and isnan(b)) or a == b
        for a, b, most in zip(said, expected, spread, strict=True)
    ):
        return
    raise Refused(
        "wrong", f"{where}: sums over its results are {list(said)}, those of its inputs {expected}"
    )


def _request(rng: random.Random, calls: int) -> Request:
    return Request(rng.randrange(1 << 40), calls)
