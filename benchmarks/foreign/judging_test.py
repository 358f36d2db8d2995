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

    def times(self, plan, weights):
        said, _ = self.served.do_time({"plan": plan, "weights": weights}, None)
        return said["us"], said["sums"]

    def results(self, sets, most):
        return self.served.do_results({}, None)[1]


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """What the report says of a solution's time. model: gets the device too; late: see `Fake`."""
    file = tmp_path / "problem.py"
    file.write_text(PROBLEM)

    def judged(model, late=0.0, busy=False, problem=PROBLEM, lies=None):
        file.write_text(problem)
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
        if lies is not None:
            honest_times = judge.process.times
            judge.process.times = lambda *given: lies(*honest_times(*given))
        judge._time(judge._made(judging.Shaped("listed", judge.problem, True)))
        return report

    return judged


def honest(fake, x):
    fake.call(3000.0)
    return x * 2.0


def test_an_honest_solution_has_the_time_that_its_calls_take(timed):
    report = timed(honest)
    assert report.time_kind == "measured" and report.time["runs"] == judging.CALLS + 2
    assert report.time["us"] == pytest.approx(3000.0)
    assert report.time["wall_us"] == pytest.approx(3000.0, abs=100.0)


@pytest.mark.parametrize("us", [900.0, 5000.0])
@pytest.mark.parametrize("lie", [0.1, 0.5])
def test_events_that_lie_make_no_time(timed, us, lie):
    """By the judge's clock, or because that would not show it."""

    def slow(fake, x):
        fake.call(us)
        return x * 2.0

    try:
        report = timed(slow, lies=lambda told, sums: ([lie * us] * len(told), sums))
    except Refused as refused:
        assert refused.kind == "clocks disagree"
    else:
        assert (report.time_kind, report.time) == ("no time", {})
    report = timed(slow)
    assert report.time_kind == ("measured" if us >= judging.LEAST_US else "no time")


def test_a_call_that_is_too_short_for_the_judges_clock_has_no_time(timed):
    def short(fake, x):
        fake.call(40.0)
        return x * 2.0

    report = timed(short)
    assert (report.time_kind, report.time) == ("no time", {})
    assert report.no_time.startswith("its process tells 40.0 us a call, and a host may add 250 us")
    assert timed(short, lies=lambda us, sums: ([0.1] * len(us), sums)).time == {}


def test_work_that_events_do_not_span_is_refused(timed):
    with pytest.raises(Refused, match="by the judge's clock") as seen:
        timed(honest, late=9000.0)
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
        timed(cheat, late=9000.0)


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


def test_calls_that_only_count_are_refused(timed):
    """It computes before and after those that are timed, and gives back what it has meanwhile."""
    calls, kept = [], []

    def cheat(fake, x):
        calls.append(x)
        if judging.WARM_UP < len(calls) <= judging.WARM_UP + judging.CALLS:
            fake.call(0.5)
        else:
            kept[:] = [honest(fake, x)]
        return kept[0]

    with pytest.raises(Refused, match="in a timed call, number 0: sums over its results") as seen:
        timed(cheat)
    assert seen.value.kind == "wrong"


def test_a_result_that_is_scaled_as_its_inputs_are_is_refused(timed):
    """A function that is homogeneous, of inputs that were those of an earlier call times a factor."""
    kept = {}

    def cheat(fake, x):
        key = bool(x[0, 0] > 0)  # which of two sets it is
        if key not in kept:
            kept[key] = x.clone(), honest(fake, x)
        before, result = kept[key]
        fake.call(0.5)
        return result * (x[0, 0] / before[0, 0])

    with pytest.raises(Refused, match="in a timed call") as seen:
        timed(cheat)
    assert seen.value.kind == "wrong"


def test_sums_that_are_made_up_are_refused(timed):
    with pytest.raises(Refused, match="in a timed call, number 0: sums"):
        timed(honest, lies=lambda us, sums: (us, [[0.0]] * len(us)))
    with pytest.raises(Refused, match="in a timed call, number 0: sums"):
        timed(honest, lies=lambda us, sums: (us, [[float("nan")]] * len(us)))


def test_a_solution_that_writes_one_output_over_and_over_is_honest(timed):
    held = torch.empty(6, 40)

    def same(fake, x):
        return held.copy_(honest(fake, x))

    assert timed(same).time_kind == "measured"


def test_a_solution_that_errs_as_16_bits_do_is_honest_where_its_calls_were(timed):
    def rounded(fake, x):
        return honest(fake, x).bfloat16().float()

    with pytest.raises(Refused, match="in a timed call"):
        timed(rounded)


WHOLE = PROBLEM.replace("torch.randn(6, 40)", "torch.randint(0, 1000, (6, 40))").replace(
    "x * 2.0", "x + 1"
)


def test_inputs_that_cannot_be_scaled_are_of_many_sets(timed):
    """Of two sets the results could be kept."""
    assert timed(lambda fake, x: (fake.call(3000.0), x + 1)[1], problem=WHOLE).time["us"] > 2999.0
    kept = []

    def cheat(fake, x):
        for before, result in kept:
            if torch.equal(x, before):
                fake.call(0.5)
                return result
        if len(kept) < 2:
            kept.append((x.clone(), x + 1))
        fake.call(3000.0)
        return x + 1

    assert timed(cheat, problem=WHOLE).time["us"] > 2500.0, "two of many sets gain it little"


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
