"""The plan of a search for a call: its ways, their kernels before the search, and what each may save.

What is measured as a whole comes first where a device is: a call of each way with its seed
schedules, and each kernel in it. Elsewhere times are estimates.
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
from search.whole.timed import KernelTexts, TimedNetwork, prestart, times_of
from search.whole.times import MEASURED, WholeTimes
from search.whole.ways import NEAR, Networks, Way, other_ways, way

LEAST_WEIGHT, MOST_WEIGHT = 0.05, 0.5  # of kernels that only other ways have
GAIN = 0.99  # of the time of a call, that another way takes at most to be better

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class KernelSeed:
    """A kernel before a search."""

    spec: Spec
    calls: int  # steps of a call that run it
    weight: (
        float  # what a gain of it counts; less than 1 where the way that is best so far lacks it
    )
    us: float  # of its seed schedule
    timed: bool  # that was measured in a call, and is no estimate
    texts: KernelTexts
    served: tuple[Served, ...]  # the backends that race for it, that of its seed schedule first
    rounded: tuple[str, ...]  # its sums whose operands may be rounded


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a call is fastest after a search."""

    way: Way
    times: WholeTimes | None  # measured; None where nothing is
    passed_over: frozenset[
        str
    ]  # kernels that were found, and are slower in the call than their seeds


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call on a target."""

    served: tuple[
        Served, ...
    ]  # the backends that race; the kernels before a search are the first's
    kernels: Kernels
    ways: tuple[Way, ...]  # the best so far first
    times: Mapping[str, float]  # of kernels with seed schedules, by name
    # Measured calls with seed schedules, of ways by their number; none where nothing is measured
    measured: Mapping[int, WholeTimes]

    @staticmethod
    def of(
        networks: Networks,
        served: Sequence[Served],
        rounded: Collection[str] = (),
        others: Sequence[Served] = (),
        least: int = 0,
    ) -> CallPlan:
        """The ways of a call. rounded, others, least: see `Kernels`; a kernel that another backend makes is
        searched for in its language. KernelError where its kernels cannot be lowered."""
        first = served[0]
        if _measures(first):
            prestart()
        kernels = Kernels(
            first.machine, first.backend, rounded, guessed=True, others=others, least=least
        )
        usual = way(networks, kernels)
        ways = (usual, *other_ways(usual, networks, kernels))
        times = {s.name: kernels.expected_us(s) for w in ways for s in w.call.kernels()}
        return CallPlan(tuple(served), kernels, ways, times, {})

    def timed(self, networks: Networks, say: Say = lambda text: None) -> CallPlan:
        """The same with measured times, the fastest way first; itself where nothing is measured here. What
        cannot be timed is said, and left out: estimates decide, where that is the usual way."""
        whole = self._whole([(w, {}) for w in self.ways], say)
        if (first := whole[0]) is None:
            return self
        found = [(w, t) for w, t in zip(self.ways, whole, strict=True) if t is not None]
        faster = [w for w, t in found if t.best_us < GAIN * first.best_us]
        if len(faster) > 1:
            usual = self.ways[0].choices
            both = {n: v for w in faster for n, v in w.choices.items() if usual.get(n) != v}
            joint = way(networks, self.kernels, Choices({**usual, **both}))
            (joined,) = self._whole([(joint, {})], say)
            found += [(joint, joined)] if joined is not None else []
        times = dict(self.times)
        for _, each in reversed(found):  # the usual way's last, which most ways share
            times |= each.kernels
        found.sort(key=lambda each: each[1].best_us)
        best = found[0][0]
        near = [(w, t) for w, t in found if w is best or w.closeness(best, times) <= NEAR]
        ways, measured = tuple(w for w, _ in near), {n: t for n, (_, t) in enumerate(near)}
        prestart()  # for what a search finds
        return replace(self, ways=ways, times=times, measured=measured)

    def _whole(
        self, calls: Sequence[tuple[Way, Mapping[str, KernelTexts]]], say: Say
    ) -> list[WholeTimes | None]:
        """The measured times of ways, each with kernels in place of those with seed schedules; None where
        nothing is measured here, or it cannot be, which is said."""
        if not self.measures:
            return [None] * len(calls)
        times = times_of([self.network(one, found) for one, found in calls])
        for why in dict.fromkeys(each for each in times if isinstance(each, str)):
            say(f"a call cannot be timed: {why}")
        return [None if isinstance(each, str) else each for each in times]

    @property
    def measures(self) -> bool:
        """Whether calls are measured here as a whole."""
        return _measures(self.served[0]) and not self.ways[0].call.pauses

    def network(
        self, one: Way, found: Mapping[str, KernelTexts], each: bool = True
    ) -> TimedNetwork:
        """A way of given kernels. found: kernels in place of those with seed schedules.  each: whether
        each is timed."""
        before = one.before.kernels() if one.before else ()
        specs = dict.fromkeys((*one.call.kernels(), *before))
        texts = {s.name: found.get(s.name) or self.texts(s) for s in specs}
        machines = {s.name: s.machine for s in (*self.served, *self.kernels.others)}
        return TimedNetwork(one.call, one.before, machines, texts, each)

    def texts(self, spec: Spec) -> KernelTexts:
        """A kernel with its seed schedule."""
        nest, source = self.kernels.emit(spec)
        by = self.kernels.served[spec].name
        return KernelTexts(by, variant_text(nest.spec), schedule_text(nest.schedule), source)

    def _racing(self, spec: Spec) -> tuple[Served, ...]:
        """The backends that race for a kernel, that of its seed schedule first."""
        by = self.kernels.served[spec]
        return self.served if by.name == self.served[0].name else (by,)

    def seeds(self) -> list[KernelSeed]:
        """All kernels that a search is for, those of the best way first."""
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

    def chosen(
        self,
        found: Mapping[str, KernelTexts],
        us: Mapping[str, float],
        say: Say = lambda text: None,
    ) -> Chosen:
        """The way that a call is fastest with the kernels that were found.

        us: of these kernels, by name; of one that is not among them, the time of its seed schedule.
        """
        times = {**self.times, **us}
        usual, *more = self.ways
        able = [usual, *(w for w in more if w.us(times) < GAIN * usual.us(times))]
        *measured, seeds = self._whole([*((w, found) for w in able), (usual, {})], say)
        if not any(measured):
            return Chosen(min(able, key=lambda w: w.us(times)), None, frozenset())
        known = [(w, t) for w, t in zip(able, measured, strict=True) if t is not None]
        best, whole = min(known, key=lambda each: each[1].best_us)
        if best is not usual:
            (seeds,) = self._whole([(best, {})], say)
        if seeds is None:
            return Chosen(best, whole, frozenset())
        return self._without_slower(best, whole, seeds, found, say)

    def _without_slower(
        self,
        best: Way,
        whole: WholeTimes,
        seeds: WholeTimes,
        found: Mapping[str, KernelTexts],
        say: Say,
    ) -> Chosen:
        """A way without the kernels that are slower in a call than their seeds, if that is faster. A search times a
        kernel alone, with nothing of its data in the caches. whole, seeds: with what was found, and without."""
        seeded = {spec.name: self.texts(spec).source for spec in best.call.kernels()}
        mine = [n for n, text in found.items() if n in seeded and text.source != seeded[n]]
        slower = frozenset(n for n in mine if seeds.kernels[n] < GAIN * whole.kernels[n])
        if not slower:
            return Chosen(best, whole, slower)
        mixed: WholeTimes | None = seeds
        if len(slower) < len(mine):
            rest = {n: text for n, text in found.items() if n not in slower}
            (mixed,) = self._whole([(best, rest)], say)
        if mixed is None or mixed.best_us > GAIN * whole.best_us:
            return Chosen(best, whole, frozenset())
        return Chosen(best, mixed, slower)


def _measures(served: Served) -> bool:
    """Whether times are measured here."""
    return served.backend.available(served.machine)["time_kind"] == MEASURED


def networks_of(call: Network, before: Network | None = None) -> Networks:
    """The only way of a network that is partitioned already."""
    return lambda kernels, choices: (call, before)
