"""A contest: one prepared problem on a device, checked, profiled and timed against PyTorch.

`benchmarks.kernelbench.race` starts several of these programs in parallel. After each stage a
program writes what is known to a file, which survives a failure of the process. While one takes a
time, all others are stopped.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from heapq import nlargest
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from backends.program.saved import saved_network
from backends.program.sealed import unseal
from benchmarks.called import CALL, GRAPH, best
from benchmarks.contest_process import hold, options_of, row_of
from benchmarks.device_lock import DeviceLock, compilers_take_turns
from benchmarks.kernelbench.check import ProblemCheck
from benchmarks.kernelbench.kernels import BuiltKernels
from benchmarks.kernelbench.opponents import opponents, time_fields
from benchmarks.kernelbench.prepared import PROBLEM, RECORD
from benchmarks.kernelbench.suite import SEED, fault
from benchmarks.kernelbench.venue import Venue, facts, venue
from benchmarks.notes import MOST_WORDS, Notes
from benchmarks.timing import RaceTimes, TimedCall, steadiest
from frontends.compiled.module import CompiledModule
from frontends.compiled.saved import call_of
from frontends.kernelbench.problem import Problem
from frontends.pytorch.call import state_of

SETS = 3  # Sets of inputs that the calls alternate between.
SETS_BYTES = 4 << 30  # Limit of their total size.
# Limit of inputs and workspace, up to which a call is also captured as a graph.
GRAPH_BYTES = 1 << 30
COPIES = ("Memcpy", "Memset")  # Work of a device's copy engine, which is not a kernel.
LONGEST = 8  # Kernels whose times a row has.
NAME = 60  # Characters of a kernel's name in a row.


def machine_facts(rehearsed: bool) -> dict[str, Any]:
    """Returns the facts about the machine for a result file. The first child process imports what
    all need."""
    return facts(rehearsed)


def contest(asked: argparse.Namespace) -> dict[str, Any]:
    """Returns the row of a problem. Every failure becomes its reason. asked: the options of this
    program."""
    return row_of(asked, _held)


def _held(asked: argparse.Namespace, notes: Notes, lock: DeviceLock) -> None:
    _Contest(asked, notes, venue(asked.rehearse), lock).held()


class _Contest:
    """One contest in progress."""

    def __init__(self, asked: argparse.Namespace, notes: Notes, held_at: Venue, lock: DeviceLock):
        self.asked, self.notes, self.venue, self.lock = asked, notes, held_at, lock
        self.functions: frozenset[str] = frozenset()  # Functions that our sources define.
        file = asked.folder / PROBLEM
        self.problem = Problem(asked.folder.name, file.read_text("utf-8"), str(file))

    def held(self) -> None:
        """Runs all stages. Results go into the notes."""
        with self.notes.stage("load"):
            ours, theirs, inputs = self._loaded()
        with self.notes.stage("check"):
            # Numbers are drawn on the CPU, for minutes if they are many. Other processes need not
            # wait for that.
            turn = self.lock.held if ours.made.seed is None else nullcontext
            check = ProblemCheck(self.problem, self.venue, ours, theirs, inputs, turn)
            self.notes.note(**check.made())
        if self.asked.strict and self.notes.row.get("reason"):
            self.notes.note(correct=False)
            return
        with self.notes.stage("profile"), self.lock.held():
            self._profiled(ours, inputs)
        with self.notes.stage("compile"), compilers_take_turns(self.lock):
            modes = [m for m in self.asked.baselines.split(",") if m]
            seconds = self.asked.compile_seconds
            others, failures = opponents(theirs, inputs, self.venue, modes, seconds)
        self.notes.note(failures=failures)
        with self.notes.stage("capture"), self.lock.held():
            sets = self._sets(inputs)
            calls: dict[str, TimedCall] = {CALL: ours, **self._captured(ours, sets)}
        with self.notes.stage("time"), self.lock.alone():
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
        """Returns our call as a CUDA graph, which copies its inputs at each call.

        It returns nothing if a graph cannot gain anything, because launches are hidden by kernels
        of large tensors, or if its results differ from those of the call. Both draw the same random
        numbers, at each call the next ones. With random numbers, results must be equal in all bits:
        a tolerance may hide that a graph draws the same ones again.
        """
        size = _bytes(sets[0]) + ours.program.plan.bytes
        if self.venue.time_kind != "measured" or size > GRAPH_BYTES:
            return {}
        graph = CompiledModule(ours.made, ours.linked, ours.state, seed=ours.seed, graph=True)
        try:
            differ = fault if ours.made.seed is None else _unequal
            wrong = [words for s in sets[::-1] if (words := differ(graph(*s), ours(*s)))]
            self.venue.settled()
        except Exception as error:  # A call may fail in any way during a capture.
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong:
            self.notes.note(uncaptured=wrong[0][:MOST_WORDS])
        return {} if wrong else {GRAPH: graph}

    def _timed(self, call: TimedCall, sets: Sequence[Any]) -> RaceTimes:
        return steadiest(lambda: self.venue.timed(call, sets))

    def _loaded(self) -> tuple[CompiledModule, torch.nn.Module, tuple[Any, ...]]:
        place = self.venue.place
        given = self.problem.made(SEED, place=place)  # First, because it opens the device.
        theirs = given.model.to(place)
        inputs = tree_map(lambda x: _at(x, place), given.inputs)
        sealed = unseal(self.asked.folder / RECORD)
        kernels = BuiltKernels.of(sealed, self.asked.kernels)
        made, _ = call_of(sealed)
        linked = saved_network(sealed, kernels.launcher)
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

    def _profiled(self, ours: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        """Records the launches on the device in one call, and whether they are only ours. Copies
        are not kernels; they are counted."""
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
        """Returns the microseconds of the slowest kernels in one call, with all launches of each
        together.

        They show how the time of a row is spent. The row's own time is measured without a profiler.
        """
        total: dict[str, float] = {}
        for name, us in self.venue.launches(call, inputs):
            total[name[:NAME]] = total.get(name[:NAME], 0.0) + us
        longest = nlargest(LONGEST, total, key=total.__getitem__)
        return {name: round(total[name], 1) for name in longest}

    def _sets(self, inputs: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Returns several sets of inputs, as many as fit. Floats are shifted."""
        count = max(1, min(SETS, SETS_BYTES // max(_bytes(inputs), 1)))
        return [inputs, *(tree_map(lambda x, n=n: _shifted(x, n), inputs) for n in range(1, count))]


def _unequal(got: Any, expected: Any) -> str:
    """Returns why results differ in any bit. Empty if they are equal."""
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program: writes the row of a problem."""
    return hold(_parser().parse_args(arguments), _held)


def _parser() -> argparse.ArgumentParser:
    made = options_of("benchmarks.kernelbench.contest")
    made.add_argument(
        "--folder", required=True, type=Path, help="the folder of the prepared problem"
    )
    made.add_argument("--kernels", required=True, type=Path, help="the folder of all built kernels")
    made.add_argument("--strict", action="store_true", help="do not time wrong results")
    return made


if __name__ == "__main__":
    sys.exit(main())
