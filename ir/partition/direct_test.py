"""Batched contractions read and write through views without permuted copies; results are
unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.contraction import contraction
from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network

GIVEN = "x: f32[2, 5, 3, 4], w: f32[6, 5, 7]"
COPIED = (
    "t[b, h, p, l]: [2, 3, 4, 5] = x[b, l, h, p]",
    "q[i, r, s]: [6, 4, 5] = t[i // 3, i % 3, r, s]",
    "c[i, r, n] = sum(q[i, r, s] * w[i, s, n], s)",
)
SHOWN = "v[d, e, f, g]: [2, 3, 4, 7] = c[d * 3 + e, f, g]"
ALIASES = {"q": "t", "v": "c"}


def network_of(result, *lines, given=GIVEN, aliases=ALIASES):
    """The network of a spec that returns `y`, after its results were compared with the spec's."""
    body = "\n".join(f"    {line}" for line in (*lines, "return y"))
    spec = parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{body}\n')
    made = partition(spec, {}, aliases)
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, inputs, {})
    for t, ours in zip(spec.outputs, evaluate_network(made, inputs), strict=True):
        np.testing.assert_allclose(ours, expected[t.name], rtol=1e-9, atol=1e-12)
    return made


def test_bags_beside_a_product_stay_as_they_are():
    bags = "u[m, n] = sum(table[idx[k], n], k=range(offsets[m], offsets[m + 1]))"
    made = network_of(
        "f32[6, 4, 7]",
        bags,
        *COPIED,
        "y[i, r, n] = c[i, r, n] + u[r, n]",
        given=f"{GIVEN}, table: f32[9, 7], idx: i32[12], offsets: i32[5]",
        aliases={"q": "t"},
    )
    assert {"table", "idx", "offsets"} <= {name for step in made.steps for name in step.inputs}


def test_no_copy_is_made_of_what_a_product_reads():
    made = network_of("f32[6, 4, 7]", *COPIED[:2], COPIED[2].replace("c[", "y["))
    (step,) = made.steps
    assert step.inputs == ("x", "w") and len(step.spec.equations) == 1


@pytest.mark.parametrize(
    ("result", "last"),
    [
        ("f32[2, 4, 3, 7]", "y[a, j, k, o] = v[a, k, j, o]"),  # another order
        ("f32[2, 4, 3]", "y[a, j, k] = v[a, k, j, 2]"),  # a part
        ("f32[2, 4, 3, 7]", "y[a, j, k, o] = relu(v[a, k, j, o]) + x[a, 1, k, j]"),  # an epilogue
    ],
)
def test_a_product_is_computed_as_its_reader_takes_it(result, last):
    made = network_of(result, *COPIED, SHOWN, last)
    (step,) = made.steps
    assert len(step.spec.equations) == 1 + ("relu" in last)


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        # what is read several times is computed once
        ("f32[2, 3, 4, 7]", ("y[a, j, k, o] = v[a, j, k, o] + v[a, j, 3 - k, o]",)),
        ("f32[2, 2, 3, 4, 7]", ("y[u, a, j, k, o]: [2, 2, 3, 4, 7] = v[a, j, k, o]",)),
        # an index that is summed stays one
        ("f32[6, 7]", ("z[i, o] = sum(w[i, s, o] * 2.0, s)", "y[i, o] = z[i, o] + v[1, 2, 3, o]")),
    ],
)
def test_others_stay_right(result, lines):
    network_of(result, *COPIED, SHOWN, *lines)


def test_sums_rows_and_columns_stay_whole():
    made = network_of(
        "f32[2, 4, 7]",
        "t[b, p, h, l]: [2, 4, 3, 5] = x[b, l, h, p]",
        "q[b, r, s]: [2, 4, 15] = t[b, r, s // 5, s % 5]",
        "y[b, r, n] = sum(q[b, r, s] * w[b, s, n], s)",
        given="x: f32[2, 5, 3, 4], w: f32[2, 15, 7]",
        aliases={"q": "t"},
    )
    assert [len(e.reduced) for s in made.steps for e in s.spec.equations if e.reduced] == [1]
    assert len(made.steps) == 2


def test_a_product_is_stored_as_its_reader_stores():
    made = network_of(
        "f32[2, 4, 3]",
        "c[b, i, j] = sum(x[b, s, i] * w[b, s, j], s)",
        "y[b, j, i] = c[b, i, j] + 1.0",
        given="x: f32[2, 5, 3], w: f32[2, 5, 4]",
        aliases={},
    )
    (step,) = made.steps
    product, then = step.spec.equations
    found = contraction(product)
    assert found and product.indices == then.indices and product.indices[-1] in found.columns
