"""The plan of a search for a call: its ways, their kernels before the search, and the possible gain
of each.

If there is a device, whole calls are measured: each way with its seed schedules, and each kernel in
it. Otherwise times are estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.compiled import Kernels
from backends.served import Served
from ir.network import Network
from ir.partition.choices import Choices
from ir.spec import Spec
from search.core.lowered import schedule_text, variant_text
from search.core.phases import phase
from search.whole.timed import AFTER, BEFORE, KernelTexts, TimedNetwork, prestart, times_of
from search.whole.times import MEASURED, WholeTimes
from search.whole.ways import NEAR, Networks, Way, another, other_ways, way

LEAST_WEIGHT, MOST_WEIGHT = 0.05, 0.5  # of kernels that only other ways have
GAIN = 0.99  # a better way takes at most this share of the time of a call
MOST_TRIED = 8  # found kernels for which a call without each is timed

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class KernelSeed:
    """A kernel before a search."""

    spec: Spec
    calls: int  # steps of a call that run it
    weight: float  # factor on its gain; less than 1 if the best way so far lacks it
    us: float  # time of its seed schedule in microseconds
    timed: bool  # whether the time was measured in a call, and not estimated
    texts: KernelTexts
    served: tuple[Served, ...]  # the backends in its race; that of its seed schedule is the first
    rounded: tuple[str, ...]  # sums whose operands may be rounded


@dataclass(frozen=True, slots=True)
class Chosen:
    """The fastest call after a search."""

    way: Way
    times: WholeTimes | None  # measured; None if nothing is measured
    passed_over: frozenset[str]  # found kernels that are slower in the call than their seeds


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The plan for a call on a target."""

    # The backends in the race. The first one makes the kernels before a search.
    served: tuple[Served, ...]
    kernels: Kernels
    ways: tuple[Way, ...]  # the best so far is the first
    times: Mapping[str, float]  # times of kernels with seed schedules, by name
    # Measured calls with seed schedules, by the number of the way; empty if nothing is measured
    measured: Mapping[int, WholeTimes]

    @staticmethod
    def of(
        networks: Networks,
        served: Sequence[Served],
        rounded: Collection[str] = (),
        others: Sequence[Served] = (),
        least: int = 0,
    ) -> CallPlan:
        """The ways of a call.

        rounded, others, least: see `Kernels`. A kernel of another backend is searched in that
        backend's language. Raises KernelError if kernels do not lower.
        """
        begin(served[0])
        with phase("ways"):
            return CallPlan._of(networks, served, rounded, others, least)

    @staticmethod
    def _of(
        networks: Networks,
        served: Sequence[Served],
        rounded: Collection[str],
        others: Sequence[Served],
        least: int,
    ) -> CallPlan:
        first = served[0]
        kernels = Kernels(
            first.machine, first.backend, rounded, guessed=True, others=others, least=least
        )
        usual = way(networks, kernels)
        ways = (usual, *other_ways(usual, networks, kernels))
        times = {s.name: kernels.expected_us(s) for w in ways for s in w.call.kernels()}
        return CallPlan(tuple(served), kernels, ways, times, {})

    def timed(self, networks: Networks, say: Say = lambda text: None) -> CallPlan:
        """The plan with measured times, fastest way first; unchanged if nothing is measured here.

        Ways that cannot be timed are reported and left out. If the usual way cannot be timed,
        estimates decide.
        """
        whole = self._whole([(w, {}) for w in self.ways], say, BEFORE)
        if (first := whole[0]) is None:
            return self
        found = [(w, t) for w, t in zip(self.ways, whole, strict=True) if t is not None]
        faster = [w for w, t in found if t.best_us < GAIN * first.best_us]
        if len(faster) > 1:
            usual = self.ways[0].choices
            both = {n: v for w in faster for n, v in w.choices.items() if usual.get(n) != v}
            joint = another(networks, self.kernels, Choices({**usual, **both}))
            if joint is not None:
                (joined,) = self._whole([(joint, {})], say, BEFORE)
                found += [(joint, joined)] if joined is not None else []
        times = dict(self.times)
        # the usual way comes last, because its times take precedence
        for _, each in reversed(found):
            times |= each.kernels
        found.sort(key=lambda each: each[1].best_us)
        best = found[0][0]
        near = [(w, t) for w, t in found if w is best or w.closeness(best, times) <= NEAR]
        ways, measured = tuple(w for w, _ in near), {n: t for n, (_, t) in enumerate(near)}
        return replace(self, ways=ways, times=times, measured=measured)

    def _whole(
        self,
        calls: Sequence[tuple[Way, Mapping[str, KernelTexts]]],
        say: Say,
        when: str,
        each: bool = True,
    ) -> list[WholeTimes | None]:
        """The measured times of ways, each with some kernels in place of seeds; None if nothing is
        measured here, or if timing fails, which is reported.

        when: see `times_of`. each: whether each kernel is timed too.
        """
        if not self.measures:
            return [None] * len(calls)
        times = times_of([self.network(one, found, each) for one, found in calls], when)
        for why in dict.fromkeys(one for one in times if isinstance(one, str)):
            say(f"a call cannot be timed: {why}")
        return [None if isinstance(one, str) else one for one in times]

    @property
    def measures(self) -> bool:
        """Whether whole calls are measured here."""
        return _measures(self.served[0]) and not self.ways[0].call.pauses

    def network(
        self, one: Way, found: Mapping[str, KernelTexts], each: bool = True
    ) -> TimedNetwork:
        """A way with given kernels. found: kernels in place of those with seed schedules. each:
        whether each kernel is timed too."""
        before = one.before.kernels() if one.before else ()
        specs = dict.fromkeys((*one.call.kernels(), *before))
        texts = {s.name: found.get(s.name) or self.texts(s) for s in specs}
        machines = {s.name: s.machine for s in (*self.served, *self.kernels.others)}
        return TimedNetwork(one.call, one.before, machines, texts, each)

    def texts(self, spec: Spec) -> KernelTexts:
        """The texts of a kernel with its seed schedule."""
        nest, source = self.kernels.emit(spec)
        by = self.kernels.served[spec].name
        return KernelTexts(by, variant_text(nest.spec), schedule_text(nest.schedule), source)

    def _racing(self, spec: Spec) -> tuple[Served, ...]:
        """The backends in the race for a kernel; that of its seed schedule is the first."""
        by = self.kernels.served[spec]
        return self.served if by.name == self.served[0].name else (by,)

    def seeds(self) -> list[KernelSeed]:
        """All kernels that a search optimises; those of the best way come first."""
        best, found = self.ways[0], {}
        for number, one in enumerate(self.ways):
            weight = 1.0
            if number:
                room = (NEAR - one.closeness(best, self.times)) / (NEAR - 1.0)
                weight = MOST_WEIGHT * min(1.0, max(LEAST_WEIGHT / MOST_WEIGHT, room))
            for spec in one.call.kernels():
                if spec.name not in found:
                    found[spec.name] = KernelSeed(
                        spec,
                        one.calls[spec.name],
                        weight,
                        self.times[spec.name],
                        bool(self.measured),
                        self.texts(spec),
                        self._racing(spec),
                        self.kernels.rounds(spec),
                    )
        return list(found.values())

    def only(self, ways: Sequence[Way]) -> CallPlan:
        """The plan with some of its ways."""
        kept = [n for n, one in enumerate(self.ways) if one in ways]
        measured = {n: self.measured[was] for n, was in enumerate(kept) if was in self.measured}
        return replace(self, ways=tuple(self.ways[n] for n in kept), measured=measured)

    def chosen(
        self,
        found: Mapping[str, KernelTexts],
        us: Mapping[str, float],
        say: Say = lambda text: None,
    ) -> Chosen:
        """The fastest way with the kernels that a search found, and which of them to use.

        If calls are measured, the result is never slower than with seed schedules only. us: times
        of the found kernels by name; others have the times of their seed schedules.
        """
        times = {**self.times, **us}
        usual, *more = self.ways
        able = [usual, *(w for w in more if w.us(times) < GAIN * usual.us(times))]
        if self.measured and len(able) == 1 and not self._other(usual, found):
            # everything is measured already
            return Chosen(usual, self.measured.get(0), frozenset())
        *measured, seeds = self._whole([*((w, found) for w in able), (usual, {})], say, AFTER)
        if not any(measured):
            best = min(able, key=lambda w: w.us(times))
            if seeds is None:
                return Chosen(best, None, frozenset())
            # Some of the found kernels cannot run in a call.
            runs = self._without_each(best, found, say)
            slower, whole = min(
                runs, key=lambda each: each[1].best_us, default=(frozenset(), seeds)
            )
            if whole.best_us < seeds.best_us:
                return Chosen(best, whole, slower)
            return Chosen(usual, seeds, frozenset(self._other(usual, found)))
        known = [(w, t) for w, t in zip(able, measured, strict=True) if t is not None]
        best, whole = min(known, key=lambda each: each[1].best_us)
        chosen = self._without_slower(best, whole, found, say)
        if seeds is not None and chosen.times is not None and seeds.best_us < chosen.times.best_us:
            return Chosen(usual, seeds, frozenset(self._other(usual, found)))
        return chosen

    def _other(self, one: Way, found: Mapping[str, KernelTexts]) -> list[str]:
        """The found kernels of a way that differ from its seeds, those with the most time first."""
        calls, specs = one.calls, one.call.kernels()
        mine = [
            s for s in specs if s.name in found and found[s.name].source != self.texts(s).source
        ]
        mine.sort(key=lambda s: -calls[s.name] * self.times[s.name])
        return [s.name for s in mine]

    def _without_slower(
        self, best: Way, whole: WholeTimes, found: Mapping[str, KernelTexts], say: Say
    ) -> Chosen:
        """The way without the kernels that make its call slower than their seeds do, if that is
        faster.

        A search times a kernel alone with cold caches, and not its effect on the caches of the next
        kernel. whole: the times with all found kernels.
        """
        faster = [
            one
            for one in self._without_each(best, found, say)
            if one[1].best_us < GAIN * whole.best_us
        ]
        tried = [(frozenset[str](), whole), *faster]
        better = frozenset[str]().union(*(names for names, _ in faster))
        if len(better) > 1:
            texts = {n: text for n, text in found.items() if n not in better}
            (mixed,) = self._whole([(best, texts)], say, AFTER, each=False)
            tried += [(better, mixed)] if mixed is not None else []
        slower, times = min(tried, key=lambda each: each[1].best_us)
        return Chosen(best, times, slower)

    def _without_each(
        self, one: Way, found: Mapping[str, KernelTexts], say: Say
    ) -> list[tuple[frozenset[str], WholeTimes]]:
        """The times of a way with all but one of the found kernels, for each of them; only those
        that run."""
        mine = self._other(one, found)[:MOST_TRIED]
        if not mine:
            return []
        rest = [{n: text for n, text in found.items() if n != left} for left in mine]
        times = self._whole([(one, texts) for texts in rest], say, AFTER, each=False)
        return [(frozenset({n}), t) for n, t in zip(mine, times, strict=True) if t is not None]


def begin(served: Served) -> None:
    """Starts the process that times calls, if they are measured here, because that takes
    seconds."""
    if _measures(served):
        prestart(served)


def _measures(served: Served) -> bool:
    """Whether times are measured here."""
    return served.backend.available(served.machine)["time_kind"] == MEASURED


def networks_of(call: Network, before: Network | None = None) -> Networks:
    """The single way of a network that is already partitioned."""
    return lambda kernels, choices: (call, before)
