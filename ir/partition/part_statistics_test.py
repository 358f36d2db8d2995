"""Statistics of concatenations come from those of their operands, and results are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition.part_statistics import with_part_statistics
from ir.partition.partition import partition
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise
from ir.spec import Reduce
from ir.verify import facts

KNOWN = "s[c] = sum(x[n, c, y], n, y)"
NEW = "a[n, o, y] = sum(x[n, c, y] * w[o, c], c)"
CAT = "t[n, k, y]: [2, 8, 7] = where(k < 5, pad(x[n, k, y], 0.0), pad(a[n, k - 5, y], 0.0))"
SUM = "u[k] = sum(t[n, k, y], n, y)"
MEAN = "m[k] = u[k] / 14"
AWAY = "v[k] = sum(square(t[n, k, y] - m[k]), n, y)"
LAST = "z[n, k, y] = (t[n, k, y] - m[k]) * rsqrt(v[k] + 0.1)"


def spec_of(
    *lines,
    inputs="x: f32[2, 5, 7], w: f32[3, 5]",
    results="(f32[5], f32[2, 8, 7])",
    returned="s, z",
):
    body = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    text = f'def f({inputs}) -> {results}:\n    """F."""\n{body}\n'
    return literal(parse_spec(text), {})


def same(spec, made):
    facts(made)
    given = random_inputs(spec, {}, np.random.default_rng(5))
    for t in spec.outputs:
        expected, found = (evaluate(one, given, {})[t.name] for one in (spec, made))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def reduced(spec, tensor):
    """How many equations reduce a tensor."""
    return sum(isinstance(e.value, Reduce) and tensor in e.sources() for e in spec.equations)


VARIANCE = ("r[c] = s[c] / 14", "q[c] = sum(square(x[n, c, y] - r[c]), n, y)")


def test_what_is_known_of_a_part_is_not_reduced_again():
    spec = spec_of(
        *(KNOWN, *VARIANCE, NEW, CAT, SUM, MEAN, AWAY, LAST),
        returned="q, z",
    )
    made = with_part_statistics(spec, {}, 0)
    same(spec, made)
    assert reduced(made, "t") == 0
    # Its product with `w`, its sum and its deviations, once each.
    assert reduced(made, "x") == 3
    assert reduced(made, "a") == 2


def test_a_concatenation_is_computed_with_what_reads_it_after_its_statistics():
    spec = spec_of(KNOWN, NEW, CAT, SUM, "z[n, k, y] = t[n, k, y] - u[k]")
    made = with_part_statistics(spec, {}, 0)
    same(spec, made)
    names = [e.target for e in made.equations]
    assert names.index("t") > names.index("u")
    network = partition(made, {})
    given = random_inputs(spec, {}, np.random.default_rng(6))
    expected = evaluate(spec, given, {})
    for name, found in zip(("s", "z"), stepwise(network, given), strict=True):
        np.testing.assert_allclose(found, expected[name], rtol=1e-12, atol=1e-12)
    assert "t" not in {name for s in network.steps for name in s.outputs}


def test_a_concatenation_that_others_read_before_stays_in_its_place():
    spec = spec_of(
        *(KNOWN, NEW, CAT, "g[n, k, y] = exp(t[n, k, y])", SUM),
        "z[n, k, y] = t[n, k, y] * g[n, k, y] - u[k]",
    )
    made = with_part_statistics(spec, {}, 0)
    same(spec, made)
    assert reduced(made, "t") == 0
    names = [e.target for e in made.equations]
    assert names.index("t") < names.index("g")


def test_a_part_may_be_a_concatenation_or_lie_there_twice():
    more = "b[n, o, y] = sum(t[n, k, y] * h[o, k], k)"
    wide = (
        "d[n, l, y]: [2, 14, 7] = where(l < 8, pad(t[n, l, y], 0.0), where(l < 11, "
        "pad(b[n, l - 8, y], 0.0), pad(b[n, l - 11, y], 0.0)))"
    )
    spec = spec_of(
        *(KNOWN, NEW, CAT, SUM, "e[k] = exp(u[k])", more, wide, "i[l] = sum(d[n, l, y], n, y)"),
        "z[n, l, y] = d[n, l, y] - i[l]",
        inputs="x: f32[2, 5, 7], w: f32[3, 5], h: f32[3, 8]",
        results="(f32[5], f32[8], f32[2, 14, 7])",
        returned="s, e, z",
    )
    made = with_part_statistics(spec, {}, 0)
    same(spec, made)
    assert [reduced(made, name) for name in ("d", "b")] == [0, 1]
    assert reduced(made, "t") == 1  # the product with `h`


OTHER_AXIS = (
    "s[c] = sum(x[n, c], n)",
    "a[n, o] = sum(x[n, c] * w[o, c], c)",
    "t[n, k]: [9, 8] = where(k < 3, pad(a[n, k], 0.0), pad(x[n, k - 3], 0.0))",
    "i[k] = sum(t[n, k], n)",
)


def test_parts_may_follow_each_other_in_the_last_dimension_the_new_one_first():
    two = dict(inputs="x: f32[9, 5], w: f32[3, 5]", results="(f32[5], f32[9, 8])")
    spec = spec_of(*OTHER_AXIS, "z[n, k] = t[n, k] - i[k]", **two)
    made = with_part_statistics(spec, {}, 0)
    same(spec, made)
    assert reduced(made, "t") == 0
    largest = "u[k] = max(t[n, k], n)"
    both = spec_of(*OTHER_AXIS, largest, "z[n, k] = t[n, k] - i[k] * u[k]", **two)
    assert with_part_statistics(both, {}, 0) is both  # no maximum is known of any part


@pytest.mark.parametrize(
    "lines",
    [
        (NEW, CAT, SUM, MEAN, AWAY, LAST),
        (KNOWN, NEW, CAT, "u[k] = sum(t[n, k, y] * k, n, y)", MEAN, AWAY, LAST),
        (KNOWN, NEW, CAT, "u[y] = sum(t[n, k, y], n, k)", "z[n, k, y] = t[n, k, y] - u[y]"),
        (KNOWN, NEW, CAT.replace("k < 5", "k < 4"), SUM, "z[n, k, y] = t[n, k, y] - u[k]"),
        (KNOWN, NEW, CAT.replace("k - 5", "k - 4"), SUM, "z[n, k, y] = t[n, k, y] - u[k]"),
        (
            KNOWN,
            NEW.replace("a[", "g["),
            "a[n, o, y] = f16(g[n, o, y])",
            CAT,
            SUM,
            "z[n, k, y] = t[n, k, y] - u[k]",
        ),
    ],
    ids=[
        "nothing is known",
        "the place is a number",
        "reduced along the parts",
        "not whole",
        "parts that overlap",
        "another dtype",
    ],
)
def test_others_stay_as_they_are(lines):
    if lines[0] != KNOWN:
        spec = spec_of(*lines, results="f32[2, 8, 7]", returned="z")
    else:
        spec = spec_of(*lines)
    assert with_part_statistics(spec, {}, 0) is spec


def test_small_tensors_stay_as_they_are():
    spec = spec_of(KNOWN, NEW, CAT, SUM, "z[n, k, y] = t[n, k, y] - u[k]")
    assert with_part_statistics(spec, {}) is spec
    assert with_part_statistics(spec, {}, 4 * 2 * 5 * 7) != spec
    assert with_part_statistics(spec, {}, 4 * 2 * 5 * 7 + 1) is spec


def test_outputs_and_aliases_are_computed_as_they_were():
    spec = spec_of(
        *(KNOWN, NEW, CAT, SUM, "z[n, k, y] = t[n, k, y] - u[k]"),
        results="(f32[5], f32[2, 8, 7], f32[8])",
        returned="s, z, u",
    )
    assert with_part_statistics(spec, {}, 0) is spec
    inner = spec_of(KNOWN, NEW, CAT, SUM, "z[n, k, y] = t[n, k, y] - u[k]")
    assert with_part_statistics(inner, {"u": "t"}, 0) is inner
