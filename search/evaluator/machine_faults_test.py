"""Faults of the machine do not count against a candidate, which is tried again."""

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ir.errors import KernelError
from search.core.evaluation import Evaluation, Failure
from search.evaluator import local as local_module
from search.evaluator import sandbox
from search.evaluator import worker as worker_module
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.testing.acting import HOURS, bench, outcomes
from search.evaluator.worker import by_disk


@pytest.mark.parametrize("deaths", [1, local_module.TRIES])
def test_a_candidate_whose_worker_dies_is_tried_again(monkeypatch, deaths):
    killed = []

    def killing(self, todo, busy, hand_out=LocalEvaluator._hand_out):
        hand_out(self, todo, busy)
        for worker in list(busy):
            if len(killed) < deaths and worker.process.pid not in killed:
                killed.append(worker.process.pid)
                worker.process.kill()

    monkeypatch.setattr(LocalEvaluator, "_hand_out", killing)
    with LocalEvaluator([bench()], workers=1) as evaluator:
        (found,) = outcomes(evaluator, "good")
        if deaths < local_module.TRIES:
            assert isinstance(found, Evaluation)
        else:
            assert found == Failure("verify", "machine", "the worker that had it died")
            assert found.by_chance
        assert isinstance(outcomes(evaluator, "good")[0], Evaluation)


def test_a_candidate_that_is_killed_from_outside_is_tried_again():
    with LocalEvaluator([bench()], workers=1) as evaluator:
        inner = evaluator.environment["sandbox"]["process namespace"].startswith("yes")
        depth = 3 if inner else 1  # the waiting process, the first of the namespace, the candidate
        pid = evaluator._pool[0].process.pid
        over = threading.Event()
        killer = threading.Thread(target=_kill_descendants, args=(pid, depth, over))
        killer.start()
        (found,) = outcomes(evaluator, f"wait {HOURS}")
        over.set()
        killer.join()
        assert found.kind == "machine" and "it was killed" in found.reason
        assert isinstance(outcomes(evaluator, "good")[0], Evaluation)


def _kill_descendants(worker, depth, over):
    """Kills all processes at a depth below a worker until the evaluation is over."""
    while not over.is_set():
        below = [worker]
        for _ in range(depth):
            below = [child for process in below for child in _children_of(process)]
        for process in below:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.001)


def _children_of(process):
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:  # it has ended
        return []
    return [int(word) for word in text.split()]


def test_a_worker_that_is_killed_before_it_is_ready_is_started_again(monkeypatch):
    killed = []

    def starting(benches, start=local_module._start):
        worker = start(benches)
        if len(killed) < 2:
            killed.append(worker.process.pid)
            worker.process.kill()
        return worker

    monkeypatch.setattr(local_module, "_start", starting)
    with LocalEvaluator([bench()], workers=2) as evaluator:
        assert isinstance(outcomes(evaluator, "good")[0], Evaluation)
        assert not set(killed) & {w.process.pid for w in evaluator._pool}


def test_a_worker_that_has_ended_before_it_is_told_what_to_do_is_started_again(monkeypatch):
    began = subprocess.Popen

    class Ended(began):
        """Ends at once, the first two times."""

        count = 0

        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            Ended.count += 1
            if Ended.count <= 2:
                self.kill()
                self.wait()

    monkeypatch.setattr(local_module.subprocess, "Popen", Ended)
    with LocalEvaluator([bench()], workers=1) as evaluator:
        assert isinstance(outcomes(evaluator, "good")[0], Evaluation)
    assert Ended.count == 3


def test_workers_that_end_each_time_are_an_error(monkeypatch):
    def starting(benches, start=local_module._start):
        worker = start(benches)
        worker.process.kill()
        return worker

    monkeypatch.setattr(local_module, "_start", starting)
    with pytest.raises(KernelError, match="ended before it was ready"):
        LocalEvaluator([bench()], workers=1)


@pytest.mark.parametrize(
    ("waited", "kind"), [(None, "machine"), (9.0, "machine"), (0.5, "timeout")]
)
def test_who_sleeps_is_at_fault_on_a_busy_machine_too(monkeypatch, tmp_path, waited, kind):
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    child = worker_module._Child(
        0, 0, 0, Limits(seconds=12.0), tmp_path, in_time=False, waited=waited
    )
    assert worker_module._death(child, 0, 0.2).kind == kind


@pytest.mark.parametrize(
    "said", ["OSError: [Errno 28] No space left on device", "cc1: x.s: No space left on device"]
)
@pytest.mark.parametrize(
    ("free", "nodes", "size", "kind"),
    [
        (0, 9, 1 << 40, "machine"),
        (1 << 30, 0, 1 << 40, "machine"),
        (1 << 30, 9, 1 << 40, "crash"),  # it reports a full disk, but the disk is not full
        (0, 9, Limits().files, "crash"),  # the candidate's own file system
    ],
)
def test_a_full_disk_is_a_fault_of_the_machine(
    tmp_path, monkeypatch, said, free, nodes, size, kind
):
    blocks = [4096, 4096, size // 4096, free // 4096, free // 4096, 100, nodes, nodes, 0, 255]
    monkeypatch.setattr(sandbox.os, "statvfs", lambda _: os.statvfs_result(blocks))
    found = by_disk(Failure("build", "crash", said), tmp_path, Limits().files)
    assert (found.stage, found.kind, found.reason) == ("build", kind, said)


def test_other_failures_stay_on_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "disk_is_full", lambda *_: True)
    wrong = Failure("check", "wrong", "output `y`")
    assert by_disk(wrong, tmp_path, None) is wrong
