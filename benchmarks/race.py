"""A race: one row's kernel and its baselines on the same inputs, judged and timed in the same
way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from backends.gpu.device.nodes import DEVICE, device_turns
from backends.gpu.device.timing import Device
from benchmarks import device as machine_room
from benchmarks.against_float64 import exact, judge, same_bits
from benchmarks.baselines import BASELINES, COMPILE_MODES
from benchmarks.entrant import Entrant
from benchmarks.inputs import draw, input_bytes
from benchmarks.race_job import RaceJob
from benchmarks.results import Table, settle
from benchmarks.shapes import Row
from benchmarks.timing import (
    LEAST_RUNS,
    MOST_RUNS,
    STEADY_SPINS,
    RaceTimes,
    TimedCall,
    mean_of,
    measure,
    steadiest,
)
from ir.estimate.cost import roofline
from ir.machine import Machine
from ir.spec import Spec

SETS = 4  # Sets of inputs that the calls alternate between.
SETS_BYTES = 8 << 30  # Limit of their total size.
SEED = 20261121


class OutOfTime(Exception):
    """A baseline took longer than its limit."""


class Unsteady(Exception):
    """No repetition gave a valid time."""


@dataclass(frozen=True, slots=True)
class Track:
    """The settings that all rows share."""

    machine: Machine
    backend: str  # Name of the backend.
    device: Device
    place: str = DEVICE  # PyTorch's name of the device.
    seconds: float = 60.0  # Limit of a baseline.
    # Returns the names of what runs on the device during a call.
    seen: Callable[..., list[str]] = machine_room.kernels_seen
    # Other processes that time the same.
    witnesses: Callable[[RaceJob], list[RaceTimes]] | None = None
    # Smallest and largest number of runs of a call.
    runs: tuple[int, int] = (LEAST_RUNS, MOST_RUNS)
    spins: int = STEADY_SPINS  # Warm-up before a call is timed.


def race(
    row: Row,
    spec: Spec,
    entrant: Entrant | str,
    names: Sequence[str],
    track: Track,
    before: Table | None = None,
) -> Table:
    """Returns one row of a result file. Failures of either side are in the row, with their reasons.

    entrant: ours, or why there is none.
    names: the baselines to race.
    before: an earlier row, whose other baselines are kept.
    """
    made = _head(row, spec, track)
    if before:
        made["baselines_us"] = dict(before["baselines_us"])
        made["failures"] = dict(before["failures"])
        made["baseline_times"] = dict(before.get("baseline_times", {}))
    with torch.no_grad():
        sets = contender_sets(row, spec, track)
        _ours(made, row, spec, entrant, sets, track)
        for name in names:
            _theirs(made, row, spec, name, sets, track)
    settle(made)
    return made


def contender_sets(row: Row, spec: Spec, track: Track) -> list[list[Any]]:
    """Returns the sets of inputs that all contenders are timed on."""
    count = max(1, min(SETS, SETS_BYTES // max(input_bytes(spec, row.sizes), 1)))
    return [draw(spec, row.sizes, track.place, SEED + n) for n in range(count)]


def _head(row: Row, spec: Spec, track: Track) -> Table:
    bound = roofline(spec, track.machine, row.sizes)
    return {
        "kernel": row.kernel,
        "problem": None,
        "backend": track.backend,
        "dtype": row.dtype,
        "shape": dict(row.sizes),
        "us": None,
        "time_kind": "measured",
        "baselines_us": {},
        "failures": {},
        "baseline_times": {},
        "roofline_us": bound.us,
        "bound": bound.bound,
        "bytes": bound.bytes,
        "flops": bound.flops,
        "rel_err": None,
        "reference_rel_err": None,
        "correct": False,
        "correct_by": "device",
        "own_kernels_only": None,
        "degenerate": False,
        "evaluations": 0,
    }


def _ours(
    made: Table, row: Row, spec: Spec, entrant: Entrant | str, sets: Sequence[Any], track: Track
) -> None:
    """Judges and times our kernel. A failure becomes the row's reason."""
    if isinstance(entrant, str):
        made.update(correct=False, reason=entrant)
        return
    choice = entrant.choice
    made["schedule_from"], made["evaluations"] = choice.origin, choice.evaluations
    made["schedule"] = [str(d) for d in choice.schedule.decisions]
    made["source"] = entrant.digest
    made["figures"] = {k: v for k, v in entrant.figures.items() if "." not in k}
    try:
        _judged(made, row, spec, entrant, track)
        if made["correct"]:
            found = _agreed(
                timed_entrant(entrant, row, sets, track),
                RaceJob(row, spec, entrant=entrant),
                track,
                made,
            )
            _times(made, found)
            _plausible(made, track.machine)
            if made["correct"] and found.fault:
                made.update(correct=False, reason=found.fault)
    except Exception as error:  # A kernel is untrusted code.
        made.update(correct=False, reason=words_of(error))


