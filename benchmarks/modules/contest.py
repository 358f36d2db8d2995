"""A contest: one module on a device, compiled, checked, profiled and timed against PyTorch.

`benchmarks.modules` starts this program. After each stage it writes what is known to a file, which
survives a failure of the process. Both sides are timed in two ways: directly, and as a CUDA graph
of that call. The faster one counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

import speciate
from benchmarks import device as machine_room
from benchmarks.baselines import COMPILE_MODES
from benchmarks.called import CALL, GRAPH, against, best, our_fields
from benchmarks.contest_process import hold, options_of
from benchmarks.device_lock import DeviceLock, compilers_take_turns, running_limit
from benchmarks.kernelbench.contest import COPIES
from benchmarks.kernelbench.venue import Venue, venue
from benchmarks.modules.catalogue import ENTRIES
from benchmarks.modules.check import checked
from benchmarks.modules.entry import Arguments, MadeModule
from benchmarks.notes import MOST_WORDS, Notes
from benchmarks.race import stepped
from benchmarks.timing import RaceTimes, TimedCall, steadiest
from ir.digest import text_digest
from speciate import CompiledModule

EAGER, GRAPHED = "eager", "reduce_overhead"  # The second has its own CUDA graphs.
SETS = 3  # Sets of arguments that the calls alternate between.
SETS_BYTES = 2 << 30  # Limit of their total size.


class Contest:
    """One contest in progress. asked: the options of this program."""

    def __init__(self, asked: argparse.Namespace, notes: Notes, held_at: Venue, lock: DeviceLock):
        self.asked, self.notes, self.venue, self.lock = asked, notes, held_at, lock
        self.entry = ENTRIES[asked.module]
        self.modes = [m for m in asked.baselines.split(",") if m]

    def held(self) -> None:
        """Runs all stages. Results go into the notes."""
        made, arguments = self.loaded()
        with self.notes.stage("ours"):
            ours = speciate.compile(
                made.module, arguments, target=self.asked.target, records=self.asked.work / "none"
            )
            ours(*arguments)
            self.venue.settled()
        if not self.right(made, ours, arguments):
            return
        others = self.opponents(made, arguments)
        with self.notes.stage("time"):
            sets = self.sets(arguments)
            calls: dict[str, TimedCall] = {"": ours, **others}
            with self.lock.alone():
                machine_room.full_precision()
                times = {name: self.times(name, call, sets) for name, call in calls.items()}
        mine = times.pop("")
        self.notes.note(time_kind=self.venue.time_kind, **time_fields(mine, times))
        self.ended(mine[best(mine)])

    def searched(self) -> None:
        """Searches instead, and notes the result.

        Eager is timed again, to show what has changed since. Another process of the run may load
        its module meanwhile. It then waits until this one has ended.
        """
        made, arguments = self.loaded()
        base = self.asked.work / "search" / self.entry.name
        base.mkdir(parents=True, exist_ok=True)
        with ExitStack() as turn:
            with self.notes.stage("wait"):
                turn.enter_context(self.lock.held())
            self._searched_in(base, made, arguments)

    def _searched_in(self, base: Path, made: MadeModule, arguments: Arguments) -> None:
        with self.notes.stage("search"):
            ours = speciate.evolve(
                made.module,
                arguments,
                target=self.asked.target,
                seconds=self.asked.seconds_each,
                records=base / "records",
                store=str(base / "runs.db"),
                quiet=True,
            )
            self.notes.note(phases_s=dict(ours.phases))
        if not self.right(made, ours, arguments):
            return
        with self.notes.stage("time"), self.lock.alone():
            machine_room.full_precision()
            sets = self.sets(arguments)
            mine, eager = self.times("", ours, sets), self.times(EAGER, made.module, sets)
        self.notes.note(**our_fields(mine), eager_us=eager[best(eager)].us)
        self.ended(mine[best(mine)])

    def loaded(self) -> tuple[MadeModule, Arguments]:
        """Returns the module on the device, and arguments."""
        with self.notes.stage("load"):
            made = self.entry.made(self.asked.seed, self.venue.place, self.asked.tiny)
            arguments = made.arguments(self.asked.seed + 1)
            self.notes.note(
                seed=self.asked.seed,
                shapes=[list(t.shape) for t in arguments],
                parameters=sum(p.numel() for p in made.module.parameters()),
            )
        return made, arguments

    def ended(self, ours: RaceTimes) -> None:
        """Completes the row if the times have no fault."""
        if ours.fault:
            self.notes.note(reason=ours.fault)
            return
        self.notes.row.pop("stage")
        self.notes.note(correct=True)

    def right(self, made: MadeModule, ours: CompiledModule, arguments: Arguments) -> bool:
        """Whether our result is correct and computed by our own kernels alone. Fields of both go
        into the notes."""
        with self.notes.stage("check"), self.lock.held():
            machine_room.full_precision()
            seeds = range(self.asked.seed + 2, self.asked.seed + 2 + len(self.entry.scales))
            found = checked(made, ours, seeds, self.entry.scales, self.venue.settled)
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()  # Float64 used much memory, which other processes need.
        with self.notes.stage("profile"), self.lock.held():
            self.notes.note(**found, **self.kernels(ours, arguments))
        return "reason" not in self.notes.row

    def kernels(self, ours: CompiledModule, arguments: Arguments) -> dict[str, Any]:
        """Returns the launches on the device in one call. Copies are not kernels; they are
        counted."""
        network = ours.linked.network
        seen = self.venue.seen(ours, arguments)
        launched = [name for name in seen if not name.startswith(COPIES)]
        external = sorted(set(launched) - ours.linked.functions)
        made = {
            "kernels": len(network.kernels()),
            "steps": len(network.steps),
            "launched": len(launched) if seen else None,
            "copies": len(seen) - len(launched) if seen else None,
            "own_kernels_only": not external if seen else None,
            "foreign_kernels": external[:20],
            "left_to_torch": list(ours.left_to_torch),
            "source_digest": text_digest(ours.source),
        }
        if external:
            made["reason"] = f"other kernels ran: {external[:3]}"[:MOST_WORDS]
        return made

    def opponents(self, made: MadeModule, arguments: Arguments) -> dict[str, TimedCall]:
        """Returns eager, and each mode that compiles in time. The reasons of the others go into the
        notes."""
        calls: dict[str, TimedCall] = {EAGER: made.module}
        failures: dict[str, str] = {}
        with self.notes.stage("baselines"), compilers_take_turns(self.lock):
            for name in self.modes:
                began = time.perf_counter()
                try:
                    with running_limit(self.asked.compile_seconds):
                        calls[name] = self.compiled(made.module, name, arguments)
                except Exception as error:  # Compilers raise all kinds of errors.
                    failures[name] = f"{type(error).__name__}: {error}"[:MOST_WORDS]
                self.notes.note(**{f"{name}_s": round(time.perf_counter() - began, 1)})
        machine_room.full_precision()
        self.notes.note(failures=failures)
        return calls

    def compiled(self, module: torch.nn.Module, name: str, arguments: Arguments) -> TimedCall:
        options: Mapping[str, Any] = {"backend": "aot_eager"}
        if self.venue.time_kind == "measured":
            options = {"mode": COMPILE_MODES[name], "dynamic": False}
        call = torch.compile(module, **options)
        made = partial(stepped, call) if name == GRAPHED else call
        for _ in range(3):  # The first call compiles, the second warms up, the third captures.
            made(*arguments)
        self.venue.settled()
        return made

    def times(self, name: str, call: TimedCall, sets: Sequence[Arguments]) -> dict[str, RaceTimes]:
        """Returns the times by way of calling. A graph that cannot be captured is named in the
        notes."""
        found = {CALL: self.timed(call, sets)}
        if self.venue.time_kind == "measured" and name != GRAPHED:
            try:
                found[GRAPH] = self.timed(_graph(call, sets[0]), sets[:1])
            except Exception as error:  # A call may fail in any way during a capture.
                words = f"{type(error).__name__}: {error}"[:MOST_WORDS]
                self.notes.note(
                    uncaptured=self.notes.row.get("uncaptured", {}) | {name or "ours": words}
                )
                torch.cuda.synchronize()
        return found

    def timed(self, call: TimedCall, sets: Sequence[Arguments]) -> RaceTimes:
        """Times a call, and repeats while the times have a fault.

        A busy host causes a fault once, hidden work always.
        """
        return steadiest(lambda: self.venue.timed(call, sets))

    def sets(self, arguments: Arguments) -> list[Arguments]:
        """Returns several sets of arguments, as many as fit."""
        size = sum(t.nbytes for t in arguments)
        count = max(1, min(SETS, SETS_BYTES // max(size, 1)))
        return [arguments, *(tuple(t.clone() for t in arguments) for _ in range(1, count))]


def _graph(call: TimedCall, arguments: Arguments) -> TimedCall:
    """Captures a call as a CUDA graph on these arguments."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            call(*arguments)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call(*arguments)

    def replayed(*_: Any) -> Any:
        graph.replay()
        return kept

    return replayed


