"""Both answers to a choice give the same results, and names depend on equations alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.parse.parse import parse_spec
from ir.partition.choices import ONE, Choices, flipped
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network
from testing.samples.random_specs import sizes_for, specs

ATTENTION = (
    "s[b, m, n] = sum(q[b, m, d] * k[b, n, d], d)",
    "t[b, m] = max(s[b, m, n], n)",
    "p[b, m, n] = exp(s[b, m, n] - t[b, m])",
    "l[b, m] = sum(p[b, m, n], n)",
    "o[b, m, e] = sum(p[b, m, n] * v[b, n, e], n)",
    "y[b, m, e] = o[b, m, e] / l[b, m]",
)
HEADS = "q: f32[4, 3, 5], k: f32[4, 11, 5], v: f32[4, 11, 5]"
EPILOGUE = (
    "t[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = relu(t[m, n] + b[n])",
)
GIVEN = "x: f32[6, 8], w: f32[8, 10], b: f32[10]"


def spec_of(given, result, *lines, returned="y"):
    body = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    return parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{body}\n')


def agree(spec, sizes, **options):
    """The network of a spec, after its results were compared with the spec's."""
    made = partition(spec, sizes, **options)
    given = random_inputs(spec, sizes, np.random.default_rng(1))
    expected = evaluate(spec, given, sizes)
    for t, ours in zip(spec.outputs, evaluate_network(made, given), strict=True):
        np.testing.assert_allclose(ours, expected[t.name], rtol=1e-9, atol=1e-12)
    return made


def test_an_epilogue_is_joined_or_apart():
    spec, usual = spec_of(GIVEN, "f32[6, 10]", *EPILOGUE), Choices()
    joined = agree(spec, {}, choices=usual)
    (name,) = usual.made
    assert usual.made == {ONE + joined.steps[0].spec.name: True} and len(joined.steps) == 1
    other = flipped(usual.made, name)
    apart = agree(spec, {}, choices=other)
    assert [len(step.spec.equations) for step in apart.steps] == [1, 1]
    assert other.made == {name: False}
    again = Choices(other.made)
    assert partition(spec, {}, choices=again) == apart and again.made == other.made


def test_attention_is_one_kernel_or_several_whatever_the_estimate_says():
    spec = spec_of(HEADS, "f32[4, 3, 5]", *ATTENTION)
    for usual in (1.0, 100.0):  # of the whole, where each part takes 1

        def takes(kernel, usual=usual):
            return usual if len(kernel.equations) > 4 else 1.0

        made = Choices()
        first = agree(spec, {}, takes=takes, choices=made)
        (name, *_) = (n for n, one in made.made.items() if one == (usual == 1.0))
        second = agree(spec, {}, takes=takes, choices=flipped(made.made, name))
        assert (len(first.steps) == 1) == (usual == 1.0) and len(second.steps) != len(first.steps)


def test_equal_parts_go_the_same_way():
    lines = (
        "t[m, n] = sum(x[m, k] * w[k, n], k)",
        "z[m, n] = relu(t[m, n])",
        "t_1[m, n] = sum(z[m, k] * w[k, n], k)",
        "z_1[m, n] = relu(t_1[m, n])",
    )
    given = "x: f32[8, 8], w: f32[8, 8]"
    spec, usual = spec_of(given, "f32[8, 8]", *lines, returned="z_1"), Choices()
    assert len(agree(spec, {}, choices=usual).kernels()) == 1 and len(usual.made) == 1
    (name,) = usual.made
    apart = agree(spec, {}, choices=flipped(usual.made, name))
    assert len(apart.steps) == 4 and len(apart.kernels()) == 2


def test_a_name_that_never_comes_up_is_of_no_effect():
    spec = spec_of(GIVEN, "f32[6, 10]", *EPILOGUE)
    assert partition(spec, {}, choices=Choices({"one:other": False})) == partition(spec, {})


@given(st.data(), specs())
def test_all_ways_compute_the_same(data, spec):
    sizes, usual = data.draw(sizes_for(spec)), Choices()
    agree(spec, sizes, choices=usual)
    chosen = {name: data.draw(st.booleans()) for name in usual.made}
    agree(spec, sizes, choices=Choices(chosen))


def test_what_nobody_asks_for_is_not_scheduled():
    tried = []
    spec, usual = spec_of(GIVEN, "f32[6, 10]", *EPILOGUE), Choices(asked=False)
    made = partition(spec, {}, lowers=tried.append, choices=usual)
    assert len(tried) == len(made.steps) == 1 and not usual.made


POOLED = (
    "t[b, c, i, j] = max(x[b, c, i * 2 + r, j * 2 + s], r=3, s=2)",
    "z[b, c, i, j] = relu(t[b, c, i, j])",
    "y[b, i, j, c] = z[b, c, i, j] * 2.0",
)
IMAGES = "x: f32[2, 5, 9, 8]"


def test_a_pooling_and_what_puts_its_results_into_another_order_are_apart_or_one():
    spec, usual = spec_of(IMAGES, "f32[2, 4, 4, 5]", *POOLED), Choices(asked=False)
    apart = agree(spec, {}, choices=usual)
    assert [len(step.spec.equations) for step in apart.steps] == [2, 1]
    (name,) = usual.made
    other = flipped(usual.made, name)
    one = agree(spec, {}, choices=other)
    assert len(one.steps) == 1 and usual.made == {name: False} and other.made == {name: True}


def test_both_results_of_a_pooling_are_there_where_one_lies_in_another_order():
    spec = spec_of(IMAGES, "(f32[2, 5, 4, 4], f32[2, 4, 4, 5])", *POOLED, returned="z, y")
    assert len(agree(spec, {}).steps) == 2


def test_a_pooling_whose_windows_lie_apart_in_memory_stays_with_its_epilogue():
    last = (
        "t[b, i, j, c] = max(x[b, i * 2 + r, j * 2 + s, c], r=3, s=2)",
        "y[b, c, i, j] = relu(t[b, i, j, c])",
    )
    spec = spec_of("x: f32[2, 9, 8, 5]", "f32[2, 5, 4, 4]", *last)
    assert len(agree(spec, {}).steps) == 1


SPACED = "t[b, c, i]: [2, 5, 15] = where(i % 2 == 0, x[b, c, i // 2], 0)"
REPEATED = "t[b, c, i]: [2, 5, 16] = relu(x[b, c, i // 2])"


@pytest.mark.parametrize(
    ("line", "last", "kernels"),
    [
        (SPACED, "y[b, i, c] = t[b, c, i] * 2.0", 2),
        (SPACED, "y[b, c, i] = t[b, c, i] * 2.0", 1),
        (REPEATED, "y[b, i, c] = t[b, c, i] * 2.0", 1),
    ],
    ids=["spaced", "in its order", "repeated"],
)
def test_zeros_between_elements_and_what_reorders_these_are_apart(line, last, kernels):
    size = 15 if line == SPACED else 16
    result = f"f32[2, {size}, 5]" if last.startswith("y[b, i") else f"f32[2, 5, {size}]"
    spec, usual = spec_of("x: f32[2, 5, 8]", result, line, last), Choices(asked=False)
    apart = agree(spec, {}, choices=usual)
    assert len(apart.steps) == kernels
    if kernels == 2:
        (name,) = usual.made
        assert len(agree(spec, {}, choices=flipped(usual.made, name)).steps) == 1
