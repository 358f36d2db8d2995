"""Transposed convolutions store their phases in place; results are unchanged but for the rounding."""

import numpy as np
import pytest

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition import periods
from ir.partition.constants import divided
from ir.partition.partition import partition
from ir.partition.phases_in_place import with_phases_in_place
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise

CONVOLUTION = "c[b, q, u, v]: [2, 128, 3, 5] = sum(pad(x[b, k, u + r - 1, v + s], 0.0) * w[q, r, s, k], k, r, s)"
APART = "y[b, o, i, j]: [2, 32, 6, 10] = c[b, (i % 2 * 2 + j % 2) * 32 + o, i // 2, j // 2] + p[o]"
EPILOGUE = "t[b, o, i, j] = tanh(y[b, o, i, j])"
LINES = (CONVOLUTION, APART, EPILOGUE)
SHAPES = {"x": "2, 32, 3, 5", "w": "128, 2, 2, 32", "p": "32"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A limit at which the tensors of these tests are large."""
    monkeypatch.setattr(periods, "LEAST", 1)


def net(*lines, result="2, 32, 6, 10", returned="t", shapes=SHAPES):
    body = "".join(f"    {line}\n" for line in (*lines, f"return {returned}"))
    head = ", ".join(f"{t}: f32[{s}]" for t, s in shapes.items() if f"{t}[" in body)
    text = f'def net({head}) -> f32[{result}]:\n    """Net."""\n{body}'
    return literal(parse_spec(text), {})


def in_place(spec, fixed=("w", "p")):
    return with_phases_in_place(spec, {}, set(fixed), {"c"}, "tf32")


def alike(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


def test_the_convolution_has_the_indices_of_its_reader():
    spec = net(*LINES)
    made, aliases = in_place(spec)
    (stored,) = (e for e in made.equations if e.target == "c_in_place")
    assert "c" not in {e.target for e in made.equations}
    assert len(stored.at) == 6
    assert aliases == {"t": "t_phases"}
    given = random_inputs(spec, {}, np.random.default_rng(1))
    alike(evaluate(made, given, {})["t"], evaluate(spec, given, {})["t"])


def test_one_kernel_computes_the_convolution_and_its_epilogue():
    spec = net(*LINES)
    parts = divided(spec, {}, {"w", "p"}, rounded=("c",))
    network = partition(parts.call, {}, parts.aliases)
    assert [len(s.spec.equations) for s in network.steps] == [1, 3]
    given = random_inputs(spec, {}, np.random.default_rng(1))
    constants = evaluate(parts.before, given, {})
    every = given | {t.name: constants[t.name] for t in parts.before.outputs}
    (found,) = stepwise(network, every)
    alike(found, evaluate(spec, given, {})["t"])


def test_zeros_around_an_input_are_stored_and_others_are_not():
    made, _ = in_place(net(*LINES))
    texts = {e.target: equation_text(e).partition(" = ")[2] for e in made.equations}
    assert "pad" in texts["operand"] and "pad" not in texts["c_in_place"]
    first = "z[b, k, g, h] = maximum(x[b, k, g, h], 0.0)"
    made, _ = in_place(net(first, *(line.replace("x[", "z[") for line in LINES)))
    texts = {e.target: equation_text(e).partition(" = ")[2] for e in made.equations}
    assert "pad" not in texts["operand"] and "pad" in texts["c_in_place"]


@pytest.mark.parametrize(
    ("lines", "result", "returned"),
    [
        # no whole periods
        ((CONVOLUTION, APART.replace("6, 10", "6, 9"), EPILOGUE), "2, 32, 6, 9", "t"),
        # something else reads the convolution
        ((*LINES, "a[b, q, u, v] = c[b, q, u, v] * t[b, 0, 0, 0]"), "2, 128, 3, 5", "a"),
        # a reduction of each phase
        ((*LINES, "m[b, i, j] = max(t[b, o, i, j], o=32)"), "2, 6, 10", "m"),
    ],
)
def test_others_stay(lines, result, returned):
    spec = net(*lines, result=result, returned=returned)
    assert in_place(spec) == (spec, {})


def test_a_filter_that_changes_stays():
    spec = net(*LINES)
    assert in_place(spec, fixed=("p",)) == (spec, {})
