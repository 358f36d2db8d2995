"""A compiled network runs step by step on arrays, and builds each kernel once."""

import numpy as np
import pytest

from backends.backend import BackendError
from backends.compiled import Kernels, Known, built, compiled, networks
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.parse.parse import parse_schedule, parse_spec
from ir.partition.choices import CHANNELS_LAST, FLAT_CHAINS, Choices
from ir.partition.partition import partition
from ir.reference.reference import evaluate
from ir.sizes import shape

TWICE = parse_spec('''
def twice(x: f32[8, 16], w: f32[16, 16]) -> f32[8, 4, 4]:
    """The same product two times, under another shape."""
    a1[m, n] = sum(x[m, k] * w[k, n], k)
    a2[m, n] = sum(a1[m, k] * w[k, n], k)
    y[m, i, j] = a2[m, i * 4 + j]
    return y
''')
ALIASES = {"y": "a2"}


@pytest.fixture(scope="module")
def machine():
    return target("npu")


def test_equal_steps_share_a_kernel_and_views_none(machine, tmp_path):
    seen = []
    run = compiled(
        TWICE,
        {},
        ALIASES,
        machine,
        backend_for(machine),
        tmp_path,
        lambda *told: seen.append(told[:2]),
    )
    assert len(run.network.steps) == 2 and len(run.kernels) == 1 and seen == [(0, 1)]
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((8, 16), (16, 16)))
    (found,) = run({"x": x, "w": w})
    np.testing.assert_allclose(found, (x @ w @ w).reshape(8, 4, 4), rtol=1e-4, atol=1e-4)


def test_a_kernel_is_scheduled_once(machine):
    kernels = Kernels(machine, backend_for(machine))
    (spec,) = partition(TWICE, {}, ALIASES, kernels.emit).kernels()
    assert kernels.emit(spec) is kernels.emit(spec)
    assert list(kernels.emitted) == [spec]


def test_what_no_kernel_can_compute_is_told(machine, tmp_path):
    text = 'def q(x: f64[8]) -> f64[8]:\n    """q"""\n    y[i] = x[i] + 1.0\n    return y\n'
    spec = parse_spec(text)
    with pytest.raises((KernelError, BackendError)):
        compiled(spec, {}, {}, machine, backend_for(machine), tmp_path)


def test_a_source_that_does_not_build_is_told(machine, tmp_path):
    kernels = Kernels(machine, backend_for(machine))
    network = partition(TWICE, {}, ALIASES, kernels.emit)
    (spec,) = network.kernels()
    kernels.emitted[spec] = kernels.emitted[spec][0], "this is no kernel"
    with pytest.raises(BackendError):
        built(network, kernels, tmp_path)


def unreadable(spec):
    raise KernelError("it cannot be read")


@pytest.mark.parametrize(
    "knows",
    [
        unreadable,
        lambda spec: Known(parse_schedule(f"schedule({spec.name})\ntile(none, size=4)\n")),
        lambda spec: Known(parse_schedule(f"schedule({spec.name})\n"), source="this is no kernel"),
    ],
    ids=["unreadable", "not legal", "no build"],
)
def test_what_cannot_be_made_as_before_has_its_seed_schedule_where_somebody_is_told(
    machine, tmp_path, knows
):
    backend, told = backend_for(machine), []
    with pytest.raises((KernelError, BackendError)):
        compiled(TWICE, {}, ALIASES, machine, backend, tmp_path / "no", knows=knows)
    seeded = Kernels(machine, backend)
    kernels = Kernels(machine, backend, knows=knows, told=lambda *one: told.append(one))
    run = built(partition(TWICE, {}, ALIASES, kernels.emit), kernels, tmp_path / "yes")
    ((spec, kernel),) = run.kernels.items()
    assert [one for one, _ in told] == [spec] and kernel.source == seeded.emit(spec)[1]


def test_schedules_can_be_judged_by_the_backends_guess():
    gpu = target("h200")
    asked = []

    class Guessing:
        """The backend, which notes what it is asked."""

        def __getattr__(self, name):
            return getattr(backend_for(gpu), name)

        def guess(self, nest, machine, sizes):
            asked.append(nest)
            return backend_for(gpu).guess(nest, machine, sizes)

    spec = partition(TWICE, {}, ALIASES).kernels()[0]
    Kernels(gpu, Guessing()).emit(spec)
    assert not asked
    Kernels(gpu, Guessing(), guessed=True).emit(spec)
    assert asked


LARGE = parse_spec('''
def p(x: f32[256, 256], w: f32[256, 256]) -> f32[256, 256]:
    """p"""
    a1[m, n] = sum(x[m, k] * w[k, n], k)
    return a1
''')


def precision_of(kernels):
    (spec,) = partition(LARGE, {}).kernels()
    nest, _ = kernels.emit(spec)
    (made,) = [d for d in nest.schedule.decisions if d.verb == "precision"]
    return made.option("dtype"), nest.schedule, kernels.rounds(spec)


def test_sums_that_may_be_rounded_are_and_others_are_not():
    gpu = target("h200")
    for rounded, dtype in (((), "tf32x3"), (("a",), "tf32"), (("b",), "tf32x3")):
        assert precision_of(Kernels(gpu, backend_for(gpu), rounded))[0] == dtype


