"""The stages: what is compared and drawn, and which times are accepted."""

import fcntl
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from backends import measure
from backends.backend import BackendError, Built, Timing
from backends.manifest import Manifest
from backends.turns import Turns
from ir.autoschedule.autoschedule import autoschedule
from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.reference import formulas
from ir.reference.reference import evaluate_storage
from machines.tiles.tiles import TILES
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.workload import WeightedShape, heaviest
from search.evaluator import shapes
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench, Stages

SCALE = '''def scale(x: f32[M], g: f32[M]) -> f32[M]:
    """Multiply."""
    y[m] = x[m] * g[m]
    return y
'''
GATHER = '''def gather(x: f32[M], i: i32[M]) -> f32[M]:
    """Look up."""
    y[m] = x[i[m]]
    return y
'''
HOISTED = '''def scaled(x: f16[M, K], g: f16[K], w: f16[K, N]) -> f16[M, N]:
    """Multiply scaled rows."""
    h[m, k] = f32(x[m, k]) * f32(g[k])
    c[m] = rsqrt(f32(x[m, 0]) ** 2 + 1.0)
    a[m, n] = sum(h[m, k] * c[m] * f32(w[k, n]), k)
    return a
'''
CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1 << 16)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)
LEAST = 3 * 64 * 4 / 1e9 * 1e6  # microseconds to move the bytes of `scale` at M=64


class Closed:
    """A backend that is always right and has the given properties. It admits no sources by
    others."""

    manifest = Manifest(
        name="tongue",
        title="For tests",
        language="text",
        extension="txt",
        object="tongue:Tongue",
        correct_by=("device",),
        time_kind=("measured",),
        dtypes=("f32",),
        toolchain="none",
        verbs=(),
    )

    def __init__(self, us=5.0, **can):
        self.us = us
        self.can = {"correct_by": "device", "time_kind": "measured", **can}

    def emit(self, nest, machine):
        return "good"

    def build(self, source, nest, machine, folder):
        return Built(folder / "kernel.txt")

    def run(self, built, nest, machine, sizes, inputs):
        return dict(evaluate_storage(nest.spec, inputs, sizes))

    def time(self, built, nest, machine, sizes, inputs):
        outputs = self.run(built, nest, machine, sizes, inputs)
        return Timing(self.us, self.can["time_kind"], outputs=outputs)

    def available(self, machine):
        return self.can


class Tongue(Closed):
    """A backend that admits sources by others."""

    def admit(self, source):
        if "outside" in source:
            raise BackendError("build", "line 1: `outside` is no part of a kernel")


def made(backend, text=SCALE, **more):
    more = {"checks": ({"M": 3},), **more}
    return Stages.of(Bench(text, CHIP, lambda: backend, more.pop("sizes", {"M": 64}), **more))


def outcome(backend, folder, text=SCALE, source=None, **changed):
    spec = parse_spec(text)
    schedule = str(autoschedule(spec, CHIP, {"M": 64}))
    asked = Candidate(spec_text(spec), schedule, "chip", "tongue", source)
    stages = replace(made(backend, spec_text(spec)), **changed)
    return stages.evaluate(asked, folder, lambda stage: None)


@pytest.mark.parametrize(
    "backend, source, why",
    [
        (Closed(), "good", "`tongue` takes no sources but its own"),
        (Tongue(), "outside", "`outside` is no part of a kernel"),
        (Tongue(), "good", ""),
    ],
    ids=["no admission", "refused", "admitted"],
)
def test_a_source_that_somebody_else_wrote_has_to_be_admitted(tmp_path, backend, source, why):
    """By `admit` itself, independent of `build`."""
    found = outcome(backend, tmp_path, source=source)
    if why:
        assert (found.stage, found.kind) == ("build", "refused") and why in found.reason
    else:
        assert isinstance(found, Evaluation)


class Overflowing(Tongue):
    """Right, except for the outputs of large inputs."""

    def run(self, built, nest, machine, sizes, inputs):
        found = super().run(built, nest, machine, sizes, inputs)
        large = max(abs(a).max() for a in inputs.values()) > 10
        return {name: a * float("inf") if large else a for name, a in found.items()}


def test_every_evaluation_draws_other_inputs_too(tmp_path):
    found = outcome(Overflowing(), tmp_path)
    assert isinstance(found, Failure)
    assert (found.stage, found.kind) == ("check", "wrong")
    assert found.reason.startswith("of the draw `large`, at M=3: output `y`")


