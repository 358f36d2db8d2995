"""Networks are built and timed in a process of their own, whose faults are told."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from backends.registry import backend_for, served_by, target
from backends.served import Served
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


def test_a_process_that_was_started_before_is_used_once(plan):
    timed.prestart()
    (waiting,) = timed._waiting
    timed.prestart()  # one is enough
    assert timed._waiting == [waiting]
    network = plan.network(plan.ways[0], {}, each=False)
    (found,) = times_of([network])
    assert isinstance(found, WholeTimes) and not timed._waiting
    assert waiting._process.returncode == 0 and not Path(waiting._folder.name).exists()


def test_a_process_that_nobody_asks_ends_when_its_input_does():
    with timed._Process() as process:
        process._process.stdin.close()
        assert process._process.wait() == 0
        process._process.stdin = None


def test_what_somebody_else_wrote_is_built_beside_a_clean_process(plan, tmp_path, monkeypatch):
    network, within = plan.network(plan.ways[0], {}), []

    @contextmanager
    def beside(machine, opened):
        within.append((machine.name, opened().manifest.name))
        yield

    monkeypatch.setattr(child, "beside", beside)
    assert child._built([network], tmp_path) and not within
    edited = {n: replace(texts, edited=True) for n, texts in network.kernels.items()}
    (built,) = child._built([replace(network, kernels=edited)], tmp_path).values()
    assert built.file.exists() and within == [("cpu", "cpp")]
