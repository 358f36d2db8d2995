"""Recurrences in Triton: the launcher runs the launches of a step again and again, in order."""

import numpy as np
import pytest

from backends.registry import REGISTRY, target
from backends.triton.backend import Triton
from backends.triton.model.model import modelled
from backends.triton.walks import wrong
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from ir.samples.samples import RECURRENT, decisions, workload

CHIPS = ("h200", "mi300")


def emitted(nest, machine):
    return Triton(REGISTRY.manifest("triton")).emit(nest, machine)


@pytest.mark.parametrize("scheduler", [autoschedule, plain])
@pytest.mark.parametrize("name", RECURRENT)
def test_what_is_interpreted_is_what_the_reference_computes(name, scheduler, tmp_path):
    w, machine = workload(name), target("h200")
    sizes = w.checks[-1]
    nest = lower(w.spec, scheduler(w.spec, machine, sizes), machine, sizes)
    for order, checked in enumerate(w.checks):
        assert wrong(nest, machine, checked, tmp_path, order) == ""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", RECURRENT)
def test_a_step_is_compiled_once_however_many_there_are(name, chip, tmp_path):
    machine, w = target(chip), workload(name)
    nest = lower(w.spec, autoschedule(w.spec, machine, w.tune), machine, w.tune)
    source = emitted(nest, machine)
    built = Triton(REGISTRY.manifest("triton")).build(source, nest, machine, tmp_path)
    names = {launch.name for launch in nest.launches}
    assert {f.split(".")[0] for f in built.figures if f.endswith(".registers")} == names
    assert built.figures["spills"] == 0


def test_a_step_is_no_constant_of_its_kernel():
    w, machine = workload("backwards"), target("h200")
    nest = lower(w.spec, plain(w.spec, machine, w.tune), machine, w.tune)
    assert not nest.schedule.of("carry")
    text = emitted(nest, machine)
    assert '@triton.jit(do_not_specialize=["t_at"])' in text
    assert "for t_at in reversed(range(T)):" in text


def test_the_model_counts_each_step_and_reads_weights_from_the_cache_after_the_first():
    w, machine = workload("rnn"), target("h200")
    nest = lower(w.spec, autoschedule(w.spec, machine, w.tune), machine, w.tune)
    (step,) = (launch.name for launch in nest.launches if launch.repeat)

    def us(steps):
        return modelled(nest, machine, w.tune | {"T": steps}, {}).figures[f"{step}.us"]

    later = us(2) - us(1)
    assert 0 < later <= us(1)
    assert us(11) - us(1) == pytest.approx(10 * later, rel=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 17])
def test_any_number_of_steps_is_right_with_one_source(steps, tmp_path):
    w, machine = workload("gru"), target("mi300")
    nest = lower(w.spec, plain(w.spec, machine, w.checks[-1]), machine, w.checks[-1])
    sizes = dict(T=steps, B=2, I=3, H=5)
    assert random_inputs(w.spec, sizes, np.random.default_rng(0))["x"].shape[0] == steps
    assert wrong(nest, machine, sizes, tmp_path, 3) == ""


DECAYING = """
def decaying(x: f32[T, D, N], z: f32[T, D]) -> f32[T, D]:
    \"\"\"Rows added up, scaled as they were before each.\"\"\"
    a[t, d] = {fold}(x[t, d, n], n)
    s[t, d] = {onto}
    y[t, d] = z[t, d] * pad(s[t - 1, d], 0.0)
    return y
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("fold", "onto"),
    [
        ("sum", "pad(s[t - 1, d], 0.0) + a[t, d]"),
        ("max", "maximum(pad(s[t - 1, d], 0.0), a[t, d])"),
    ],
)
def test_what_is_handed_on_is_whole_in_each_step(fold, onto, chip, tmp_path):
    spec = parse_spec(DECAYING.format(fold=fold, onto=onto))
    machine, sizes = target(chip), dict(T=64, D=256, N=256)
    lines = ("carry(s)", "tile(d, size=16)", "place(d.outer, level=grid)")
    nest = lower(spec, decisions(spec, *lines), machine, sizes)
    Triton(REGISTRY.manifest("triton")).build(emitted(nest, machine), nest, machine, tmp_path)
    assert wrong(nest, machine, dict(T=9, D=32, N=100), tmp_path) == ""


ROWS = """
def rows(x: f32[T, I], w: f32[J, I]) -> f32[T, J]:
    \"\"\"A product of each step, added up.\"\"\"
    a[t, j] = sum(x[t, i] * w[j, i], i)
    s[t, j] = pad(s[t - 1, j], 0.0) * 0.5 + a[t, j]
    h[t, j] = tanh(s[t, j]) + sigmoid(pad(h[t - 1, j], 0.0))
    return h
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("lines", [("carry(s)", "carry(h)"), ("carry(h)",), ()])
def test_a_step_that_is_one_row_of_a_product_is_that_row(lines, chip, tmp_path):
    spec, machine, sizes = parse_spec(ROWS), target(chip), dict(T=9, I=40, J=33)
    lines = (*lines, "tile(j, size=16)", "place(j.outer, level=grid)", "compute(a, unit=matrix)")
    nest = lower(spec, decisions(spec, *lines), machine, sizes)
    Triton(REGISTRY.manifest("triton")).build(emitted(nest, machine), nest, machine, tmp_path)
    assert wrong(nest, machine, sizes, tmp_path) == ""


def test_a_step_of_one_row_has_its_place_in_a_wider_block(tmp_path):
    w, machine = workload("rnn"), target("h200")
    lines = (
        "tile(t, size=1)",
        "tile(b, size=1)",
        "place(t.outer, level=grid)",
        "place(b.outer, level=grid)",
        "compute(gx, unit=matrix)",
        "compute(a, unit=matrix)",
    )
    nest = lower(w.spec, decisions(w.spec, *lines), machine, w.checks[-1])
    assert wrong(nest, machine, w.checks[-1], tmp_path) == ""
