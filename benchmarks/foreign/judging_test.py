"""Tests how the judge times a solution on a simulated device: the times of calls, and the
refusals."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch

from backends.gpu.device.fake import Fake
from backends.turns import Turns
from benchmarks.foreign import judging, whole
from benchmarks.foreign.counted import Drawn
from benchmarks.foreign.judging import Options, Report, _Clocked, _Judge
from benchmarks.foreign.process import Refused
from benchmarks.foreign.served import Served
from benchmarks.foreign.stopwatch import EventClock
from benchmarks.foreign.whole import Counting
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


SERVED, REFERENCE = 30.0, 400.0  # Microseconds of making inputs, and of the reference.


class Here:
    """A solution in this process with the interface of one in its own."""

    ended = False

    def end(self):
        self.ended = True

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

    def draw(self):
        self.served.do_draw({}, None)

    def count(self, request, scales):
        table = {"seed": request.seed, "calls": request.calls, "scales": scales}
        return self.served.do_count(table, None)[0]["sums"]

    def results(self, sets, most):
        return self.served.do_results({}, None)[1]


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Returns the report on a solution's time.

    model: also receives the device.
    late: see `Fake`.
    count: answers for the solution, given the device and what an honest process does.
    skips: its process makes inputs in no time.
    """
    monkeypatch.setattr(whole, "MOST_CALLS", 200)
    file = tmp_path / "problem.py"
    file.write_text(PROBLEM)

    def judged(model, late=0.0, busy=False, problem=PROBLEM, lies=None, count=None, skips=False):
        file.write_text(problem)
        fake = Fake(late=late)
        clock = EventClock(fake.flush, fake.mark, fake.us_between, fake.wait, fake.now)

        def clocked(work):
            before = fake.now()
            value = work()
            return _Clocked(value, fake.now() - before)

        def filled(self, *given, _honest=Drawn.filled):
            if not (skips and self in judge.process.served.drawn):
                fake.spin(SERVED)
            return _honest(self, *given)

        made = Problem.made

        def with_reference(self, *given, **named):
            found = made(self, *given, **named)
            found.model.register_forward_pre_hook(lambda *_: fake.spin(reference()))
            return found

        def reference():
            """Other work on the device makes it slow."""
            return REFERENCE if judge.process is None or judge.process.ended else 9e9

        monkeypatch.setattr(Drawn, "filled", filled)
        monkeypatch.setattr(Problem, "made", with_reference)
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
        if count is not None:
            judge.process.count = partial(count, fake, judge.process.count)
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


def short(us):
    """Returns an honest solution whose calls take so long."""

    def model(fake, x):
        fake.cold = True  # No call finds its data in a cache.
        fake.call(us)
        return x * 2.0

    return model


@pytest.mark.parametrize("lie", [0.1, 0.5])
def test_events_that_lie_make_no_time_shorter(timed, lie):
    """By the judge's clock: it refuses long calls, and times short ones itself."""
    with pytest.raises(Refused, match="by the judge's clock") as seen:
        timed(short(5000.0), lies=lambda us, sums: ([lie * 5000.0] * len(us), sums))
    assert seen.value.kind == "clocks disagree"
    assert timed(short(5000.0)).time_kind == "measured"
    honest, lying = (
        timed(short(240.0), lies=lies)
        for lies in (None, lambda us, sums: ([lie * 240.0] * len(us), sums))
    )
    assert honest.time_kind == lying.time_kind == "at most"
    assert lying.time["us"] == pytest.approx(honest.time["us"]) and lying.time["us"] > 240.0


@pytest.mark.parametrize("us", [10.0, 50.0, 200.0, 900.0])
def test_a_short_call_takes_at_most_what_it_takes_with_what_serves_it(timed, us):
    report = timed(short(us))
    found = report.time
    assert (report.time_kind, found["events_us"]) == ("at most", pytest.approx(us, abs=20.0))
    assert found["us"] == pytest.approx(us + SERVED, abs=1.0) and found["within_us"] < 1.0
    assert found["nothing_us"] == pytest.approx(SERVED, abs=1.0)
    assert found["reference_us"] == pytest.approx(REFERENCE + SERVED, abs=1.0)
    assert found["speedup"] == pytest.approx((REFERENCE + SERVED) / (us + SERVED), rel=0.02)
    assert found["speedup_at_least"] == pytest.approx(REFERENCE / (us + SERVED), rel=0.02)


def test_a_solution_that_its_host_holds_up_takes_that_long(timed):
    def model(fake, x):
        fake.host += 300.0
        return short(10.0)(fake, x)

    assert timed(model).time["us"] > 300.0


@pytest.mark.parametrize("us", [10.0, 50.0, 200.0])
def test_who_serves_its_own_calls_in_no_time_gains_no_sure_speedup(timed, us):
    found = timed(short(us), skips=True).time
    assert found["us"] > us and found["speedup_at_least"] <= REFERENCE / us


def sums_like(sums):
    return [[s + 3.0 for s in each] for each in sums]


