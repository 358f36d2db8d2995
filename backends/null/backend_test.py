import json
from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.measure import check
from backends.registry import backend, target
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.parse import parse_workload
from ir.reference.reference import evaluate_storage
from ir.workload import LIBRARY

MACHINE = target("null")
NULL = backend("null")


def workload(kernel):
    return parse_workload((LIBRARY / f"{kernel}.kir").read_text())


def nest(kernel, scheduler=plain):
    given = workload(kernel)
    return lower(given.spec, scheduler(given.spec, MACHINE, given.tune), MACHINE, given.tune)


@pytest.mark.parametrize("kernel", sorted(p.stem for p in LIBRARY.glob("*.kir")))
def test_every_kernel_of_the_library_goes_through(kernel, tmp_path):
    made, given = nest(kernel), workload(kernel)
    source = NULL.emit(made, MACHINE)
    assert NULL.emit(nest(kernel), MACHINE) == source
    built = NULL.build(source, made, MACHINE, tmp_path)
    for sizes in given.checks:
        check(NULL, built, made, MACHINE, given.spec, sizes, seed=5)
    timing = NULL.time(built, made, MACHINE, given.tune, {})
    assert timing.us > 0
    assert sum(timing.engines.values()) == pytest.approx(1)


def test_the_text_holds_equations_decisions_and_statements():
    text = NULL.emit(nest("layer_norm"), MACHINE)
    assert text.startswith("nest of layer_norm for null at M=")
    for line in ("mean[m] = s[m] / K", "schedule(layer_norm)", "place(m.outer, level=grid)"):
        assert line in text
    assert " = load x[" in text
    assert " store y[" in text
    assert "object at 0x" not in text


def test_a_text_that_is_no_nest_is_not_built(tmp_path):
    with pytest.raises(BackendError, match="line 1: a nest starts with") as caught:
        NULL.build("int main", nest("softmax"), MACHINE, tmp_path)
    assert caught.value.stage == "build"
    assert list(tmp_path.iterdir()) == []


def test_it_runs_the_spec_and_not_the_kernel():
    made = nest("cumsum")
    empty = replace(made, launches=())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = NULL.run(None, empty, MACHINE, {"M": 2, "K": 3}, {"x": x})
    assert np.array_equal(got["y"], np.cumsum(x, axis=1))
    expected = evaluate_storage(made.spec, {"x": x}, {"M": 2, "K": 3})["y"]
    assert got["y"].dtype == expected.dtype


def test_another_schedule_takes_another_time():
    sizes = workload("layer_norm").tune
    first = NULL.time(None, nest("layer_norm"), MACHINE, sizes, {})
    other = NULL.time(None, nest("layer_norm", autoschedule), MACHINE, sizes, {})
    assert first.us != other.us


def test_more_work_takes_longer():
    made, sizes = nest("layer_norm"), {"M": 256, "K": 256}
    small = NULL.time(None, made, MACHINE, sizes, {}).us
    assert NULL.time(None, made, MACHINE, {"M": 512, "K": 256}, {}).us > small
    assert NULL.time(None, made, MACHINE, {"M": 256, "K": 512}, {}).us > small


def test_the_timeline_has_a_bar_for_each_part(tmp_path):
    made, trace = nest("cumsum"), tmp_path / "trace.json"
    timing = NULL.profile(None, made, MACHINE, {"M": 8, "K": 8}, {}, trace)
    events = json.loads(trace.read_text())["traceEvents"]
    assert [e["name"] for e in events] == list(timing.engines)
    assert sum(e["dur"] for e in events) == pytest.approx(timing.us)


def test_a_candidate_takes_little_work_whatever_it_is_timed_at(tmp_path, calls):
    """Tests of the search evaluate thousands of candidates with it."""
    made, given = nest("rmsnorm_matmul"), workload("rmsnorm_matmul")
    check(NULL, None, made, MACHINE, given.spec, given.checks[0], seed=5)  # caches the reference

    def evaluated(sizes):
        built = NULL.build(NULL.emit(made, MACHINE), made, MACHINE, tmp_path)
        check(NULL, built, made, MACHINE, given.spec, given.checks[0], seed=5)
        NULL.time(built, made, MACHINE, sizes, {})

    cost = calls(lambda: evaluated(given.tune))
    large = {name: 16 * n for name, n in given.tune.items()}
    assert calls(lambda: evaluated(large)) < 1.1 * cost < 30_000
