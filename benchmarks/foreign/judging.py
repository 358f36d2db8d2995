"""Judges a solution: secret draws, several shapes, float64, and a time if a device is free."""

from __future__ import annotations

import hashlib
import hmac
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median
from typing import Any

import torch
from torch.utils._pytree import tree_unflatten

from backends.gpu.device.nodes import device_turns, first_seen, nodes
from backends.gpu.device.nvml import utilization
from benchmarks.foreign.counted import PerCall
from benchmarks.foreign.draws import DRAWS, changed
from benchmarks.foreign.process import Refused, SolutionProcess
from benchmarks.foreign.shapes import Shaped, drawn_shapes
from benchmarks.foreign.stopwatch import UNCHANGED, EventClock, Inputs, Plan
from benchmarks.foreign.sums import Sums
from benchmarks.foreign.truth import Truth, called, require_certain, still
from benchmarks.foreign.whole import UNSTEADY, Counted, Counting, require_same
from frontends.kernelbench.problem import Problem, ProblemRun
from ir.errors import KernelError
from search.evaluator.sandbox import Limits

DRAWN_ELEMENTS = 1 << 22  # Each draw is made with at most this many elements of all inputs.
# Memory of its process before it loads a solution, and of its files, in bytes.
OWN_MEMORY = 2 << 30
CALLS = 50  # Timed calls.
WARM_UP = 5
# For testing whether the device is idle. The driver's figure covers at most one second.
LOOKS, LOOK_SECONDS = 5, 0.6
OTHERS = "something else runs on the device"
SLACK, SLACK_US = 0.25, 250.0  # What the host may add to a call, as a share and in microseconds.
COMPARED = 2  # Sets of inputs whose last timed results are compared element by element.
MOST_SETS, SETS_BYTES = 26, 2 << 30  # Limit of inputs that cannot be scaled.
# Limit of the distance between sums over results, in norms of the summands: a multiple of the usual
# error.
APART, LEAST_APART, MOST_APART = 30.0, 1e-5, 0.1
AS_GIVEN = "as given"
# For shorter calls, a clock over few calls would not reveal a lie, so many calls are counted.
LEAST_US = SLACK_US / SLACK
MEASURED, AT_MOST = "measured", "at most"
NOT_COUNTED = "and many of them cannot be counted: no floats are there to be drawn afresh for each, or results are no numbers"
NO_KERNEL = "no own kernel: PyTorch's operators do all of the work"
_MOVES = frozenset(
    """
    aten.empty aten.empty_like aten.empty_strided aten.new_empty aten.view aten._unsafe_view aten.reshape
    aten.expand aten.permute aten.transpose aten.t aten.detach aten.alias aten.as_strided aten.slice
    aten.select aten.unsqueeze aten.squeeze aten.clone aten.copy_ aten._to_copy aten.lift_fresh
    """.split()
)


@dataclass(frozen=True, slots=True)
class Options:
    """How a solution is judged."""

    secret: str = ""  # Determines inputs and shapes. Empty: a new one.
    seconds: float = 60.0  # Limit of each answer.
    memory: int = 8 << 30  # Bytes.
    own: bool = False  # Whether it has to launch its own kernel.
    listed: bool = False  # Whether only the listed shape counts.
    place: str = "cpu"


@dataclass(slots=True)
class Report:
    """The result of judging. `accepted` is true if there is no `reason`."""

    kind: str = ""  # Kind of the refusal, as a word.
    reason: str = ""
    secret: str = ""
    device: str = "cpu"
    correct_by: str = "device"
    shapes: list[str] = field(default_factory=list)  # Shapes at which it was compared.
    calls: list[dict[str, Any]] = field(default_factory=list)  # Each correct call.
    skipped: list[str] = field(default_factory=list)  # Draws for which the problem is not defined.
    weights: str = ""
    own_kernels: list[str] = field(default_factory=list)  # Reported by its process.
    torch_operators: list[str] = field(default_factory=list)  # Reported by its process.
    time_kind: str = "no time"
    time: dict[str, Any] = field(default_factory=dict)
    no_time: str = ""  # Why there is no time.
    sandbox: Mapping[str, str] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        return not self.reason

    def table(self) -> dict[str, Any]:
        """Returns the report as plain values."""
        return {"accepted": self.accepted, **asdict(self)}