def test_a_rewrite_does_not_hide_an_operand_that_f16_may_not_hold(tmp_path):
    """The operands that may be rounded are those of the given equations."""
    rewritten = HOISTED.replace("sum(h[m, k] * c[m] * f32(w[k, n]), k)", "a1[m, n] * c[m]")
    rewritten = rewritten.replace(
        "    a[m", "    a1[m, n] = sum(h[m, k] * f32(w[k, n]), k)\n    a[m"
    )
    schedule = "schedule(scaled)\nprecision({}, dtype=f16)\n"
    sizes = {"M": 4, "K": 4, "N": 4}
    bench = Bench(HOISTED, CHIP, Tongue, sizes, ({"M": 2, "K": 3, "N": 2},))
    stages = Stages.of(bench)

    def evaluated(text, name):
        asked = Candidate(text, schedule.format(name), "chip", "tongue")
        return stages.evaluate(asked, tmp_path, lambda stage: None)

    assert isinstance(evaluated(HOISTED, "a"), Evaluation)
    found = evaluated(spec_text(parse_spec(rewritten)), "a1")
    assert (found.stage, found.kind) == ("verify", "refused")
    assert "`a1` may not round `h[m, k]` to f16" in found.reason


def test_what_a_timed_call_gave_is_compared(tmp_path):
    class Late(Tongue):
        """Its timed calls leave out the last element."""

        def time(self, built, nest, machine, sizes, inputs):
            timing = super().time(built, nest, machine, sizes, inputs)
            y = timing.outputs["y"].copy()
            y[-1] = np.nan
            return replace(timing, outputs={"y": y})

    class Silent(Tongue):
        """Does not return the outputs of its timed calls."""

        def time(self, built, nest, machine, sizes, inputs):
            return replace(super().time(built, nest, machine, sizes, inputs), outputs={})

    for backend, words in (
        (Late(), "of a timed call, at M=64: output `y`[64] at [63] is nan"),
        (Silent(), "of a timed call, at M=64: there is no output `y`"),
    ):
        found = outcome(backend, tmp_path)
        assert (found.kind, found.stage) == ("wrong", "check")
        assert found.reason.startswith(words)


def test_no_candidate_computes_the_reference_of_a_timed_call(tmp_path, monkeypatch):
    """It takes seconds, and each candidate has a separate process."""
    monkeypatch.setattr(shapes, "AFFORDABLE_BYTES", 0)  # so that it is not compared otherwise
    monkeypatch.setattr(shapes, "AFFORDABLE_WORK", 0)
    stages = made(Tongue())
    assert {"M": 64} not in (*stages.shapes, *stages.once)
    monkeypatch.setattr(measure, "_reference", None)
    asked = Candidate(SCALE, "schedule(scale)\n", "chip", "tongue")
    assert isinstance(stages.evaluate(asked, tmp_path, lambda stage: None), Evaluation)


class Reader(Tongue):
    """Reports that every text reads its data five times; engines as given."""

    def static_figures(self, source):
        return {"passes": 5.0, "launches": 7.0} if source == "edited" else {}

    def time(self, built, nest, machine, sizes, inputs):
        timing = super().time(built, nest, machine, sizes, inputs)
        return replace(timing, figures={"busy_memory": 0.0})


def test_figures_are_of_the_nest_and_of_what_was_seen(tmp_path):
    found = outcome(Reader(), tmp_path).figures
    assert (found["passes"], found["collectives"], found["launches"]) == (1, 0, 1)
    assert found["busy_memory"] == 0.0  # not the estimate
    assert outcome(Tongue(), tmp_path).figures["busy_memory"] > 0


@pytest.mark.parametrize("backend, passes", [(Reader(), 5), (Tongue(), 1)])
def test_a_source_of_its_own_has_its_own_figures_where_the_backend_counts(
    backend, passes, tmp_path
):
    spec = parse_spec(SCALE)
    schedule = str(autoschedule(spec, CHIP, {"M": 64}))
    asked = Candidate(spec_text(spec), schedule, "chip", "tongue", "edited")
    found = made(backend, spec_text(spec)).evaluate(asked, tmp_path, lambda stage: None).figures
    assert found["passes"] == passes
    assert found["coalesced"] == 1.0  # facts that the text does not show come from the nest


@pytest.mark.parametrize("kind", ["measured", "simulated", "modelled"])
def test_a_time_below_the_bound_is_refused(tmp_path, kind):
    found = outcome(Tongue(us=0.9 * LEAST, time_kind=kind), tmp_path)
    assert isinstance(found, Failure)
    assert (found.stage, found.kind) == ("time", "wrong")
    assert "does not do all the work" in found.reason


@pytest.mark.parametrize(
    "backend, text",
    [
        (Tongue(us=0.96 * LEAST), SCALE),
        (Tongue(us=0.1 * LEAST), GATHER),
    ],
    ids=["within what a clock is off", "where it depends on the data"],
)
def test_other_times_are_believed(tmp_path, backend, text):
    assert isinstance(outcome(backend, tmp_path, text), Evaluation)