def _judged(made: Table, row: Row, spec: Spec, entrant: Entrant, track: Track) -> None:
    """Checks correctness on held-out inputs, and what ran on the device."""
    baseline = BASELINES[row.kernel]
    inputs = draw(spec, row.sizes, track.place, SEED - 1)
    kept = [t.clone() for t in inputs]
    call, (got,) = entrant.bind(row.sizes, track.place)
    with entrant.as_built():
        call(*inputs)
        track.device.wait()
    again, (second,) = entrant.bind(row.sizes, track.place)
    again(*inputs)
    made["kernels_seen"] = track.seen(again, inputs)
    made["own_kernels_only"] = set(made["kernels_seen"]) <= entrant.names
    machine_room.full_precision()
    plain, truth = baseline.call(*kept), exact(baseline, spec, kept)
    found = judge(spec, got, plain, truth)
    reason = found.reason
    if not all(same_bits(a, b) for a, b in zip(inputs, kept, strict=True)):
        reason = "the kernel changed its inputs"
    made["second_run"] = "within tolerance" if entrant.choice.nest.unordered else "same bits"
    if entrant.choice.nest.unordered:
        other = judge(spec, second, plain, truth).reason
        reason = reason or other and f"a second run on the same inputs: {other}"
    elif not same_bits(got, second):
        reason = reason or "two runs on the same inputs differ"
    if not made["kernels_seen"]:
        made["own_kernels_only"] = None
    elif not made["own_kernels_only"]:
        reason = reason or f"other kernels ran: {made['kernels_seen']}"
    made.update(
        rel_err=found.rel_err, reference_rel_err=found.reference_rel_err, correct=not reason
    )
    if reason:
        made["reason"] = reason


def _times(made: Table, found: RaceTimes) -> None:
    made.update(
        us=found.us,
        p20_us=found.p20,
        p80_us=found.p80,
        runs=found.runs,
        host_us=found.host_us,
        wall_us=found.wall_us,
        clocks_agree=found.clocks_agree,
    )


def timed_entrant(entrant: Entrant, row: Row, sets: Sequence[Any], track: Track) -> RaceTimes:
    """Returns the times of our kernel."""
    call, _ = entrant.bind(row.sizes, track.place)
    with entrant.as_built():
        call(*sets[0])
        track.device.wait()
    return _alone(call, sets, track)


def timed_baseline(kernel: str, name: str, sets: Sequence[Any], track: Track) -> RaceTimes:
    """Returns the times of one baseline. It is compiled first if its mode says so."""
    form, mode = BASELINES[kernel].find(name)
    given = [form.prepare(*s) for s in sets] if form.prepare else sets
    with limit(track.seconds):
        call = form.call if mode == "eager" else compiled(form.call, mode)
        call(*given[0])
        track.device.wait()
    return _alone(call, given, track)


def _alone(call: TimedCall, sets: Sequence[Any], track: Track) -> RaceTimes:
    """Times a call while no other process uses the device. Repeats it if the times have a fault."""
    least, most = track.runs
    with device_turns().alone():
        return steadiest(
            lambda: measure(call, sets, track.device, least=least, most=most, spins=track.spins)
        )


def _agreed(found: RaceTimes, job: RaceJob, track: Track, told: Table) -> RaceTimes:
    """Returns the mean of our time and those of the witnesses. It has a fault if one of them has.

    told: receives the time of each process.
    """
    if track.witnesses is None or found.fault:
        return found
    every = [found, *track.witnesses(job)]
    told["us_of_processes"] = [round(one.us, 3) for one in every]
    return next((one for one in every if one.fault), mean_of(every))


def _plausible(made: Table, machine: Machine) -> None:
    """Rejects a time that is impossible, or that the host's clock contradicts.

    Outputs that are still in the cache when the kernel ends have not gone to memory yet.
    """
    cache = machine.spaces["cache"].bytes if "cache" in machine.spaces else 0
    moved = 1e6 * max(0, made["bytes"] - cache) / machine.bandwidth
    least = made["roofline_us"] if made["bound"] == "matrix" else moved
    if made["us"] < 0.9 * least:
        made.update(correct=False, reason=f"{made['us']:.1f} us is below the possible {least:.1f}")
    if not made["clocks_agree"]:
        made.update(
            correct=False,
            reason=f"the clocks disagree: {made['wall_us']:.0f} us by the "
            f"host's, {made['us']:.0f} by the device's",
        )


def _theirs(
    made: Table, row: Row, spec: Spec, name: str, sets: Sequence[Any], track: Track
) -> None:
    """Times one baseline. Records a failure with its reason."""
    made["failures"].pop(name, None)
    told: Table = {}
    try:
        found = timed_baseline(row.kernel, name, sets, track)
        found = _agreed(found, RaceJob(row, spec, name=name), track, told)
        if found.fault:
            raise Unsteady(found.fault)
        made["baselines_us"][name] = found.us
        made["baseline_times"][name] = {
            "p20_us": found.p20,
            "p80_us": found.p80,
            "host_us": found.host_us,
            **told,
        }
    except Exception as error:  # Compilers raise all kinds of errors.
        made["baselines_us"][name] = None
        made["failures"][name] = words_of(error)
    finally:
        machine_room.forget()


def compiled(call: TimedCall, mode: str) -> TimedCall:
    """Compiles a call with a mode of `torch.compile`, one of COMPILE_MODES."""
    # Takes seconds to import, and is only needed here.
    from torch._inductor import select_algorithm

    select_algorithm.PRINT_AUTOTUNE = False
    torch._dynamo.reset()
    made = torch.compile(call, mode=COMPILE_MODES[mode], dynamic=False)
    if mode != "reduce_overhead":
        return made
    return partial(stepped, made)


def stepped(call: TimedCall, *inputs: Any) -> Any:
    """Calls, and says that the outputs of the previous call are no longer needed."""
    torch.compiler.cudagraph_mark_step_begin()
    return call(*inputs)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raises OutOfTime in the main thread after some seconds."""

    def stop(*_: object) -> None:
        raise OutOfTime(f"it took longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    # Repeats, in case something caught the first one.
    signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def words_of(error: BaseException) -> str:
    """Formats an error as one line."""
    first = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {first}"[:300]
