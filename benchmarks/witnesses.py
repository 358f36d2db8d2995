"""Witnesses: processes that time the same calls, each with its own context on the device.

A chain of short kernels takes up to 5% more in one process than in another, in all of a process's
runs. No number of runs in one process shows it. So repeatable times are means over processes. The
processes are forked before a device is opened, and open it later. They are asked one after the
other.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks import device as machine_room
from benchmarks.race import Track, contender_sets, timed_baseline, timed_entrant, words_of
from benchmarks.race_job import RaceJob
from benchmarks.timing import RaceTimes

START_SECONDS = 120.0  # Limit until a process has opened the device.
JOB_SECONDS = 300.0  # Limit of one answer.


class Witnesses:
    """A number of processes. Close them after use."""

    def __init__(self, count: int, opened: Callable[[], Track]):
        """opened: returns the track of a process, and opens the device."""
        fork = multiprocessing.get_context("fork")
        self._pipes: list[Any] = []
        self._processes = []
        for _ in range(count):
            ours, theirs = fork.Pipe()
            process = fork.Process(target=_serve, args=(theirs, opened), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        self._ready = False

    def __call__(self, job: RaceJob) -> list[RaceTimes]:
        """Returns the times of a contender from each process, one after the other. Raises
        RuntimeError if one has none."""
        if not self._ready:  # Opening a device disturbs timing.
            self._ready = all(_answer(pipe, START_SECONDS) is None for pipe in self._pipes)
        found = []
        for pipe in self._pipes:
            found.append(_answer(pipe, JOB_SECONDS, job))
        return found

    def close(self) -> None:
        """Ends the processes."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            process.kill()
            process.join()


def _answer(pipe: Any, seconds: float, job: RaceJob | None = None) -> Any:
    """Returns the answer of a process to a job, or when it is ready. Raises RuntimeError for an
    error or a timeout."""
    try:
        if job is not None:
            pipe.send(job)
        if not pipe.poll(seconds):
            raise RuntimeError(f"a process that times gave no answer in {seconds:g} s")
        found = pipe.recv()
    except (EOFError, OSError):
        raise RuntimeError("a process that times has died") from None
    if isinstance(found, str):
        raise RuntimeError(found)
    return found


def _serve(pipe: Any, opened: Callable[[], Track]) -> None:
    """Runs in the process: answers jobs until it is ended."""
    torch.set_num_threads(1)  # PyTorch's own threads do not survive a fork.
    try:
        track = opened()
        # Its imports take seconds. In the forking process they would open the device.
        machine_room.forget()
        track.device.wait()
    except Exception as error:  # From a driver.
        pipe.send(words_of(error))
        return
    pipe.send(None)
    held: tuple[str, Sequence[Any]] = ("", [])
    while True:
        job = pipe.recv()
        try:
            with torch.no_grad():
                if held[0] != job.row.key:
                    held = ("", [])
                    machine_room.forget()
                    held = (job.row.key, contender_sets(job.row, job.spec, track))
                pipe.send(_timed(job, held[1], track))
        except Exception as error:  # From a kernel or a compiler.
            pipe.send(words_of(error))


def _timed(job: RaceJob, sets: Sequence[Any], track: Track) -> RaceTimes:
    if job.entrant is not None:
        return timed_entrant(job.entrant, job.row, sets, track)
    try:
        return timed_baseline(job.row.kernel, job.name, sets, track)
    finally:
        machine_room.full_precision()
