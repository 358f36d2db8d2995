"""Equations between a view and its reverse are computed without views, and results are
unchanged."""

import numpy as np
import pytest

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.partition.seen_otherwise import without_views_between
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise

C = "c[n, o, i] = exp(x[n, o, i])"
V = "v[q, s]: [6, 8] = c[(q * 8 + s) // 24, (q * 8 + s) // 8 % 3, (q * 8 + s) % 8]"
M = "m[q] = sum(v[q, s], s)"
Y = "y[q, s] = v[q, s] - m[q]"
BACK = "z[a, b, d]: [2, 3, 8] = y[((a * 3 + b) * 8 + d) // 8, ((a * 3 + b) * 8 + d) % 8]"
T = "t[a, b, d]: [2, 3, 8] = z[a, b, d] * g[b]"
NORM = (C, V, M, Y, BACK, T)
VIEWS = {"v": "c", "z": "y"}


def agreed(lines, result="f32[2, 3, 8]", aliases=VIEWS):
    """The spec before and without views, and the aliases left; it and its network compute the same."""
    text = "\n".join(f"    {line}" for line in (*lines, "return t"))
    inputs = {"x": "f32[2, 3, 8]", "g": "f32[3]", "w": "f32[8, 5]"}
    used = ", ".join(f"{n}: {kind}" for n, kind in inputs.items() if f"{n}[" in text)
    spec = literal(parse_spec(f'def f({used}) -> {result}:\n    """F."""\n{text}\n'), {})
    made, left = without_views_between(spec, aliases)
    given = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, given, {})["t"]
    np.testing.assert_allclose(evaluate(made, given, {})["t"], expected, rtol=1e-12)
    network = partition(spec, {}, aliases)
    (found,) = stepwise(network, given)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    return spec, made, left, network


def test_a_norm_of_images_and_channels_as_one_dimension_has_them_as_two():
    _, made, left, network = agreed(NORM)
    assert left == {}
    assert [len(e.at) for e in made.equations] == [3, 2, 3, 3]
    assert len(network.steps) == 1


def test_what_is_reduced_may_be_several_dimensions():
    flat = "v[n, s]: [2, 24] = c[n, s // 8, s % 8]"
    back = "z[a, b, d]: [2, 3, 8] = y[a, b * 8 + d]"
    lines = (C, flat, "m[n] = max(v[n, s], s)", "y[n, s] = exp(v[n, s] - m[n])", back, T)
    _, made, left, _ = agreed(lines)
    assert left == {}
    assert len(made.equation("m").reduced) == 2


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ((C, V, "t[q] = sum(v[q, s], s)"), "f32[6]"),  # what is reduced leaves as it is seen
        ((C, V, "y[q, s] = exp(v[q, s])", BACK, T), "f32[2, 3, 8]"),  # nothing is reduced
        ((C, V, "t[q, e] = sum(v[q, s] * w[s, e], s)"), "f32[6, 5]"),  # a product reads it
        (
            (*NORM[:4], "r[q] = sum(y[q, s], s)", BACK, "t[a, b, d] = z[a, b, d] + r[a]"),
            "f32[2, 3, 8]",
        ),
    ],
)
def test_others_stay(lines, result):
    text = "\n".join(lines)
    aliases = {name: of for name, of in VIEWS.items() if f"{name}[" in text and of in text}
    aliases = {n: s for n, s in aliases.items() if any(line.startswith(f"{n}[") for line in lines)}
    before, made, left, _ = agreed(lines, result, aliases)
    assert made is before and left == aliases


def test_a_view_of_an_input_stays():
    lines = ("v[q, s]: [6, 8] = x[q // 3, q % 3, s]", M, Y, BACK, T)
    before, made, left, _ = agreed(lines, aliases={"v": "x", "z": "y"})
    assert made is before and left == {"v": "x", "z": "y"}


def test_equations_that_are_left_read_the_tensor_itself():
    _, made, _, _ = agreed(NORM)
    assert equation_text(made.equations[-1]).partition(" = ")[2] == "y_parts[a, b, d] * g[b]"
