"""Candidates in separate processes: figures, faults, limits, and no leftovers."""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.print import spec_text
from search.core.candidate import Origin
from search.core.evaluation import Evaluation, Failure
from search.evaluator import local as local_module
from search.evaluator.local import LocalEvaluator, Worker, _wait_for
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench
from search.evaluator.testing.acting import (
    CHIP,
    HASTY,
    HOURS,
    LIMITS,
    MANIFEST,
    OUTSIDE,
    Busy,
    Glancing,
    Lasting,
    Mute,
    Opening,
    Sleeping,
    Tongue,
    bench,
    candidate,
    outcomes,
)


@pytest.fixture(scope="module")
def local():
    os.environ["SPECIATE_TEST_KEY"] = "sk-very-secret"
    with LocalEvaluator([bench()], workers=2) as evaluator:
        yield evaluator
    del os.environ["SPECIATE_TEST_KEY"]


def test_a_good_candidate_is_evaluated_with_all_its_figures(local):
    (found,) = outcomes(local, None)
    assert isinstance(found, Evaluation)
    assert (found.us, found.time_kind, found.correct_by) == (5.0, "modelled", "emulator")
    assert [e.sizes for e in found.errors] == [{"M": 1}, {"M": 7}, {"M": 64}]
    assert found.figures["registers"] == 7.0
    assert found.figures["cycles"] == 9.0
    assert found.figures["launches"] == 1.0
    assert found.figures["least_bytes"] == 3 * 64 * 4
    assert found.engines == {"vector": 0.5}
    turns = ["waiting turns", "alone turns", "waiting to check", "start"]
    assert list(found.seconds) == ["verify", "emit", "build", "check", "time", *turns]
    assert found.source_digest and found.code_sha256 == "ab12"


FAULTS = [
    ("off", "check", "wrong", "y"),
    ("eat", "check", "memory", "memory"),
    ("abort", "check", "memory", "bad_alloc"),
    ("segfault", "check", "crash", "SIGSEGV"),
    ("write", "check", "crash", "Error"),
    ("fill", "check", "crash", "File too large"),
    ("leave", "check", "crash", "exit code 0"),
    ("close", "check", "crash", "sending one result"),
    ("forge", "check", "crash", "no result"),
    ("flood", "check", "crash", "sending one result"),
    ("divide", "check", "crash", "ZeroDivisionError: division by zero"),
    ("no build", "build", "refused", "line 1: syntax error"),
    ("timeless", "time", "crash", "nan"),
]


@pytest.mark.parametrize("source, stage, kind, reason", FAULTS, ids=[f[0] for f in FAULTS])
def test_a_fault_becomes_a_failure_and_the_next_is_evaluated(local, source, stage, kind, reason):
    bad, good = outcomes(local, source, "good")
    assert isinstance(bad, Failure)
    assert (bad.stage, bad.kind) == (stage, kind)
    assert reason in bad.reason
    assert isinstance(good, Evaluation)
    assert not OUTSIDE.exists()


@pytest.mark.parametrize(
    "source, kind, reason",
    [("swarm", "memory", "than 536870912 bytes of memory"), ("multiply", "crash", "temporarily")],
)
def test_totals_hold_for_all_processes_of_a_candidate(local, source, kind, reason):
    layer = local.environment["sandbox"]["control group"]
    if layer.startswith("no"):
        pytest.skip(layer)
    bad, good = outcomes(local, source, "good")
    assert isinstance(bad, Failure) and isinstance(good, Evaluation)
    assert (bad.kind, reason in bad.reason) == (kind, True), bad


def test_a_process_goes_on_with_candidates_of_our_own_until_one_is_not_sound():
    """A source by others gets its own process, and so does the candidate after a fault."""
    with LocalEvaluator([bench(Lasting)], workers=1) as evaluator:
        found = outcomes(evaluator, None, None, "good", None, "off", None)
    built = [o.figures["built"] if isinstance(o, Evaluation) else o.kind for o in found]
    assert built == [1, 2, 1, 3, "wrong", 4]


