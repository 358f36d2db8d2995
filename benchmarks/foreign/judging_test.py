"""How the judge times a solution, on a device that is a simulation: what calls take, and who is refused."""

from contextlib import nullcontext

import pytest
import torch

from backends.gpu.device.fake import Fake
from backends.turns import Turns
from benchmarks.foreign import judging
from benchmarks.foreign.judging import Options, Report, _Clocked, _Judge
from benchmarks.foreign.process import Refused
from benchmarks.foreign.served import Served
from benchmarks.foreign.stopwatch import EventClock
from frontends.kernelbench.problem import Problem

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0

def get_inputs():
    return [torch.randn(6, 40)]

def get_init_inputs():
    return []
"""


class Here:
    """A solution in this process, asked as one in its own is."""

    def __init__(self, model, clock):
        self.served = Served(torch.device("cpu"), clock)
        self.served.model = model

    def make(self, arguments, state, seed):
        return "by the seed"

    def hold(self, sets):
        self.served.do_hold({}, sets)

    def times(self, plan):
        return self.served.do_time({"plan": plan}, None)[0]["us"]

    def results(self, sets, most):
        return self.served.do_results({}, None)[1]


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """What the report says of a solution's time. model: gets the device too; late: see `Fake`."""
    file = tmp_path / "problem.py"
    file.write_text(PROBLEM)

    def judged(model, late=0.0, busy=False):
        fake = Fake(late=late)
        clock = EventClock(fake.flush, fake.mark, fake.us_between, fake.wait, fake.now)

        def clocked(work):
            before = fake.now()
            value = work()
            return _Clocked(value, fake.now() - before)

        monkeypatch.setattr(judging, "_clocked", clocked)
        monkeypatch.setattr(judging, "device_turns", Turns)
        monkeypatch.setattr(judging, "at_work", lambda: busy)
        monkeypatch.setattr(EventClock, "of", staticmethod(lambda place: clock))
        report = Report(secret="s")
        judge = _Judge(Problem.read(str(file)), "", Options(), report)
        judge.process = Here(lambda x: model(fake, x), clock)
        judge._time(judge._made(judging.Shaped("listed", judge.problem, True)))
        return report

    return judged


def honest(fake, x):
    fake.call(300.0)
    return x * 2.0


def test_an_honest_solution_has_the_time_that_its_calls_take(timed):
    report = timed(honest)
    assert report.time_kind == "measured" and report.time["runs"] == judging.CALLS + 2
    assert report.time["us"] == pytest.approx(300.0)
    assert report.time["wall_us"] == pytest.approx(300.0, abs=100.0)


def test_work_that_events_do_not_span_is_refused(timed):
    with pytest.raises(Refused, match="by the judge's clock") as seen:
        timed(honest, late=2000.0)
    assert seen.value.kind == "clocks disagree"


def test_a_wait_before_the_timed_calls_hides_nothing(timed):
    """What the calls before them take is no part of what the judge's clock shows."""
    calls = []

    def cheat(fake, x):
        calls.append(x)
        if len(calls) <= judging.WARM_UP:
            fake.host += 1e6
        return honest(fake, x)

    with pytest.raises(Refused, match="by the judge's clock"):
        timed(cheat, late=2000.0)


@pytest.mark.parametrize("key", [lambda x: x.data_ptr(), lambda x: x.shape])
def test_results_that_are_kept_by_where_inputs_lie_are_wrong(timed, key):
    kept = {}

    def cheat(fake, x):
        if key(x) not in kept:
            kept[key(x)] = honest(fake, x)
        return kept[key(x)]

    with pytest.raises(Refused, match="in a timed call") as seen:
        timed(cheat)
    assert seen.value.kind == "wrong"


def test_a_device_that_others_use_gives_no_time(timed):
    report = timed(honest, busy=True)
    assert report.time_kind == "no time" and report.no_time == judging.OTHERS


@pytest.mark.parametrize(
    ("seen", "busy"), [([0.0], False), ([40.0, 3.0, 0.0], False), ([9.0], True)]
)
def test_a_device_is_at_work_that_does_not_come_to_rest(monkeypatch, seen, busy):
    told = iter([*seen, *seen[-1:] * judging.LOOKS])
    monkeypatch.setattr(judging, "utilization", lambda number: next(told))
    monkeypatch.setattr(judging.time, "sleep", lambda seconds: None)
    assert judging.at_work() is busy


def test_a_driver_that_tells_nothing_stops_nobody(monkeypatch):
    monkeypatch.setattr(judging, "utilization", lambda number: None)
    monkeypatch.setattr(judging.time, "sleep", lambda seconds: None)
    assert judging.at_work() is False


def test_turns_are_taken_on_a_device_alone():
    judge = _Judge(None, "", Options(), Report())
    assert isinstance(judge._turn(), nullcontext)
