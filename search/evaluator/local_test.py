"""Whatever a candidate does, it becomes an outcome, and the next one is evaluated."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from backends.backend import BackendError, Built, Timing
from backends.manifest import Manifest
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.reference.reference import evaluate_storage
from machines.tiles.tiles import TILES
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.evaluator import local as local_module
from search.evaluator.local import LocalEvaluator
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench

SPEC = parse_spec(
    '''def scale(x: f32[M], g: f32[M]) -> f32[M]:
    """Multiply."""
    y[m] = x[m] * g[m]
    return y
'''
)
CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1 << 16)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)
LIMITS = Limits(seconds=1800.0, memory=2 << 30, file=1 << 20)  # only what hangs takes so long
HASTY = replace(LIMITS, seconds=2.0)
HOURS = 7200  # seconds: longer than a test may take
OUTSIDE = Path("/tmp/speciate-local-test-outside")
MANIFEST = Manifest(
    name="tongue",
    title="For tests",
    language="text",
    extension="txt",
    object="tongue:Tongue",
    correct_by=("emulator",),
    time_kind=("modelled",),
    dtypes=("f32",),
    toolchain="none",
    verbs=(),
)


class Tongue:
    """A backend whose kernels do what their source says, at the stage where it is said."""

    manifest = MANIFEST

    def emit(self, nest, machine):
        return "good"

    def build(self, source, nest, machine, folder):
        if source == "no build":
            raise BackendError("build", "line 1: syntax error")
        if source == "slow build":
            subprocess.run(["sleep", str(HOURS)])
        (folder / "kernel.txt").write_text(source)
        return Built(folder / "kernel.txt", {"registers": 7.0})

    def run(self, built, nest, machine, sizes, inputs):
        act = ACTS.get(built.file.read_text().partition(" ")[0])
        if act:
            act(built.file.read_text())
        right = evaluate_storage(nest.spec, inputs, sizes)
        return {n: a + 1 for n, a in right.items()} if act is off else dict(right)

    def time(self, built, nest, machine, sizes, inputs):
        us = float("nan") if built.file.read_text() == "timeless" else 5.0
        return Timing(us, "modelled", {"cycles": 9.0}, {"vector": 0.5})

    def available(self, machine):
        return {"correct_by": "emulator", "time_kind": "modelled", "why": ""}


class Mute(Tongue):
    """A backend that can do nothing here."""

    def available(self, machine):
        return {"correct_by": None, "time_kind": None, "why": "no device"}


def off(source):
    """The results will be off by one."""


def loop(source):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 60))
    while True:
        pass


def eat(source):
    kept = []
    while True:
        kept.append(np.empty(1 << 24))


def abort(source):
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def segfault(source):
    ctypes.string_at(0)


def write(source):
    OUTSIDE.write_text("it got out")


def fill(source):
    Path("large").write_bytes(bytes(1 << 21))


def connect(source):
    socket.create_connection(("127.0.0.1", int(source.split()[1])), 1)


def leave(source):
    os._exit(0)


def close(source):
    os.closerange(3, 4096)
    time.sleep(HOURS)


def forge(source):
    for number in range(3, 1024):
        try:
            os.write(number, b"outcome {}\n")
        except OSError:
            continue


def flood(source):
    while True:
        for number in range(3, 1024):
            try:
                os.write(number, b"x" * 65536)
            except OSError:
                continue


def kill(source):
    os.kill(os.getppid(), signal.SIGKILL)


def spawn(source):
    """Leaves a process behind, in a session of its own, that shows in its command line."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", source.split()[1]])
        os._exit(0)


def wait(source):
    subprocess.run(["sleep", source.split()[1]])


def look(source):
    found = Path("/proc/self/environ").read_bytes().decode() + str(dict(os.environ))
    if source.split()[1] in found:
        raise RuntimeError("it has read a key")


def divide(source):
    return 1 / 0


ACTS = {
    act.__name__: act
    for act in (
        off,
        loop,
        eat,
        abort,
        segfault,
        write,
        fill,
        connect,
        leave,
        close,
        forge,
        flood,
        kill,
        spawn,
        wait,
        look,
        divide,
    )
}


def candidate(source, schedule=None):
    text = str(autoschedule(SPEC, CHIP, {"M": 64})) if schedule is None else schedule
    return Candidate(spec_text(SPEC), text, "chip", "tongue", source)


def bench(backend=Tongue, **more):
    more = {"checks": ({"M": 1}, {"M": 7}), "limits": LIMITS, **more}
    return Bench(spec_text(SPEC), CHIP, backend, {"M": 64}, **more)


@pytest.fixture(scope="module")
def local():
    os.environ["SPECIATE_TEST_KEY"] = "sk-very-secret"
    with LocalEvaluator([bench()], workers=2) as evaluator:
        yield evaluator
    del os.environ["SPECIATE_TEST_KEY"]


def outcomes(evaluator, *sources):
    asked = [candidate(s) for s in sources]
    return [o for _, o in sorted(evaluator.evaluate(asked), key=lambda found: found[0])]


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
    assert list(found.seconds) == ["verify", "emit", "build", "check", "time"]
    assert found.source_digest


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
    """The outcome of a source that gets as far as is wanted. On a busy machine the little time may
    be over before, and only then it is tried again."""
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
    """Whether a `sleep` for so long is running."""
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
    """Another backend, whose times are other ones."""

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


@pytest.mark.parametrize("deaths", [1, local_module.TRIES])
def test_a_candidate_whose_worker_dies_is_tried_again(monkeypatch, deaths):
    killed = []

    def killing(self, todo, hand_out=LocalEvaluator._hand_out):
        hand_out(self, todo)
        for worker in [w for w in self._pool if w.doing is not None]:
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
        depth = 3 if inner else 1  # the one that waits, the first of the namespace, the candidate
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
    """Kills all processes so far below a worker until it is over."""
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
    """A search's process: says which worker it has, and waits for a candidate that waits."""
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