def test_a_process_opens_its_device_once_before_the_first_candidate_comes():
    with LocalEvaluator([bench(Opening)], workers=1) as evaluator:
        found = outcomes(evaluator, None, None, "off", None)
    figures = [o.figures if isinstance(o, Evaluation) else {} for o in found]
    pairs = [(f.get("built"), f.get("opened")) for f in figures]
    assert pairs == [(1, 1), (2, 1), (None, None), (3, 1)]
    # The third has its own; the others share one that was ready before.
    assert ["start" in o.seconds for o in found] == [False, False, True, False]


def test_a_device_that_cannot_be_opened_is_a_fault_of_the_candidate_that_comes():
    broken = replace(bench(Opening), machine=replace(CHIP, title="broken"))
    with LocalEvaluator([broken], workers=1) as evaluator:
        (found,) = outcomes(evaluator, None)
    assert (found.stage, found.kind) == ("verify", "crash") and "no device answers" in found.reason


def test_what_is_too_slow_is_not_checked_and_its_process_goes_on():
    """Nothing is too slow before any candidate is correct."""
    child = candidate(None, origin=Origin("mutate", ("seed",)))
    with LocalEvaluator([bench(Glancing)], workers=1) as evaluator:
        ((_, first),) = evaluator.evaluate([child])
        evaluator.fastest("tongue", 5.0)
        ((_, slow),) = evaluator.evaluate([child])
        ((_, seed),) = evaluator.evaluate([candidate(None)])
    assert (first.us, slow.kind, slow.us) == (9.0, "slow", 9.0)
    assert "check" in first.seconds and "check" not in slow.seconds
    assert (seed.us, seed.figures["built"]) == (9.0, 3), "the same process had all three"


def test_workers_are_told_how_long_builds_of_fast_kernels_took():
    def outcome(us, build):
        return replace(found, us=us, seconds={"build": build})

    with LocalEvaluator([bench(Glancing)], workers=1) as evaluator:
        ((_, found),) = evaluator.evaluate([candidate(None)])
        assert evaluator._known("tongue") is None  # such a caller sets no time to beat
        evaluator.fastest("tongue", 8.0)
        first = evaluator._known("tongue")
        assert first.us == 8.0 and first.build_s == found.seconds["build"]
        for one in (outcome(10.0, 70.0), outcome(8.5, 50.0), outcome(8.0, 30.0)):
            evaluator._note("tongue", one)
        evaluator._note("tongue", Failure("time", "slow", "slow", us=11.0, seconds={"build": 90.0}))
        assert evaluator._known("tongue").build_s == 70.0
        evaluator._note("tongue", outcome(10.1, 80.0))  # too slow to count
        assert evaluator._known("tongue").build_s == 70.0


def test_a_process_that_has_had_its_time_takes_no_further_candidate():
    limits = replace(LIMITS, cpu=1)
    with LocalEvaluator([bench(Busy, limits=limits)], workers=1) as evaluator:
        found = outcomes(evaluator, *[None] * 5)
    assert [o.figures["built"] for o in found] == [1, 2, 3, 1, 2]


@pytest.fixture(scope="module")
def hasty():
    with LocalEvaluator([bench(limits=HASTY)], workers=1) as evaluator:
        yield evaluator


@pytest.mark.parametrize("source, stage", [("loop", "check"), ("slow build", "build")])
def test_what_hangs_is_ended_and_the_next_is_evaluated(hasty, source, stage):
    found = in_time(hasty, source, lambda outcome: outcome.stage == stage)
    assert found.reason == "it was still at it after 2 s"
    assert found.kind in ("timeout", "machine"), "the latter on a busy machine"
    in_time(hasty, "good", lambda outcome: isinstance(outcome, Evaluation))


def in_time(evaluator, source, fits):
    """The outcome of a source that `fits` accepts. Only a timeout is tried again, because the short
    limit may pass earlier on a busy machine."""
    while True:
        (found,) = outcomes(evaluator, source)
        if fits(found):
            return found
        assert found.kind == "timeout", found