def test_what_is_said_of_the_machine_is_kept_as_text(tmp_path):
    backend = Tongue(device="A chip of ours", toolchain="tongue 1", clocks=1980, other="no")
    assert made(backend).setup.here == {
        "correct_by": "device",
        "time_kind": "measured",
        "device": "A chip of ours",
        "toolchain": "tongue 1",
        "clocks": "1980",
    }


def test_limits_are_suited_to_what_a_backend_needs():
    limits = made(Tongue(devices=["/dev/zero"], memory=None)).setup.limits
    assert (limits.devices, limits.memory) == (("/dev/zero",), None)


def test_inputs_of_the_tuning_sizes_are_drawn_when_a_time_may_need_them(monkeypatch):
    drawn = []
    draw = shapes.inputs_of
    monkeypatch.setattr(shapes, "inputs_of", lambda *a: drawn.append(a[1]) or draw(*a))
    inputs = made(Tongue(time_kind="modelled")).timed[0].inputs
    assert not drawn
    assert inputs["x"].shape == (64,) and sorted(inputs) == ["g", "x"] and len(inputs) == 2
    made(Tongue())
    assert drawn == [{"M": 64}] * 2


@pytest.mark.parametrize("arrays", [False, True])
def test_large_inputs_are_made_in_a_worker_where_runs_need_arrays(monkeypatch, arrays):
    """If kernels run on a GPU, the GPU makes the inputs."""
    for name in ("MANY", "FEW"):
        monkeypatch.setattr(formulas, name, 32)
    monkeypatch.setattr(measure, "_REFERENCES", measure.References(1 << 20))
    backend = Tongue()
    backend.leaves_inputs = lambda machine: not arrays
    stages = made(backend)
    known = measure.reference(stages.spec, {"M": 64}, stages.bench.seed)
    for inputs in (known.inputs, stages.timed[0].inputs.drawn()):
        assert isinstance(inputs, formulas.Formulas)
        assert set(inputs.held) == (set("xg") if arrays else set())


