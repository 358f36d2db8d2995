"""Networks are built and timed in separate processes, whose faults are reported."""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe, get_context
from pathlib import Path

import pytest

from backends.registry import backend_for, served_by, target
from backends.served import Served
from search.core.phases import recorded
from search.whole import child, timed
from search.whole.plan import CallPlan
from search.whole.testing.two_ways import of_spec
from search.whole.timed import times_of
from search.whole.times import WholeTimes


@pytest.fixture(scope="module")
def plan():
    machine = target("cpu")
    backend = backend_for(machine)
    return CallPlan.of(of_spec, [Served(backend, served_by(machine, backend))])


def test_a_call_and_each_of_its_kernels_is_timed_and_a_fault_is_told(plan):
    good = plan.network(plan.ways[0], {})
    (name,) = good.kernels
    wrong = replace(good.kernels[name], source="int main( {")
    bad = replace(good, kernels={name: wrong})
    found, fault = times_of([good, bad])
    assert isinstance(found, WholeTimes) and found.us > 0.0 and found.graph_us is None
    assert found.best_us == found.us and set(found.kernels) == {name}
    assert isinstance(fault, str) and fault.startswith("build: ")


def test_where_nothing_is_measured_there_are_no_times():
    machine = target("null")
    backend = backend_for(machine)
    plan = CallPlan.of(of_spec, [Served(backend, served_by(machine, backend))])
    assert not plan.measures
    assert times_of([plan.network(plan.ways[0], {})]) == ["no time is measured here"]


def test_a_process_that_is_kept_times_all_that_is_asked_and_builds_once(plan):
    network = plan.network(plan.ways[0], {}, each=False)
    (name,) = network.kernels
    wrong = replace(network, kernels={name: replace(network.kernels[name], source="int main( {")})
    with recorded() as phases, timed.kept():
        timed.prestart(plan.served[0])
        (process,) = timed._KEPT.get()
        timed.prestart(plan.served[0])  # one is enough
        found, fault = times_of([network, wrong])
        folder = Path(process._folder.name)
        builds = {file: file.stat().st_mtime_ns for file in folder.glob("*/*")}
        with timed.kept():  # within an outer context
            (again,) = times_of([network], timed.AFTER)
        assert timed._KEPT.get() == [process] and builds
        assert {file: file.stat().st_mtime_ns for file in folder.glob("*/*")} == builds
    assert isinstance(found, WholeTimes) and isinstance(again, WholeTimes)
    assert isinstance(fault, str) and fault.startswith("build: ")
    assert process._process.returncode is not None and not folder.exists()
    whens = [f"{when}: {what}" for when in ("before", "after") for what in ("build", "time")]
    assert {f"{name} calls" for name in whens} < set(phases.seconds)


def test_a_process_that_has_ended_is_told_of_and_the_next_call_has_another(plan):
    network = plan.network(plan.ways[0], {}, each=False)
    with timed.kept():
        timed.prestart(plan.served[0])
        (process,) = timed._KEPT.get()
        process._process.kill()
        process._process.wait()
        (why,) = times_of([network])
        assert why.startswith("its process ended with -9")
        (found,) = times_of([network])
        assert isinstance(found, WholeTimes)


def timers(folder, said):
    """Runs in a new process, because a fork after PyTorch has used threads may wait for these
    forever: results of timers for a network, for a lost build, for a kernel by others, and after
    their end; and whether they are over then."""
    machine = target("cpu")
    served = Served(backend_for(machine), machine)
    plan = CallPlan.of(of_spec, [served])
    network, built = plan.network(plan.ways[0], {}, each=False), {}
    child.build([network], folder, built)
    ((key, right),) = built.items()
    edited = {n: replace(texts, edited=True) for n, texts in network.kernels.items()}
    theirs = replace(network, kernels=edited)
    found = []
    timer = child._Timer(served)
    found.append((timer.told(network, built), timer.over))
    found.append((timer.told(network, {key: replace(right, file=folder / "lost")}), timer.over))
    timer.end()
    timer = child._Timer(served)
    mine = {(key[0], replace(key[1], edited=True)): right}
    found.append((timer.told(theirs, mine), timer.over))
    timer.end()
    timer = child._Timer(served)
    os.kill(timer._pid, signal.SIGKILL)
    found.append((timer.told(network, built), timer.over))
    timer.end()
    said.send(found)


def test_what_times_ends_after_a_fault_and_after_what_somebody_else_wrote(tmp_path):
    here, there = Pipe(duplex=False)
    process = get_context("spawn").Process(target=timers, args=(tmp_path, there))
    process.start()
    there.close()
    right, lost, edited, ended = here.recv()
    process.join()
    assert right[0]["us"] > 0.0 and not right[1]
    assert isinstance(lost[0], str) and lost[1]
    assert edited[0]["us"] > 0.0 and edited[1]
    assert ended == ("the process that timed it has ended", True)


def test_a_process_that_nobody_asks_ends_with_who_started_it(plan):
    process = timed._Process(plan.served[0])
    process._connection.close()
    assert process._process.wait() == 0
    process.end()


def test_what_somebody_else_wrote_is_built_beside_a_clean_process(plan, tmp_path, monkeypatch):
    network, within = plan.network(plan.ways[0], {}), []

    @contextmanager
    def beside(machine, opened):
        within.append((machine.name, opened().manifest.name))
        yield

    monkeypatch.setattr(child, "beside", beside)
    ours, theirs = {}, {}
    child.build([network], tmp_path, ours)
    assert ours and not within
    edited = {n: replace(texts, edited=True) for n, texts in network.kernels.items()}
    child.build([replace(network, kernels=edited)], tmp_path, theirs)
    (built,) = theirs.values()
    assert built.file.exists() and within == [("cpu", "cpp")]
