"""First schedules: legal, deterministic, and better than plain ones by the estimate."""

import pytest

from ir.autoschedule.autoschedule import alternatives, autoschedule, plain
from ir.errors import KernelError
from ir.estimate.estimate import estimate
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.print import spec_text
from testing.samples.samples import KERNELS, SMALL, WITH_REGISTERS, spec_of, workload

SOME = ("attention", "embedding_bag", "map_id", "max_pool2d", "rmsnorm_matmul", "softmax")


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS], ids=lambda m: m.name)
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_of_the_library_has_a_schedule_on_any_machine(name, machine):
    w = workload(name)
    sizes = w.checks[-1]
    made = [f(w.spec, machine, sizes) for f in (autoschedule, plain)]
    times = [estimate(lower(w.spec, s, machine, sizes), machine, sizes) for s in made]
    assert 0 < times[0] <= times[1]
    for s in made:
        assert parse_schedule(str(s)) == s == canonical(s)


@pytest.mark.parametrize("name", SOME)
def test_the_same_spec_has_the_same_schedule_each_time(name):
    w = workload(name)
    assert autoschedule(w.spec, SMALL, w.checks[2]) == autoschedule(w.spec, SMALL, w.checks[2])


@pytest.mark.parametrize(
    ("name", "most"), [("softmax", 32_000), ("pairwise_dot", 50_000), ("rmsnorm_matmul", 100_000)]
)
def test_a_first_schedule_takes_bounded_work(name, most, calls):
    w = workload(name)
    spec = parse_spec(spec_text(w.spec))  # a new object, for which nothing is cached
    assert calls(lambda: autoschedule(spec, SMALL, w.checks[-1])) < most


def test_a_plain_schedule_has_a_launch_for_each_equation():
    w = workload("layer_norm")
    nest = lower(w.spec, plain(w.spec, SMALL, w.checks[0]), SMALL, w.checks[0])
    assert len(nest.launches) == len(w.spec.equations)


def test_a_plain_schedule_has_no_launch_for_what_a_backward_scan_takes_in():
    spec = parse_spec(
        'def back(x: f32[M]) -> f32[M]:\n    """Add from the end."""\n'
        "    a[m] = x[m] * 2.0\n    y[m] = cumsum(a[m], m, reverse=True)\n    return y\n"
    )
    nest = lower(spec, plain(spec, SMALL, {"M": 9}), SMALL, {"M": 9})
    assert [launch.name for launch in nest.launches] == ["back_0", "back_1"]


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS], ids=lambda m: m.name)
def test_a_part_of_a_larger_tensor_has_a_plain_launch_with_all_that_reads_it(machine):
    spec = parse_spec(
        "def joined(x: f32[M, 24], s: f32[M]) -> (f32[M, part(24, first=16, of=48)], f32[M, 24], f32[M]):\n"
        '    """Store x into a part, and use it."""\n'
        "    a[m] = s[m] + 1.0\n    y[m, n] = x[m, n] * a[m]\n    z[m, n] = relu(y[m, n])\n"
        "    t[m] = sum(y[m, n], n)\n    u[m] = t[m] * 2.0\n    return y, z, u\n"
    )
    sizes = {"M": 5}
    nest = lower(spec, plain(spec, machine, sizes), machine, sizes)
    assert [d.subject for d in plain(spec, machine, sizes).of("kernel")] == ["a", "t"]
    assert len(nest.launches) == 3


def test_rows_that_do_not_fit_are_walked_in_tiles():
    w = workload("softmax")
    sizes = {"M": 4, "K": 100_000}
    schedule = plain(w.spec, SMALL, sizes)
    assert schedule.find("tile", "k") is not None
    assert autoschedule(w.spec, SMALL, sizes).find("tile", "k") is not None


def test_where_a_maximum_is_looped_the_sums_online_along():
    w = workload("softmax")
    assert autoschedule(w.spec, SMALL, {"M": 4, "K": 100_000}).of("online")


def test_where_an_extremum_is_looped_its_place_streams_along():
    spec = spec_of("y[m] = argmin(x[m, k], k)", result="i32[M]")
    assert str(autoschedule(spec, SMALL, {"M": 4, "K": 100_000}).of("online")[0]) == (
        "online(y_top, into=y)"
    )


def test_products_run_on_the_matrix_unit_in_their_own_dtype():
    w = workload("rmsnorm_matmul")
    schedule = autoschedule(w.spec, SMALL, w.tune)
    assert schedule.find("compute", "acc").option("unit") == "matrix"
    assert schedule.find("precision", "acc").option("dtype") == "bf16"


def test_products_of_integers_run_on_the_vector_unit():
    line = "y[m] = sum(a[m, k] * b[k], k)"
    spec = spec_of(line, inputs="a: i64[M, K], b: i64[K]", result="i64[M]")
    sizes = {"M": 8, "K": 8}
    schedule = autoschedule(spec, SMALL, sizes)
    assert schedule.find("compute", "y") is None
    assert lower(spec, schedule, SMALL, sizes).launches


def test_a_launch_ends_before_what_reads_at_other_indices():
    spec = spec_of("t[m, k] = x[m, k] * 2.0", "y[m, k] = t[m, 0] + x[m, k]")
    sizes = {"M": 4, "K": 8}
    assert autoschedule(spec, SMALL, sizes).find("kernel", "t") is not None


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
def test_a_spec_that_cannot_be_lowered_is_refused_with_the_reason(scheduler):
    spec = spec_of("y[k] = cummax(x[k], k, exclusive=True)", inputs="x: i32[K]", result="i32[K]")
    with pytest.raises(KernelError, match="an exclusive cummax of integers is not lowered"):
        scheduler(spec, SMALL, {"K": 8})


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
def test_what_fits_nowhere_is_refused_with_the_sizes(scheduler):
    w = workload("map_id")
    with pytest.raises(KernelError, match="bytes of `(local|shared)`"):
        scheduler(w.spec, SMALL, {"U": 1_000_000, "B": 4})


def test_other_algorithms_than_the_first_are_starts_too():
    w = workload("attention")
    first, others = autoschedule(w.spec, SMALL, w.tune), alternatives(w.spec, SMALL, w.tune)
    assert others and first not in others and len(set(others)) == len(others)
    verbs = [{d.verb for d in s.decisions} for s in (first, *others)]
    assert any("keep" in found for found in verbs) and any("online" in found for found in verbs)
    for schedule in others:
        lower(w.spec, schedule, SMALL, w.tune)


def test_a_kernel_with_one_loop_has_no_other_algorithm():
    w = workload("matmul_bias_gelu")
    assert alternatives(w.spec, SMALL, w.checks[-1]) == ()