def test_a_record_that_rounds_is_for_those_who_let_it():
    gpu = target("h200")
    backend = backend_for(gpu)
    _, schedule, sums = precision_of(Kernels(gpu, backend, ("a",)))
    known = Known(schedule, rounded=sums)
    for rounded, dtype in (((), "tf32x3"), (("a",), "tf32")):
        kernels = Kernels(gpu, backend, rounded, knows=lambda _: known)
        found = precision_of(kernels)
        assert found[0] == dtype and (found[1] is schedule) == bool(rounded)


STACK = '''
def f(x: D[2, 3, 9, 7], w: D[4, 3, 3, 3], u: D[8, 4, 3, 3]) -> D[2, 8, 9, 7]:
    """Two convolutions."""
    a[b, o, i, j]: [2, 4, 9, 7] = sum(pad(x[b, c, i + r - 1, j + t - 1], 0.0) * w[o, c, r, t], c, r, t)
    y[b, l, i, j]: [2, 8, 9, 7] = sum(pad(a[b, o, i + r - 1, j + t - 1], 0.0) * u[l, o, r, t], o, r, t)
    return y
'''


@pytest.mark.parametrize(("dtype", "last"), [("f32", False), ("bf16", True)])
def test_convolutions_of_16_bits_have_channels_last(dtype, last):
    machine = target("h200")
    kernels = Kernels(machine, backend_for(machine))
    choices, spec = Choices(asked=False), parse_spec(STACK.replace("D[", f"{dtype}["))
    call, before = networks(spec, {}, {}, kernels, fixed={"w", "u"}, choices=choices)
    assert choices.made.get(CHANNELS_LAST, False) == last
    assert (before is not None) == last and len(call.steps) == 2


TWO = parse_spec('''
def two(x: f32[2, 16, 6, 6], w: f32[32, 16, 3, 3], v: f32[16, 32, 1, 1]) -> f32[2, 16, 6, 6]:
    """Two convolutions."""
    convolution[b, o, i, j] = sum(pad(x[b, c, i + r - 1, j + s - 1], 0.0) * w[o, c, r, s], c, r, s)
    y[b, o, i, j] = maximum(convolution[b, o, i, j], 0.0)
    convolution_1[b, q, i, j] = sum(y[b, d, i, j] * v[q, d, 0, 0], d)
    z[b, q, i, j] = convolution_1[b, q, i, j] + 1.0
    return z
''')


def require_near(run, spec):
    """Fails where what was built is further from the equations than TF32 explains."""
    rng = np.random.default_rng(0)
    inputs = {t.name: rng.standard_normal(shape(t, {})).astype(np.float32) for t in spec.inputs}
    (found,) = run(inputs)
    (expected,) = evaluate(spec, inputs, {}).values()
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * scale)


def test_operands_of_convolutions_are_rounded_where_they_are_computed(tmp_path):
    machine = target("h200")
    kernels = Kernels(machine, backend_for(machine), ("convolution",))
    call, before = networks(TWO, {}, {}, kernels, fixed=("w", "v"))
    assert [t.dtype for t in call.steps[-1].spec.inputs] == ["tf32", "tf32"]
    run = built(call, kernels, tmp_path, constants=before)
    require_near(run, TWO)


CHAIN = parse_spec('''
def chain(x: f32[2, 3, 32, 32], w: f32[32, 3, 3, 3], v: f32[32, 32, 3, 3]) -> f32[2, 32, 16, 16]:
    """Two convolutions and a pooling."""
    convolution[b, o, i, j]: [2, 32, 32, 32] = sum(pad(x[b, c, i + r - 1, j + s - 1], 0.0) * w[o, c, r, s], c, r, s)
    y[b, o, i, j] = relu(convolution[b, o, i, j])
    convolution_1[b, q, i, j]: [2, 32, 32, 32] = sum(pad(y[b, d, i + r - 1, j + s - 1], 0.0) * v[q, d, r, s], d, r, s)
    z[b, q, i, j] = relu(convolution_1[b, q, i, j])
    p[b, q, k, l]: [2, 32, 16, 16] = max(z[b, q, k * 2 + m, l * 2 + n], m=2, n=2)
    return p
''')


@pytest.mark.parametrize(
    ("name", "given", "flat"),
    [("h200", {}, True), ("h200", {FLAT_CHAINS: False}, False), ("a100", {}, False)],
)
def test_chains_of_convolutions_are_flat_where_an_engine_copies_them(name, given, flat, tmp_path):
    machine = target(name)
    kernels = Kernels(machine, backend_for(machine), ("convolution",))
    choices = Choices(given, asked=False)
    call, before = networks(CHAIN, {}, {}, kernels, fixed=("w", "v"), choices=choices)
    assert choices.made[FLAT_CHAINS] == flat
    read = [shape(t, {}) for t in call.steps[1].spec.inputs]
    assert read[0] == ((2 * 33 * 33, 32) if flat else (2, 32, 32, 32))
    run = built(call, kernels, tmp_path, constants=before)
    require_near(run, CHAIN)