@pytest.mark.parametrize("which", ["early", "made up", "skips", "kept"])
def test_counted_calls_that_are_not_made_are_refused(timed, which):
    kept = {}

    def count(fake, honest, request, scales):
        before = fake.host, fake.queue
        sums = honest(request, scales)
        if which == "early":  # It computes after its answer, which is about other calls.
            fake.host, fake.queue = before
            told = kept.get("last", sums)
            kept["last"] = sums
            return [told[n % len(told)] for n in range(len(sums))]
        if which == "made up":
            return sums_like(sums)
        if which == "skips":  # It does not sum a tenth of long requests.
            return [s if n % 10 or len(sums) < 50 else sums[n - 1] for n, s in enumerate(sums)]
        return [sums[0]] * len(sums)

    with pytest.raises(Refused, match="in a counted call, number") as seen:
        timed(short(50.0), count=count)
    assert seen.value.kind == "wrong"


@pytest.mark.parametrize("every", [3, 10])
def test_a_solution_that_skips_some_of_many_calls_is_refused(timed, every):
    """After more calls than are timed by events."""
    calls, kept = [], []

    def cheat(fake, x):
        calls.append(x)
        if len(calls) > 150 and len(calls) % every == 0:
            return kept[0]
        kept[:] = [short(50.0)(fake, x)]
        return kept[0]

    with pytest.raises(Refused, match="in a counted call, number") as seen:
        timed(cheat)
    assert seen.value.kind == "wrong"


def test_a_solution_that_looks_ahead_sees_no_inputs_of_later_calls(timed):
    """All inputs of a batch are contiguous in memory. It computes them together at the first
    call."""
    kept = {}

    def cheat(fake, x):
        held = x._base if x._base is not None and x._base.ndim == 3 else x[None]
        at = (x.data_ptr() - held.data_ptr()) // max(1, x.numel() * x.element_size())
        if at == 0 or x._base is None:
            short(50.0)(fake, x)
            kept["all"] = held * 2.0
        return kept["all"][at]

    with pytest.raises(Refused, match="in a counted call, number") as seen:
        timed(cheat)
    assert seen.value.kind == "wrong"


def test_who_is_fast_in_requests_of_one_length_has_no_time(timed):
    seen = []

    def count(fake, honest, request, scales):
        seen.append(request.calls)
        sums = honest(request, scales)
        if request.calls != max(seen):
            fake.host += 100.0 * request.calls
        return sums

    report = timed(short(50.0), count=count)
    assert (report.time_kind, report.time) == ("no time", {})
    assert report.no_time.startswith("its requests take from ")


def test_a_reference_whose_requests_differ_makes_no_time(timed, monkeypatch):
    own = Counting.whole

    def busy(self, counts, clocked, wait):
        late = iter([0.0, 0.0] + [0.5] * 8 + [0.0] * 20)

        def slow(work):
            found = clocked(work)
            return _Clocked(found.value, found.seconds + next(late))

        return own(self, counts, slow, wait)

    monkeypatch.setattr(Counting, "whole", busy)
    report = timed(short(50.0))
    assert (report.time_kind, report.time) == ("no time", {})
    assert report.no_time.startswith("the reference's requests take from ")


@pytest.mark.parametrize("least", [0.0, 500.0])
def test_who_waits_in_short_requests_loses(timed, least):
    """A slope over lengths would be lower."""

    def count(fake, honest, request, scales):
        sums = honest(request, scales)
        fake.host += max(0.0, least + 5.0 * (whole.MOST_CALLS - request.calls))
        return sums

    assert timed(short(50.0), count=count).time["us"] > 50.0 + SERVED


def test_sums_that_are_no_numbers_make_no_time(timed):
    def count(fake, honest, request, scales):
        return [[float("nan")] for _ in honest(request, scales)]

    report = timed(short(50.0), count=count)
    assert (report.time_kind, report.time) == ("no time", {})


def test_no_requests_have_one_length_and_one_seed(timed):
    seen = []

    def count(fake, honest, request, scales):
        seen.append(request)
        return honest(request, scales)

    timed(short(50.0), count=count)
    assert len(seen) == 1 + whole.REQUESTS == len({r.seed for r in seen})
    assert len({r.calls for r in seen}) > 3


def test_work_that_events_do_not_span_is_refused(timed):
    with pytest.raises(Refused, match="by the judge's clock") as seen:
        timed(honest, late=9000.0)
    assert seen.value.kind == "clocks disagree"


def test_a_wait_before_the_timed_calls_hides_nothing(timed):
    """The time of earlier calls does not appear on the judge's clock."""
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
    """It computes before and after the timed calls, and returns stored results meanwhile."""
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
    """A homogeneous function, on inputs that are those of an earlier call times a factor."""
    kept = {}

    def cheat(fake, x):
        key = bool(x[0, 0] > 0)  # Which of two sets it is.
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
    """The results of two sets could be stored."""
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


def test_short_calls_on_integers_alone_have_no_time(timed):
    """They could not be drawn again for thousands of calls."""
    report = timed(lambda fake, x: (fake.call(50.0), x + 1)[1], problem=WHOLE)
    assert (report.time_kind, report.time) == ("no time", {})
    assert report.no_time == f"its process tells 50.0 us a call, {judging.NOT_COUNTED}"


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
