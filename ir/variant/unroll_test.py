"""Short reductions, unrolled."""

import numpy as np
import pytest

from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import Dot, Loop
from ir.parse.schedule import parse_schedule
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.variant.variant import rewritten
from testing.samples.samples import WITH_REGISTERS, spec_of, workload

HEAD = "schedule({})\n{}\n"


def schedule(kernel, *decisions):
    return parse_schedule(HEAD.format(kernel, "\n".join(decisions)))


def test_the_terms_of_a_sum_are_written_out():
    spec = workload("conv1d").spec
    formed = rewritten(spec, schedule("conv1d", "unroll(i)"))
    text = equation_text(formed.equation("acc"))
    assert (
        text.endswith(", c)") and "w[o, c, 2]" in text and "i" not in formed.equation("acc").reduced
    )


@pytest.mark.parametrize(
    "position, taps",
    [
        ("l + i - 1", ("l - 1", "l", "l + 1")),
        ("2 * l + i + 3", ("2 * l + 3", "2 * l + 4", "2 * l + 5")),
        ("l - i", ("l", "l - 1", "l - 2")),
        ("i", ("0", "1", "2")),
        ("3 * i + l", ("l", "l + 3", "l + 6")),
    ],
)
def test_numbers_in_positions_are_added_up(position, taps):
    spec = spec_of(
        f"y[l, o] = sum(pad(x[{position}, c], 0.0) * w[i, c, o], c, i=3)",
        inputs="x: f32[L, C], w: f32[3, C, O]",
        result="f32[L, O]",
    )
    text = equation_text(rewritten(spec, schedule("f", "unroll(i)")).equation("y"))
    for tap in taps:
        assert f"x[{tap}, c]" in text


def test_a_maximum_with_no_index_left_is_pointwise():
    spec = workload("max_pool2d").spec
    formed = rewritten(spec, schedule("max_pool2d", "unroll(i)", "unroll(j)"))
    assert "maximum(" in equation_text(formed.equation("y"))


@pytest.mark.parametrize(
    "kernel, decisions",
    [
        (
            "conv1d",
            (
                "unroll(i)",
                "tile(b, size=1)",
                "tile(l, size=8)",
                "tile(c, size=4)",
                "place(b.outer, level=grid)",
                "place(l.outer, level=grid)",
                "place(c.outer, level=loop)",
                "compute(acc, unit=matrix)",
            ),
        ),
        (
            "conv1d",
            (
                "unroll(i)",
                "tile(b, size=1)",
                "place(b.outer, level=grid)",
                "pack(w, order=i_o_c)",
                "compute(acc, unit=matrix)",
            ),
        ),
        ("max_pool2d", ("unroll(i)", "unroll(j)", "tile(n, size=1)", "place(n.outer, level=grid)")),
        (
            "conv2d",
            (
                "unroll(j)",
                "tile(b, size=1)",
                "tile(p, size=1)",
                "tile(c, size=1)",
                "place(b.outer, level=grid)",
                "place(p.outer, level=grid)",
                "place(c.outer, level=loop)",
            ),
        ),
    ],
)
def test_what_is_computed_stays_the_same(kernel, decisions):
    given = workload(kernel)
    made = schedule(kernel, *decisions)
    for sizes in given.checks:
        nest = lower(given.spec, made, WITH_REGISTERS, sizes)
        inputs = random_inputs(given.spec, sizes, np.random.default_rng(1))
        got, expected = interpret(nest, inputs, sizes), evaluate(given.spec, inputs, sizes)
        for name in expected:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-9, atol=1e-12)


def test_terms_become_products_of_their_own_without_a_loop():
    given = workload("conv1d")
    made = schedule(
        "conv1d",
        "unroll(i)",
        "tile(b, size=1)",
        "place(b.outer, level=grid)",
        "compute(acc, unit=matrix)",
    )
    statements = list(
        lower(given.spec, made, WITH_REGISTERS, given.checks[1]).launches[0].statements()
    )
    assert sum(isinstance(s, Dot) for s in statements) == 3
    assert not any(isinstance(s, Loop) for s in statements)


@pytest.mark.parametrize(
    "kernel, index",
    [("softmax", "k"), ("conv1d", "c"), ("conv1d", "o"), ("cumsum", "k"), ("embedding_bag", "l")],
)
def test_only_short_known_reductions_are_written_out(kernel, index):
    with pytest.raises(KernelError, match="not reduced over a known range"):
        rewritten(workload(kernel).spec, schedule(kernel, f"unroll({index})"))


def test_an_index_that_only_the_reduction_gives_a_range_stays_where_a_tensor_keeps_it():
    spec = spec_of(
        "y[b, o, l] = sum(pad(x[b, c, l + i - 1], 0.0) * f32(w[o, c, i]), c, i)",
        inputs="x: f32[B, C, L], w: f16[O, C, 3]",
        result="f32[B, O, L]",
    )
    with pytest.raises(KernelError, match="keeps `i`, which has its range from this reduction"):
        rewritten(spec, schedule("f", "unroll(i)", "precision(y, dtype=tf32x3)"))