def test_a_schedule_that_is_not_legal_is_refused_at_verify(local):
    asked = [candidate(None, "schedule(scale)\ntile(q, size=4)\n"), candidate(None, "nonsense(")]
    found = dict(local.evaluate(asked))
    assert [(f.stage, f.kind) for f in found.values()] == [("verify", "refused")] * 2


def test_it_reaches_no_server(local):
    if not local.environment["sandbox"]["network namespace"].startswith("yes"):
        pytest.skip(local.environment["sandbox"]["network namespace"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        (found,) = outcomes(local, f"connect {server.getsockname()[1]}")
    assert (found.stage, found.kind) == ("check", "crash")


def test_it_finds_no_key(local):
    (found,) = outcomes(local, "look sk-very-secret")
    assert isinstance(found, Evaluation)


def test_it_cannot_end_its_worker(local):
    if "signals" not in local.environment["sandbox"]["landlock"].partition("not")[0]:
        pytest.skip(local.environment["sandbox"]["landlock"])
    (found,) = outcomes(local, "kill")
    assert (found.stage, found.kind) == ("check", "crash")
    assert "PermissionError" in found.reason


def test_what_it_leaves_behind_is_ended(local):
    mark = f"{HOURS}.1{os.getpid()}"
    outcomes(local, f"spawn {mark}")
    assert not _running(mark)


def _running(mark):
    """Whether a `sleep` of this duration is running."""
    return any(b"sleep\0" + mark.encode() in _line(p) for p in Path("/proc").glob("[0-9]*"))


def _line(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_results_do_not_depend_on_the_number_of_workers(local):
    sources = ("good", "off", None, "segfault", "no build")
    with LocalEvaluator([bench()], workers=1) as single:
        assert outcomes(single, *sources) == outcomes(local, *sources)


class Dialect(Tongue):
    """Another backend, with different times."""

    manifest = replace(MANIFEST, name="dialect")

    def time(self, built, nest, machine, sizes, inputs):
        return replace(super().time(built, nest, machine, sizes, inputs), us=7.0)

    def available(self, machine):
        return {**super().available(machine), "toolchain": "dialect 2"}


def test_one_worker_serves_several_backends():
    with LocalEvaluator([bench(), bench(Dialect)], workers=1) as evaluator:
        asked = [candidate("good"), replace(candidate("good"), backend="dialect")]
        found = dict(evaluator.evaluate(asked))
        assert [found[n].us for n in (0, 1)] == [5.0, 7.0]
        assert list(evaluator.contexts) == ["tongue", "dialect"]
        assert len(set(evaluator.contexts.values())) == 2
        assert evaluator.environment["contexts"] == evaluator.contexts
        assert evaluator.environment["backends"]["dialect"]["toolchain"] == "dialect 2"
    with LocalEvaluator([bench()], workers=1) as alone:
        assert alone.contexts == {"tongue": evaluator.contexts["tongue"]}


def test_when_time_is_over_the_rest_is_given_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(local_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asked = [candidate("good"), candidate(f"wait {HOURS}"), candidate(f"wait {HOURS}")]
    with LocalEvaluator([bench()], workers=2) as evaluator:
        found = evaluator.evaluate(asked, seconds=HOURS)
        assert next(found)[0] == 0
        now[0] += HOURS
        assert list(found) == []
        assert isinstance(outcomes(evaluator, "good")[0], Evaluation)


def test_closing_ends_all_processes():
    evaluator = LocalEvaluator([bench()], workers=2)
    pids = [w.process.pid for w in evaluator._pool]
    evaluator.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_all_workers_are_hung_up_on_before_one_is_waited_for():
    """A child that uses a device takes seconds to end; ended one by one, all would take a
    minute."""
    with LocalEvaluator([bench()], workers=2) as evaluator:
        pool = list(evaluator._pool)
        for worker in pool:
            wait = worker.process.wait

            def waited(timeout=None, wait=wait):
                assert all(w.connection.closed for w in pool)
                return wait(timeout)

            worker.process.wait = waited
    assert [w.process.returncode for w in pool] == [0, 0]


class Endless:
    """A process that does not end, because the kernel does not release it. It reports only the
    longest wait."""

    def __init__(self):
        self.killed, self.waits = 0, []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        assert timeout is not None, "who waits for it waits for ever"
        raise subprocess.TimeoutExpired("a worker", timeout)

    def kill(self):
        self.killed += 1


def test_what_does_not_end_is_killed_and_then_left_alone(tmp_path):
    workers = [Worker(Endless(), SimpleNamespace(close=list), tmp_path / str(n)) for n in range(3)]
    _wait_for(workers)
    assert [w.process.killed for w in workers] == [1, 1, 1]
    assert [len(w.process.waits) for w in workers] == [2, 2, 2]


def _is_free(lock):
    """Whether another thread gets a lock at once."""
    with ThreadPoolExecutor(1) as other:
        free = other.submit(lock.acquire, False).result()
        if free:
            other.submit(lock.release).result()
    return free


def test_nobody_waits_while_another_s_worker_ends():
    """A search that ended has dropped all its workers, each in a separate thread."""
    with LocalEvaluator([bench()], workers=2) as evaluator:
        free = []
        for worker in evaluator._pool:

            def waited(timeout=None, wait=worker.process.wait):
                free.append(_is_free(evaluator._changed))
                return wait(timeout)

            worker.process.wait = waited
        evaluator._drop(evaluator._pool[0])
        assert free == [True] and len(evaluator._pool) == 1
        assert isinstance(outcomes(evaluator, "good")[0], Evaluation)
    assert free == [True, True]


def test_a_worker_that_is_not_ready_yet_keeps_nobody_from_closing(tmp_path):
    """It would open its device first, for up to a minute."""
    held = tmp_path / "held"
    with LocalEvaluator([bench(partial(Sleeping, str(held)))], workers=1) as evaluator:
        held.touch()
        dead = evaluator._pool[0]
        dead.process.kill()
        dead.process.wait()
        with ThreadPoolExecutor(1) as other:
            asked = other.submit(outcomes, evaluator, "good")
            _until(lambda: evaluator._pool and evaluator._pool[0] is not dead)
            (fresh,) = evaluator._pool
            evaluator.close()
            assert asked.result() == [] and held.exists()
    assert fresh.process.returncode is not None and not fresh.home.exists()
    assert fresh.doing is None


def test_workers_and_candidates_end_with_a_search_that_is_killed():
    mark = f"{HOURS}.2{os.getpid()}"
    search = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import hold; hold({mark!r})"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    worker = int(search.stdout.readline())
    _until(lambda: _running(mark))
    search.kill()
    search.communicate()
    _until(lambda: not _running(mark))
    _until(lambda: not Path(f"/proc/{worker}").exists())


def hold(mark):
    """A search's process: names its worker, and waits for a candidate that does not end."""
    with LocalEvaluator([bench(limits=Limits())], workers=1) as evaluator:
        print(evaluator._pool[0].process.pid, flush=True)
        list(evaluator.evaluate([candidate(f"wait {mark}")]))


def _until(holds):
    end = time.monotonic() + LIMITS.seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def test_temporary_folders_do_not_stay():
    before = set(Path("/tmp").glob("speciate-*"))
    with LocalEvaluator([bench()], workers=1) as evaluator:
        outcomes(evaluator, "good", "segfault")
    assert set(Path("/tmp").glob("speciate-*")) <= before


def test_a_backend_that_can_do_nothing_here_is_refused_with_the_reason():
    with pytest.raises(KernelError, match="no device"):
        LocalEvaluator([bench(Mute)], workers=1)


def test_without_sizes_to_check_nothing_is_searched():
    with pytest.raises(KernelError, match="no sizes at which its results could be checked"):
        bench_of_nothing = Bench(MATMUL, CHIP, Tongue, {"M": 4096})
        LocalEvaluator([bench_of_nothing], workers=1)


MATMUL = spec_text(
    parse_spec(
        '''def square(a: f32[M, M]) -> f32[M, M]:
    """Square a matrix."""
    y[i, j] = sum(a[i, k] * a[k, j], k)
    return y
'''
    )
)
