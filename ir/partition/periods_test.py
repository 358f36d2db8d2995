"""Interleaved phases become an index of their own, and results are unchanged."""

import numpy as np
import pytest

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition import periods as module
from ir.partition.partition import partition
from ir.partition.periods import with_periods_apart
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise

INPUTS = {"c": "f32[2, 6, 5, 4]", "b": "f32[3]", "z": "f32[2, 3, 5, 8]", "s": "f32[8]"}
WHOLE = "y[n, o, i, j]: [2, 3, 5, 8] = c[n, j % 2 * 3 + o, i, j // 2] + b[o]"
SHIFTED = "y[n, o, i, j]: [2, 3, 5, 6] = c[n, (j + 1) % 2 * 3 + o, i, (j + 1) // 2] + b[o]"
ODD = "y[n, o, i, j]: [2, 3, 5, 7] = c[n, j % 2 * 3 + o, i, j // 2] + b[o]"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A limit at which the tensors of these tests are large."""
    monkeypatch.setattr(module, "LEAST", 1)


def agreed(*lines, result, returned="t"):
    """The spec before and with phases apart; it and its network compute the same."""
    text = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    used = (f"{name}: {kind}" for name, kind in INPUTS.items() if f"{name}[" in text)
    spec = literal(parse_spec(f'def f({", ".join(used)}) -> {result}:\n    """F."""\n{text}\n'), {})
    made, aliases = with_periods_apart(spec, {})
    given = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, given, {})
    network = partition(spec, {})
    for t, found in zip(spec.outputs, stepwise(network, given), strict=True):
        np.testing.assert_allclose(evaluate(made, given, {})[t.name], expected[t.name], rtol=1e-12)
        np.testing.assert_allclose(found, expected[t.name], rtol=1e-12)
    assert set(aliases) <= {e.target for e in made.equations}
    return spec, made, network


def texts(spec):
    return [equation_text(e).partition(" = ")[2] for e in spec.equations]


@pytest.mark.parametrize(("first", "width"), [(WHOLE, 8), (SHIFTED, 6)])
def test_what_follows_is_computed_with_phases_too(first, width):
    lines = (first, "t[n, o, i, j] = tanh(y[n, o, i, j]) * s[j] + f32(j)")
    _, made, network = agreed(*lines, result=f"f32[2, 3, 5, {width}]")
    (step,) = network.steps
    assert [len(t.shape) for t in step.spec.outputs] == [5]
    assert made.equations[-1].value.tensor == "t_phases"


def test_a_place_and_a_phase_are_read_as_they_are():
    lines = (WHOLE, "t[n, o, i, j] = y[n, o, i, j] + z[n, o, i, j]")
    _, made, _ = agreed(*lines, result="f32[2, 3, 5, 8]")
    assert texts(made)[1] == "c_phases[n, y_phases_j_phase, o, i, y_phases_j] + b[o]"
    assert texts(made)[2].endswith("z[n, o, i, t_phases_j * 2 + t_phases_j_phase]")


def test_phases_stay_where_channels_are_reduced():
    lines = (
        WHOLE,
        "m[n, i, j] = max(y[n, o, i, j], o=3)",
        "t[n, o, i, j] = y[n, o, i, j] - m[n, i, j]",
    )
    before, made, network = agreed(*lines, result="f32[2, 3, 5, 8]")
    assert made == before
    assert len(network.steps) == 1


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ((ODD, "t[n, o, i, j] = tanh(y[n, o, i, j])"), "f32[2, 3, 5, 7]"),  # no whole periods
        ((WHOLE, "t[n, o, i] = sum(y[n, o, i, j], j=8)"), "f32[2, 3, 5]"),
        ((WHOLE, "t[n, o, j] = sum(y[n, o, i, 7 - j], i=5)"), "f32[2, 3, 8]"),
    ],
)
def test_others_stay(lines, result):
    before, made, _ = agreed(*lines, result=result)
    assert made == before


def test_so_do_small_tensors(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 1 << 20)
    before, made, _ = agreed(WHOLE, "t[n, o, i, j] = tanh(y[n, o, i, j])", result="f32[2, 3, 5, 8]")
    assert made == before


def test_what_reads_other_places_finds_them_in_memory():
    lines = (WHOLE, "t[n, o, i, j] = y[n, o, i, 7 - j] + 1.0")
    _, _, network = agreed(*lines, result="f32[2, 3, 5, 8]")
    assert len(network.steps) == 2