def time_fields(
    mine: Mapping[str, RaceTimes], others: Mapping[str, Mapping[str, RaceTimes]]
) -> dict[str, Any]:
    """Returns the fields of a row with times. Each side has the faster of a call and its graph."""
    fields = our_fields(mine)
    return {
        **fields,
        "baseline_times": {
            name: {how: asdict(t) for how, t in times.items()} for name, times in others.items()
        },
        **against(fields["us"], {name: times[best(times)].us for name, times in others.items()}),
    }


def alive() -> float:
    """Returns the age of this process in seconds, including its imports."""
    began = Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(began) / os.sysconf("SC_CLK_TCK")


def held(asked: argparse.Namespace, notes: Notes, lock: DeviceLock) -> None:
    """Runs a contest, or a search instead."""
    notes.note(start_s=round(alive(), 1))
    machine_room.full_precision()
    contest = Contest(asked, notes, venue(asked.rehearse), lock)
    contest.searched() if asked.seconds_each else contest.held()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program. Every failure of the module becomes the reason of its row."""
    return hold(_parser().parse_args(arguments), held)


def _parser() -> argparse.ArgumentParser:
    made = options_of("benchmarks.modules.contest")
    made.add_argument("--module", required=True)
    made.add_argument("--target", required=True)
    made.add_argument("--seed", required=True, type=int)
    made.add_argument(
        "--seconds-each", default=0.0, type=float, help="seconds of search; nothing else is done"
    )
    made.add_argument("--tiny", action="store_true")
    return made


if __name__ == "__main__":
    sys.exit(main())