def test_no_more_candidates_are_tried_at_once_than_have_room():
    spec, room = parse_spec(SCALE), CHIP.spaces["global"].bytes
    some = [WeightedShape({"M": n}) for n in (64, room // 144)]  # of 12 bytes
    assert shapes.most_at_once(spec, CHIP, some[:1]) > 1000
    assert shapes.most_at_once(spec, CHIP, some) == 2
    assert shapes.most_at_once(spec, CHIP, [WeightedShape({"M": room})]) == 1


def test_tuning_sizes_are_compared_where_that_is_affordable():
    assert made(Tongue()).shapes == ({"M": 3}, {"M": 64})
    assert made(Tongue(correct_by="interpreter")).shapes == ({"M": 3},)
    huge = {"M": shapes.AFFORDABLE_BYTES // 8}
    assert made(Tongue(time_kind="modelled"), sizes=huge).shapes == ({"M": 3},)


def test_a_device_compares_all_sizes_where_there_are_no_others():
    """A module's kernels have the sizes of its file, however large."""
    huge = {"M": shapes.AFFORDABLE_BYTES // 8}
    (timed,) = made(Tongue(time_kind="modelled"), sizes=huge).timed
    assert shapes.compared((), (timed,), "device") == (huge,)
    assert shapes.compared((huge,), (timed,), "device") == (huge,)
    assert shapes.compared((), (timed,), "simulator") == ()


def test_turns_are_taken_where_times_are_measured():
    assert made(Tongue()).turns.file
    assert made(Tongue(time_kind="modelled")).turns == Turns()
    assert made(Tongue(own_turns=True)).turns == Turns()


@pytest.mark.parametrize("own_cores", [True, False])
def test_builds_and_checks_take_a_turn_where_they_would_disturb_a_time(turns, tmp_path, own_cores):
    free = {}

    class Watched(Tongue):
        def build(self, *args):
            free["build"] = _free(turns.file)
            return super().build(*args)

        def run(self, *args):
            free["run"] = _free(turns.file)
            return super().run(*args)

        def time(self, *args):
            free["door"] = _free(turns.door)
            return super().time(*args)

    assert outcome(Watched(own_cores=own_cores), tmp_path, turns=turns).us == 5.0
    assert free == {"build": not own_cores, "run": False, "door": False}


@pytest.fixture
def turns(tmp_path):
    for name in ("lock", "door"):
        (tmp_path / name).touch()
    return Turns(str(tmp_path / "lock"), str(tmp_path / "door"))


def test_who_is_alone_waits_for_the_others_and_they_for_him(turns):
    order = []

    def measure():
        with turns.alone():
            order.append("alone")

    with turns.together(), replace(turns).together():
        waiting = threading.Thread(target=measure)
        waiting.start()
        waiting.join(0.1)
        order.append("together")
    waiting.join()
    assert order == ["together", "alone"]


def test_nobody_comes_before_who_waits_to_be_alone(turns):
    """Otherwise others could share the device indefinitely, and no time would be measured."""
    order, begun = [], threading.Event()

    def measure():
        begun.set()
        with turns.alone():
            order.append("alone")

    def share():
        with turns.together():
            order.append("together")

    with turns.together():
        alone = threading.Thread(target=measure)
        alone.start()
        begun.wait()
        while _free(turns.door):  # until it waits
            pass
        other = threading.Thread(target=share)
        other.start()
        other.join(0.1)
        assert order == []
    alone.join()
    other.join()
    assert order == ["alone", "together"]


def _free(file):
    """Whether no process holds a lock on a file."""
    place = os.open(file, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(place)


class Counting(Tongue):
    """Takes a microsecond for each element, and records the sizes of its builds and comparisons."""

    def __init__(self, **can):
        super().__init__(**can)
        self.built, self.ran = [], []

    def build(self, source, nest, machine, folder):
        self.built.append(dict(nest.sizes)["M"])
        return super().build(source, nest, machine, folder)

    def run(self, built, nest, machine, sizes, inputs):
        self.ran.append(sizes["M"])
        return super().run(built, nest, machine, sizes, inputs)

    def time(self, built, nest, machine, sizes, inputs):
        return replace(super().time(built, nest, machine, sizes, inputs), us=float(sizes["M"]))


SMALL, LARGE, HUGE = (
    WeightedShape({"M": 64}),
    WeightedShape({"M": 4096}, 2.0),
    WeightedShape({"M": 1 << 20}),
)


def over(backend, folder, workload, schedule="schedule(scale)\n", **more):
    """The outcome of a schedule that keeps whole rows in 64 KiB of local memory."""
    spec = spec_text(parse_spec(SCALE))
    sizes = heaviest(workload)
    bench = Bench(spec, CHIP, lambda: backend, sizes, ({"M": 3},), workload=workload, **more)
    asked = Candidate(spec, schedule, "chip", "tongue")
    return Stages.of(bench).evaluate(asked, folder, lambda stage: None)


def test_a_workload_takes_the_mean_of_its_shapes_and_is_compared_at_each(tmp_path):
    backend = Counting(time_kind="simulated")
    found = over(backend, tmp_path, (SMALL, LARGE))
    assert found.us == pytest.approx((64 * 4096**2) ** (1 / 3))
    assert [(t.sizes, t.weight, t.us) for t in found.times] == [
        ({"M": 64}, 1.0, 64.0),
        ({"M": 4096}, 2.0, 4096.0),
    ]
    assert found.figures["least_bytes"] == 3 * 4 * 4096, "figures are the heaviest shape's"
    assert [e.sizes for e in found.errors] == [{"M": 3}, {"M": 64}, {"M": 4096}]
    assert backend.built == [4096]


def test_a_model_reads_the_figures_of_a_build_for_each_shape(tmp_path):
    backend = Counting(time_kind="modelled")
    over(backend, tmp_path, (SMALL, LARGE))
    assert backend.built == [4096, 64, 4096]


def test_what_does_not_fit_at_one_shape_fails_with_the_shape(tmp_path):
    found = over(Counting(), tmp_path, (SMALL, HUGE))
    assert (found.stage, found.kind, found.partly) == ("verify", "refused", None)
    assert "at M=1048576" in found.reason


def test_where_asked_it_is_evaluated_at_the_shapes_where_it_fits(tmp_path):
    backend = Counting(time_kind="simulated")
    found = over(backend, tmp_path, (SMALL, HUGE, LARGE), partly=True)
    assert isinstance(found, Failure) and "at M=1048576" in found.reason
    assert [t.sizes["M"] for t in found.partly.times] == [64, 4096]
    assert 1 << 20 not in backend.ran
    nowhere = over(Counting(), tmp_path, (HUGE,), partly=True)
    assert (nowhere.stage, nowhere.partly) == ("verify", None)


def test_several_shapes_have_as_many_times_the_time(tmp_path):
    limits = Limits(cpu=3, seconds=5.0)
    spec = spec_text(parse_spec(SCALE))
    bench = Bench(spec, CHIP, Tongue, {"M": 64}, workload=(SMALL, LARGE), limits=limits)
    found = Stages.of(bench).setup.limits
    assert (found.cpu, found.seconds) == (6, 10.0)