def judged_solution(problem: Problem, source: str, options: Options) -> Report:
    """Judges the text of a solution. Raises KernelError if the problem cannot be used."""
    report = Report(secret=options.secret or secrets.token_hex(16), device=options.place)
    _Judge(problem, source, options, report).run()
    return report


@dataclass(slots=True)
class _Judge:
    problem: Problem
    source: str
    options: Options
    report: Report
    process: SolutionProcess | None = None

    def run(self) -> None:
        self._require_device()
        with self._turn():
            made = self._made(Shaped("listed", self.problem, True))
            require_certain(made.model, made.inputs, self.problem.path)
        shapes = []
        if not self.options.listed:
            shapes = drawn_shapes(self.problem, self._seed("shapes"))
        self.process = SolutionProcess(self._limits(), self.options.place, self.options.seconds)
        try:
            self.process.start()
            self.report.sandbox = dict(self.process.sandbox)
            self.process.load(self.source)
            self._listed(made)
            for shaped in shapes:
                self._at(shaped)
            self._draws(shapes[0] if shapes else Shaped("listed", self.problem, True))
            self._own()
            self._time(made)
        except Refused as refused:
            self.report.kind, self.report.reason = refused.kind, refused.reason
        finally:
            self.process.end()

    def _listed(self, made: ProblemRun) -> None:
        """Makes two calls on the same inputs, one on others."""
        self._make(made, Shaped("listed", self.problem, True))
        with self._turn():
            first = Truth.of(made.model, self._inputs(self.problem, "first"))
            other = Truth.of(made.model, self._inputs(self.problem, "other"))
        if first.powerless:
            raise KernelError(
                "the reference's own error against float64 is a tenth of its results or more: nothing "
                "can be compared with it",
                where=self.problem.path,
            )
        known = still(first.plain[0], other.plain[0])
        if all(known) and not all(still(first.inputs, other.inputs)):
            raise KernelError(
                "the reference gives the same whatever the inputs are: a solution that computes "
                "nothing would be right",
                where=self.problem.path,
                hint="a problem whose results its inputs determine",
            )
        got = self._compared(first, "listed", listed=True)
        self._compared(first, "listed")
        moved = self._compared(other, "listed", errors=False)
        unmoved = still(got, moved)
        if any(a and not b for a, b in zip(unmoved, known, strict=True)):
            raise Refused("still", "listed: the result does not change when the inputs do")
        self._note(other, "listed", other.errors(moved, "listed"))
        self.report.shapes.append("listed")

    def _at(self, shaped: Shaped) -> None:
        made = self._made(shaped)
        self._make(made, shaped)
        with self._turn():
            truth = Truth.of(made.model, self._inputs(shaped.problem, shaped.name))
        self._compared(truth, f"at {shaped.name}")
        self.report.shapes.append(shaped.name)

    def _draws(self, shaped: Shaped) -> None:
        """Compares on inputs other than the problem's own, at the smallest shape."""
        made = self._made(shaped)
        self._make(made, shaped)
        inputs = self._inputs(shaped.problem, "draws")
        few = sum(v.numel() for v in inputs if isinstance(v, torch.Tensor)) <= DRAWN_ELEMENTS
        for draw in DRAWS if few else ("large", "tiny", "zero_rows"):
            given = changed(inputs, draw)
            if given is None:
                continue
            try:
                with self._turn():
                    truth = Truth.of(made.model, given, draw)
            except Exception as error:  # Foreign code, on inputs that it was not written for.
                self.report.skipped.append(f"{draw}: the reference raises {type(error).__name__}")
                continue
            if not truth.defined:
                self.report.skipped.append(
                    f"{draw}: most of the reference's results are no numbers"
                )
                continue
            if truth.powerless:
                self.report.skipped.append(
                    f"{draw}: the reference's own error is as large as its result"
                )
                continue
            self._compared(truth, "listed" if shaped.listed else f"at {shaped.name}")

    def _compared(self, truth: Truth, where: str, listed: bool = False, errors: bool = True) -> Any:
        """Returns the results of one call, if they are correct. errors: whether they are
        compared."""
        assert self.process is not None, "it was started"
        with self._turn():
            got, left, said = self.process.call(truth.inputs, truth.bytes, listed)
        self.report.own_kernels = sorted({str(k)[:80] for k in said.get("own", [])})[:40]
        if listed:
            ran = {str(k)[:80] for k in said.get("operators", [])} - _MOVES
            self.report.torch_operators = sorted(ran)[:80]
        truth.require_inputs_kept(left, where)
        if errors:
            self._note(truth, where, truth.errors(got, where))
        return got

    def _note(self, truth: Truth, where: str, errors: Any) -> None:
        self.report.calls.append(
            {
                "at": where,
                "draw": truth.draw or AS_GIVEN,
                "rel_err": errors.rel_err,
                "reference_rel_err": errors.reference_rel_err,
            }
        )

    def _own(self) -> None:
        if any(k.startswith("triton") for k in self.report.own_kernels) and not self._on_device:
            self.report.correct_by = "interpreter"
        if self.options.own and not self.report.own_kernels:
            raise Refused("no own kernel", NO_KERNEL)

    def _time(self, made: ProblemRun) -> None:
        """Times a call with the device's events, which the judge's own clock must confirm.

        A short call only gets an upper bound by that clock.
        """
        clock = EventClock.of(torch.device(self.options.place))
        if clock is None:
            self.report.no_time = "there is no GPU: a time by the clock of a busy machine is none"
            return
        assert self.process is not None, "it was started"
        self._make(made, Shaped("listed", self.problem, True))
        with self._turn():
            truths = [Truth.of(made.model, self._timed_inputs(n)) for n in range(COMPARED)]
        sets: list[Sequence[Any]] = [t.inputs for t in truths]
        # For example only integers: then no two calls have the same set.
        if not Inputs(sets[0]).vary:
            sets += [self._timed_inputs(n) for n in range(COMPARED, _sets_within(truths[0].bytes))]
        warm, plan = self._plans(len(sets))
        weights = self._seed("weights of sums")
        result = tree_unflatten(truths[0].plain[0], truths[0].structure)
        counting = Counting(made.model, sets, result, self._seed("counted calls"), self._share())
        counts, possible = None, counting.possible
        self.process.hold(sets)
        with device_turns().alone():
            if at_work():
                self.report.no_time = OTHERS
                return
            idle_us = clock.idle(sets, truths[0].plain[0])
            self.process.times(warm, weights)
            timed = _clocked(partial(self.process.times, plan, weights))
            events, told = timed.value
            us, wall_us = median(events), 1e6 * timed.seconds / len(plan) - idle_us
            if us < LEAST_US and possible:
                counts = counting.asked(self.process, _clocked)
            disturbed = at_work()
        results = self.process.results(len(sets), len(sets) * truths[0].bytes)
        for truth, got in zip(truths, results, strict=False):
            truth.errors(got, "in a timed call")
        with self._turn():
            self._require_sums(made, sets, plan, weights, told)
            if counts and all(a.finite for a in counts[1]):
                counting.require_sums(counts[1])
        require_clocks_agree(us, wall_us)
        if disturbed:
            self.report.no_time = OTHERS
        elif us >= LEAST_US:
            self.report.time_kind = MEASURED
            self.report.time = {"us": us, "wall_us": wall_us, "runs": len(plan)}
        elif counts is None or not all(a.finite for a in counts[1]):
            self.report.no_time = f"its process tells {us:.1f} us a call, {NOT_COUNTED}"
        elif not self._unsteady("its", counts[0]):
            self._compare(counting, counts, clock, us)

    def _compare(
        self, counting: Counting, counts: Counted, clock: EventClock, events_us: float
    ) -> None:
        """Counts the reference's calls in the same way. The solution's process has ended by
        then."""
        assert self.process is not None, "it was started"
        self.process.end()
        with device_turns().alone():
            if at_work():
                self.report.no_time = OTHERS
                return
            found = counting.whole(counts, _clocked, clock.wait)
            if at_work():
                self.report.no_time = OTHERS
                return
        if self._unsteady("the reference's", found.reference) or self._unsteady(
            "empty", found.nothing
        ):
            return
        self.report.time_kind = AT_MOST
        self.report.time = {**found.table(), "events_us": events_us}

    def _unsteady(self, whose: str, per: PerCall) -> bool:
        """Whether too many requests differ too much. Notes it in the report."""
        if per.steady(UNSTEADY):
            return False
        took = f"{per.least_us:.1f} to {per.most_us:.1f} us a call, half of them over {per.us:.1f}"
        told = f"{whose} requests take from {took}"
        self.report.no_time = told
        return True

    def _timed_inputs(self, number: int) -> Sequence[Any]:
        return self._inputs(self.problem, f"timed {number}")

    def _require_sums(
        self,
        made: ProblemRun,
        sets: Sequence[Sequence[Any]],
        plan: Plan,
        weights: int,
        told: Sequence[Sequence[float]],
    ) -> None:
        """Refuses results of timed calls that do not belong to their inputs.

        Their sums then differ by more than the errors of the correct calls.
        """
        share = self._share()
        inputs, known = [Inputs(s) for s in sets], Sums(weights)
        for n, ((at, draw), said) in enumerate(zip(plan, told, strict=True)):
            right = called(made.model, inputs[at].filled(draw))
            require_same(f"in a timed call, number {n}", said, right, known, draw, share)

    def _share(self) -> float:
        """Returns the limit of the difference of sums, relative to their norm. It follows from the
        errors of the correct calls."""
        usual = max(
            (
                max(c["rel_err"], c["reference_rel_err"])
                for c in self.report.calls
                if c["draw"] == AS_GIVEN
            ),
            default=0.0,
        )
        return min(MOST_APART, max(LEAST_APART, APART * usual))

    def _plans(self, sets: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Returns the warm-up calls and the timed calls. No two have the same inputs.

        The last one on each set that is compared uses the set's own inputs.
        """
        rng = random.Random(self._seed("plan"))
        drawn = [(n % sets, rng.randrange(1, 1 << 48)) for n in range(WARM_UP + CALLS)]
        last = [(n, UNCHANGED) for n in range(COMPARED)]
        return drawn[:WARM_UP], [*drawn[WARM_UP:], *last]

    def _turn(self) -> AbstractContextManager[None]:
        """Waits for permission to use the device. Processes that time something wait for its
        release."""
        return device_turns().together() if self._on_device else nullcontext()

    @property
    def _on_device(self) -> bool:
        return self.options.place != "cpu"

    def _require_device(self) -> None:
        if self._on_device and not torch.cuda.is_available():
            raise KernelError("torch sees no GPU", where="--device", allowed="cpu here")

    def _limits(self) -> Limits:
        if self._on_device:  # A GPU's driver reserves more addresses than there is memory.
            return Limits(cpu=None, memory=None, total=None, devices=tuple(nodes()))
        memory = self.options.memory
        return Limits(cpu=None, memory=memory, total=memory + OWN_MEMORY)

    def _made(self, shaped: Shaped) -> ProblemRun:
        return shaped.problem.made(self._seed("weights"), place=self.options.place)

    def _make(self, made: ProblemRun, shaped: Shaped) -> None:
        assert self.process is not None, "it was started"
        arguments = shaped.problem.arguments()
        state = made.model.state_dict()
        self.report.weights = self.process.make(arguments, state, self._seed("weights"))

    def _inputs(self, problem: Problem, name: str) -> Sequence[Any]:
        return problem.inputs(self._seed(f"inputs {name}"), self.options.place)

    def _seed(self, name: str) -> int:
        """Returns the seed for a name. The secret cannot be derived from it."""
        made = hmac.new(self.report.secret.encode(), name.encode(), hashlib.sha256).digest()
        return int.from_bytes(made[:6], "big")


@dataclass(frozen=True, slots=True)
class _Clocked:
    value: Any
    seconds: float


def _clocked(work: Callable[[], Any]) -> _Clocked:
    before = time.perf_counter()
    value = work()
    return _Clocked(value, time.perf_counter() - before)


def _sets_within(size: int) -> int:
    """Returns the number of sets of so many bytes each."""
    return max(COMPARED, min(MOST_SETS, SETS_BYTES // max(1, size)))


def require_clocks_agree(us: float, wall_us: float) -> None:
    """Refuses if the judge's clock shows more than the device's events and the host's overhead.

    For a call that takes no longer than that overhead, it shows nothing.
    """
    if not us > 0 or wall_us > (1 + SLACK) * us + SLACK_US:
        raise Refused(
            "clocks disagree",
            f"a call takes {wall_us:.0f} us by the judge's clock, {us:.0f} by the device's events as "
            "its process tells them",
        )


def at_work() -> bool:
    """Whether something runs on the device while this judge's processes wait.

    The driver reports the load of the last fraction of a second. False if it reports nothing.
    """
    for _ in range(LOOKS):
        time.sleep(LOOK_SECONDS)
        if not utilization(first_seen()):
            return False
    return True


def digests(problem: Problem, source: str) -> Iterator[tuple[str, str]]:
    """Yields the digests of the two texts."""
    for name, text in (("problem", problem.source), ("solution", source)):
        yield name, hashlib.sha256(text.encode()).hexdigest()
