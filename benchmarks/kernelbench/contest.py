"""A contest: one prepared problem on a device, checked, profiled and timed against PyTorch.

For a process of its own. What is known after each stage stands in a file, so that it is there when
the process is not. Work that is not timed shares the device with other contests (`Turns`).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from backends.backend import BackendError
from backends.program.launcher import Launcher
from backends.program.saved import saved_network
from backends.program.sealed import unseal
from benchmarks.called import CALL, GRAPH, best
from benchmarks.kernelbench.attempt import MOST_WORDS, Notes
from benchmarks.kernelbench.check import ProblemCheck
from benchmarks.kernelbench.kernels import BuiltKernels
from benchmarks.kernelbench.opponents import opponents, time_fields
from benchmarks.kernelbench.prepared import PROBLEM, RECORD
from benchmarks.kernelbench.suite import SEED, fault
from benchmarks.kernelbench.turns import DeviceTurns
from benchmarks.kernelbench.venue import Venue, facts, venue
from benchmarks.timing import RaceTimes, TimedCall, steadiest
from frontends.compiled.module import CompiledModule
from frontends.compiled.saved import call_of
from frontends.kernelbench.problem import Problem
from frontends.pytorch.call import state_of
from ir.errors import KernelError

SETS = 3  # of inputs that calls go around
SETS_BYTES = 4 << 30  # that they may take together
GRAPH_BYTES = 1 << 30  # of inputs and workspace, up to which a call is captured as a graph too
COPIES = ("Memcpy", "Memset")  # what a device's copy engine does, and no kernel
LONGEST = 8  # kernels whose times a row tells
NAME = 60  # characters of a kernel's name in a row


@dataclass(frozen=True, slots=True)
class ContestJob:
    """What a process is asked for."""

    folder: Path  # the prepared problem's
    kernels: Path  # of all built ones
    work: Path  # where processes take turns
    notes: Path  # the file for the row
    rehearsed: bool
    modes: tuple[str, ...]  # baselines beside eager
    compile_seconds: float  # that one of them may take to compile
    strict: bool = False  # a wrong result is not timed
    patience: float = 0.0  # seconds, see `DeviceTurns`


def machine_facts(rehearsed: bool) -> dict[str, Any]:
    """What a result file says of the machine. The first process apart imports what all need."""
    return facts(rehearsed)


def contest(task: ContestJob) -> dict[str, Any]:
    """The row of a problem; whatever goes wrong with it is its reason."""
    notes = Notes(task.notes, time.perf_counter)
    try:
        with torch.no_grad():
            _Contest(task, notes, venue(task.rehearsed)).held()
    except BackendError as error:
        notes.note(correct=False, reason=f"{error.stage}: {error.reason}"[:MOST_WORDS])
    except KernelError as error:
        notes.note(correct=False, reason=str(error)[:MOST_WORDS])
    except Exception as error:  # the problem is code of others, and so is a kernel
        words = f"{type(error).__name__}: {error}"
        notes.note(correct=False, reason=words[:MOST_WORDS])
    return notes.row


class _Contest:
    """One contest in progress."""

    def __init__(self, task: ContestJob, notes: Notes, held_at: Venue):
        self.task, self.notes, self.venue = task, notes, held_at
        self.turns = DeviceTurns(task.work, task.patience)
        self.functions: frozenset[str] = frozenset()  # that our sources define
        self.give_way: Callable[[], None] = lambda: None  # to who waits to be alone
        path = str(task.folder / PROBLEM)
        self.problem = Problem(task.folder.name, (task.folder / PROBLEM).read_text("utf-8"), path)

    def held(self) -> None:
        """All of it: what is known goes into the notes."""
        with self.notes.stage("load"), self._sharing():
            ours, theirs, inputs = self._loaded()
        with self.notes.stage("check"), self._sharing():
            check = ProblemCheck(self.problem, self.venue, ours, theirs, inputs, self.give_way)
            self.notes.note(**check.made())
        if self.task.strict and self.notes.row.get("reason"):
            self.notes.note(correct=False)
            return
        with self.notes.stage("profile"), self.turns.shared():
            self._profiled(ours, inputs)
        with self.notes.stage("compile"):
            others, failures = opponents(
                theirs,
                inputs,
                self.venue,
                self.task.modes,
                self.task.compile_seconds,
                self._sharing,
            )
        self.notes.note(failures=failures)
        with self.notes.stage("capture"), self._sharing():
            sets = self._sets(inputs)
            calls: dict[str, TimedCall] = {CALL: ours, **self._captured(ours, sets)}
        with self.notes.stage("time"):
            with self.turns.alone():
                mine = {how: self._timed(call, sets) for how, call in calls.items()}
                times = {name: self._timed(call, sets) for name, call in others.items()}
                fields = time_fields(mine, times)
                fastest = self._longest(others[fields["fastest"]], inputs)
                fields |= {"kernel_us": self._longest(ours, inputs), "fastest_kernel_us": fastest}
        self.notes.note(time_kind=self.venue.time_kind, **fields)
        if spread := mine[best(mine)].fault:
            self.notes.note(correct=False, reason=self.notes.row.get("reason") or spread)
            return
        self.notes.row.pop("stage")
        self.notes.note(correct=not self.notes.row.get("reason"))

    def _captured(
        self, ours: CompiledModule, sets: Sequence[tuple[Any, ...]]
    ) -> dict[str, TimedCall]:
        """Our call as a CUDA graph, which copies its inputs at each call. None where that cannot gain
        anything, as launches take no time beside kernels of large tensors; and where its results are
        not those of the call. Both draw the same numbers, at each call the next ones. Where numbers are
        drawn, results must be equal in all bits: a tolerance may hide that a graph draws the same ones
        again."""
        size = _bytes(sets[0]) + ours.program.plan.bytes
        if self.venue.time_kind != "measured" or size > GRAPH_BYTES:
            return {}
        graph = CompiledModule(ours.made, ours.linked, ours.state, seed=ours.seed, graph=True)
        try:
            differ = fault if ours.made.seed is None else _unequal
            wrong = [words for s in sets[::-1] if (words := differ(graph(*s), ours(*s)))]
            self.venue.settled()
        except Exception as error:  # what a call does in a capture is its own affair
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong:
            self.notes.note(uncaptured=wrong[0][:MOST_WORDS])
        return {} if wrong else {GRAPH: graph}

    def _timed(self, call: TimedCall, sets: Sequence[Any]) -> RaceTimes:
        return steadiest(lambda: self.venue.timed(call, sets))

    def _loaded(self) -> tuple[CompiledModule, torch.nn.Module, tuple[Any, ...]]:
        place = self.venue.place
        given = self.problem.made(SEED, place=place)  # first, as it opens the device
        theirs = given.model.to(place)
        inputs = tree_map(lambda x: _at(x, place), given.inputs)
        sealed = unseal(self.task.folder / RECORD)
        kernels = BuiltKernels.of(sealed, self.task.kernels)
        made, _ = call_of(sealed)
        linked = saved_network(sealed, lambda spec: self._polite(kernels.launcher(spec)))
        state = {p: t.contiguous() for p, t in state_of(made, copy.deepcopy(theirs)).items()}
        ours = CompiledModule(made, linked, state)
        self.functions = kernels.functions
        self.notes.note(
            workspace_bytes=ours.program.plan.bytes,
            plain_kernels=kernels.plain,
            plain_because=kernels.faults,
            random=made.seed is not None,
            tf32={
                "convolutions": torch.backends.cudnn.allow_tf32,
                "products": torch.backends.cuda.matmul.allow_tf32,
            },
        )
        return ours, theirs, inputs

    @contextmanager
    def _sharing(self) -> Iterator[None]:
        """A turn that others share."""
        with self.turns.shared() as self.give_way:
            try:
                yield
            finally:
                self.give_way = lambda: None

    def _polite(self, launcher: Launcher) -> Launcher:
        """A launcher that gives way before its first launch, which takes long to load a kernel."""
        waited = False

        def launch(*tensors: torch.Tensor) -> None:
            nonlocal waited
            if not waited:
                waited = True
                self.venue.settled()
                self.give_way()
            launcher.launch(*tensors)

        return Launcher(launcher.tensors, launch)

    def _profiled(self, ours: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        """What ran on the device in one call, and whether it was ours alone. Copies are no kernels;
        they are counted."""
        seen = self.venue.seen(ours, inputs)
        launched = [name for name in seen if not name.startswith(COPIES)]
        external = sorted(set(launched) - self.functions)
        self.notes.note(
            own_kernels_only=None if not seen else not external,
            launched=len(launched),
            copies=len(seen) - len(launched),
            foreign_kernels=external[:20],
        )
        if external and not self.notes.row.get("reason"):
            self.notes.note(reason=f"other kernels ran: {external[:3]}"[:MOST_WORDS])

    def _longest(self, call: TimedCall, inputs: tuple[Any, ...]) -> dict[str, float]:
        """The microseconds of the kernels that take longest in one call, all launches of each together.
        They tell where the time of a row goes; the row's own time is measured without a profiler."""
        total: dict[str, float] = {}
        for name, us in self.venue.launches(call, inputs):
            total[name[:NAME]] = total.get(name[:NAME], 0.0) + us
        longest = nlargest(LONGEST, total, key=total.__getitem__)
        return {name: round(total[name], 1) for name in longest}

    def _sets(self, inputs: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Several sets of inputs, as many as there is room for; floats are shifted."""
        count = max(1, min(SETS, SETS_BYTES // max(_bytes(inputs), 1)))
        return [inputs, *(tree_map(lambda x, n=n: _shifted(x, n), inputs) for n in range(1, count))]


def _unequal(got: Any, expected: Any) -> str:
    """Why results are not the same bits as others; empty where they are."""
    pairs = list(zip(tree_leaves(got), tree_leaves(expected), strict=True))
    bits = ((a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8)) for a, b in pairs)
    return "" if all(torch.equal(a, b) for a, b in bits) else "it draws other numbers than the call"


def _bytes(inputs: tuple[Any, ...]) -> int:
    return sum(t.nbytes for t in inputs if isinstance(t, torch.Tensor))


def _at(item: Any, place: str) -> Any:
    return item.to(place).contiguous() if isinstance(item, torch.Tensor) else item


def _shifted(item: Any, turn: int) -> Any:
    if not isinstance(item, torch.Tensor):
        return item
    if not item.is_floating_point():
        return item.clone()
    return torch.roll(item.reshape(-1), 997 * turn).view(item.shape)
