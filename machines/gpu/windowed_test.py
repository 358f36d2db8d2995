"""What is tried for convolutions: every choice computes what the convolution does."""

import numpy as np
import pytest

from ir.autoschedule.seeds import launch_ends
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.schedule import Schedule
from ir.sizes import bind
from ir.variant.variant import formulate
from machines.gpu.windowed import filters_apart, of_rounded, rounded, windowed
from testing.samples.samples import WITH_TF32, lowered, spec_of

PLAIN = spec_of(
    "y[b, o, p, q] = sum(x[b, c, 2 * p + i, q + 2 * j] * w[o, c, i, j], c, i, j)",
    inputs="x: f32[2, 17, 9, 10], w: f32[5, 17, 3, 2]",
    result="f32[2, 5, 4, 8]",
)
MIRRORED = spec_of(
    "a[b, o, p, q]: [2, 5, 6, 9] = "
    "sum(pad(x[b, c, p + i - 2, q + j - 1], 0.0) * w[c, o, 2 - i, 1 - j], c=17, i=3, j=2)",
    "y[b, o, p, q] = a[b, o, p, q] + z[o]",
    inputs="x: f32[2, 17, 4, 8], w: f32[17, 5, 3, 2], z: f32[5]",
    result="f32[2, 5, 6, 9]",
)
FEW = spec_of(
    "y[b, o, p, q]: [2, 5, 4, 8] = "
    "sum(pad(x[b, c, 2 * p + i - 1, q + j - 1], 0.0) * w[o, c, i, j], c=3, i=3, j=2)",
    inputs="x: f32[2, 3, 8, 8], w: f32[5, 3, 3, 2]",
    result="f32[2, 5, 4, 8]",
)
LONG = spec_of(
    "y[b, o, p]: [2, 5, 20] = sum(pad(x[b, c, p + 3 * i - 1], 0.0) * w[o, c, i], c=16, i=3)",
    inputs="x: f32[2, 16, 24], w: f32[5, 16, 3]",
    result="f32[2, 5, 20]",
)
SEPARATED = spec_of(
    "y[b, o, p, r]: [2, 5, 9, 2] = "
    "sum(pad(x[b, c, p + i - 1], 0.0) * pad(w[c, o, (1 - i) * 2 + r], 0.0), c=17, i=2)",
    inputs="x: f32[2, 17, 9], w: f32[17, 5, 3]",
    result="f32[2, 5, 9, 2]",
)
GROUPED = spec_of(
    "y[b, g, o, p]: [2, 2, 3, 20] = "
    "sum(pad(x[b, g * 17 + c, p + i - 1], 0.0) * w[g * 3 + o, c, i], c=17, i=3)",
    inputs="x: f32[2, 34, 20], w: f32[6, 17, 3]",
    result="f32[2, 2, 3, 20]",
)
DEEP = spec_of(
    "y[b, o, p, r]: [2, 65, 4, 2] = "
    "sum(pad(x[b, c, p + i - 1], 0.0) * pad(w[c, o, (1 - i) * 2 + r], 0.0), c=17, i=2)",
    inputs="x: f32[2, 17, 4], w: f32[17, 65, 3]",
    result="f32[2, 65, 4, 2]",
)
SPECS = {
    "deep": DEEP,
    "separated": SEPARATED,
    "plain": PLAIN,
    "mirrored": MIRRORED,
    "few": FEW,
    "long": LONG,
    "grouped": GROUPED,
}
VERBS = ("pack", "flatten")
WORDS = {
    "separated": {"pack(w, order=i_o_c)", "pack(x, order=b_p_c)"},
    "deep": {"pack(w, order=i_o_c)", "pack(x, order=b_p_c)"},  # of which x is the smaller
    "plain": {"pack(w, order=i_j_o_c)", "pack(x, order=b_p_q_c)", "flatten(p, inner=q)"},
    "mirrored": {"pack(w, order=i_j_o_c)", "pack(x, order=b_p_q_c)", "flatten(p, inner=q)"},
    "few": {
        "flatten(i, inner=j)",
        "flatten(c, inner=ij)",
        "flatten(p, inner=q)",
        "pack(w, order=i_j_o_c)",
        "pack(x, order=b_p_q_c)",
    },
    "long": {"pack(w, order=i_o_c)", "pack(x, order=b_p_c)"},
    "grouped": {"pack(w, order=i_g_c)"},
}


@pytest.mark.parametrize("name", SPECS)
def test_weights_are_packed_channels_last_and_positions_one(name):
    found = windowed(SPECS[name], bind(SPECS[name], {}))
    assert {str(d) for made in found for d in made if d.verb in VERBS} == WORDS[name]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("name", "n"), [(s, n) for s in SPECS for n in range(len(windowed(SPECS[s], {})))]
)
def test_every_choice_computes_the_convolution(name, n):
    spec = SPECS[name]
    made = windowed(spec, {})[n]
    target = spec.equations[0].target
    lines = (
        *map(str, (*launch_ends(spec), *made)),
        f"compute({target}, unit=matrix)",
        f"precision({target}, dtype=tf32)",
    )
    nest = lowered(spec, *lines, sizes={}, machine=WITH_TF32)
    inputs = random_inputs(spec, {}, np.random.default_rng(n))
    exact = evaluate(spec, inputs, {})["y"]
    np.testing.assert_allclose(
        interpret(nest, inputs, {}, rounded=False)["y"], exact, rtol=1e-10, atol=1e-10
    )


EIGHT = spec_of(
    "y[b, o, p, q] = sum(x[b, c, p + i, q + j] * w[o, c, i, j], c, i, j)",
    inputs="x: f32[2, 8, 9, 10], w: f32[16, 8, 3, 3]",
    result="f32[2, 16, 7, 8]",
)
APART = SPECS | {"eight": EIGHT}
MERGED = {
    "kernel(y_bl)",
    "flatten(i, inner=j)",
    "flatten(c, inner=ij)",
    "flatten(j, inner=c)",
    "flatten(i, inner=jc)",
    "flatten(p, inner=q)",
    "pack(x, order=b_p_q_c)",
    "pack(y_ah, order=b_p_q_i_j_c)",
    "pack(y_al, order=b_p_q_i_j_c)",
    "pack(y_bh, order=i_j_o_c)",
    "pack(y_bl, order=i_j_o_c)",
    "pack(y_bh, order=o_i_j_c)",
    "pack(y_bl, order=o_i_j_c)",
}


def test_few_channels_and_taps_are_one_with_channels_last_and_filters_apart():
    found = filters_apart(EIGHT, bind(EIGHT, {}))
    said = {str(d) for one in found for d in (*one.made, *one.parts)}
    assert {line for line in said if line.split("(")[0] not in ("tile", "place")} == MERGED


@pytest.mark.parametrize(
    ("name", "n"), [(s, n) for s in APART for n in range(len(filters_apart(APART[s], {})))]
)
def test_every_choice_with_filters_apart_computes_it_in_three_products(name, n):
    spec = APART[name]
    one, target = filters_apart(spec, {})[n], spec.equations[0].target
    lines = (
        *map(str, (*launch_ends(formulate(spec, Schedule(spec.name, one.made))), *one.made)),
        *map(str, one.parts),
        f"compute({target}, unit=matrix)",
        f"precision({target}, dtype=tf32x3)",
    )
    nest = lowered(spec, *dict.fromkeys(lines), sizes={}, machine=WITH_TF32)
    inputs = random_inputs(spec, {}, np.random.default_rng(n))
    exact = evaluate(spec, inputs, {})["y"]
    off = np.abs(interpret(nest, inputs, {}, rounded=True)["y"] - exact).max()
    assert off < 1e-5


POINTWISE = spec_of(
    "y[b, o, p, q] = sum(x[b, c, p, q] * w[o, c], c)",
    inputs="x: f32[2, 17, 4, 8], w: f32[5, 17]",
    result="f32[2, 5, 4, 8]",
)
COPIES = {
    "pointwise": {
        "pack(w, order=o_c, dtype=tf32)",
        "pack(x, order=b_p_q_c, dtype=tf32)",
        "flatten(p, inner=q)",
    },
    "separated": {"pack(w, order=i_o_c, dtype=tf32)", "pack(x, order=b_p_c, dtype=tf32)"},
    "plain": {
        "pack(w, order=i_j_o_c, dtype=tf32)",
        "pack(x, order=b_p_q_c, dtype=tf32)",
        "flatten(p, inner=q)",
    },
    "mirrored": {
        "pack(w, order=i_j_o_c, dtype=tf32)",
        "pack(x, order=b_p_q_c, dtype=tf32)",
        "flatten(p, inner=q)",
    },
    "few": set(),
    "long": {"pack(w, order=i_o_c, dtype=tf32)", "pack(x, order=b_p_c, dtype=tf32)"},
}


def copies(name):
    """The spec of a name, its sum, and the choices with rounded copies."""
    spec = {**SPECS, "pointwise": POINTWISE}[name]
    target = spec.equations[0].target
    return spec, target, rounded(spec, {}, (target,))


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_what_may_be_rounded_are_rounded(name):
    spec, _, found = copies(name)
    assert {str(d) for made in found for d in made if d.verb in VERBS} == COPIES[name]
    assert rounded(spec, {}, ()) == ()


@pytest.mark.parametrize(("name", "n"), [(s, n) for s in COPIES for n in range(len(copies(s)[2]))])
def test_every_choice_with_rounded_copies_computes_it_in_tf32(name, n):
    spec, target, found = copies(name)
    lines = (*map(str, (*launch_ends(spec), *found[n])), f"compute({target}, unit=matrix)")
    nest = lowered(spec, *lines, sizes={}, machine=WITH_TF32)
    inputs = random_inputs(spec, {}, np.random.default_rng(n))
    exact = evaluate(spec, inputs, {})["y"]
    np.testing.assert_allclose(
        interpret(nest, inputs, {}, rounded=False)["y"], exact, rtol=1e-10, atol=1e-10
    )
    off = np.abs(interpret(nest, inputs, {}, rounded=True)["y"] - exact).max()
    assert 1e-6 < off < 0.05


OF_ROUNDED = spec_of(
    "y[b, o, p, q] = sum(pad(x[b, p + i - 1, q + j - 1, c], 0.0) * w[i, j, o, c], c, i, j)",
    inputs="x: tf32[2, 4, 8, 32], w: tf32[3, 3, 64, 32]",
    result="f32[2, 64, 4, 8]",
)
OF_PIXELS = spec_of(
    "y[b, o, p]: [2, 64, 9] = sum(x[b, p, c] * w[o, c], c)",  # the filter is the larger one
    inputs="x: tf32[2, 9, 32], w: tf32[64, 32]",
    result="f32[2, 64, 9]",
)


LAST = spec_of(
    "y[b, p, q, o]: [2, 4, 8, 64] = sum(pad(x[b, p + i - 1, q + j - 1, c], 0.0) * w[i, j, o, c], c, i, j)",
    inputs="x: tf32[2, 4, 8, 32], w: tf32[3, 3, 64, 32]",
    result="f32[2, 4, 8, 64]",
)
PIXELS_LAST = spec_of(
    "y[b, p, o]: [2, 99, 64] = sum(x[b, p, c] * w[o, c], c)",
    inputs="x: tf32[2, 99, 32], w: tf32[64, 32]",
    result="f32[2, 99, 64]",
)
STEPS_LAST = spec_of(
    "y[b, p, q, o]: [2, 9, 9, 64] = sum(x[b, p * 2, q * 2, c] * w[o, c], c)",
    inputs="x: tf32[2, 18, 18, 32], w: tf32[64, 32]",
    result="f32[2, 9, 9, 64]",
)
FLATTENED = {
    "channels first": (OF_ROUNDED, [["p"], []]),
    "pixels, channels first": (OF_PIXELS, [[]]),
    "channels last": (LAST, [["p"], ["p", "b"], []]),
    "pixels, channels last": (PIXELS_LAST, [[], ["b"]]),
    "every second pixel": (STEPS_LAST, [[], ["p", "b"]]),
}


@pytest.mark.parametrize("name", FLATTENED)
def test_operands_that_were_rounded_before_are_not_copied_again(name):
    spec, merged = FLATTENED[name]
    found = of_rounded(spec, {})
    assert rounded(spec, {}, ("y",)) == () and () in found
    assert [[d.subject for d in made if d.verb == "flatten"] for made in found] == merged
    for made in found:
        lines = (*map(str, (*launch_ends(spec), *made)), "compute(y, unit=matrix)")
        nest = lowered(spec, *lines, sizes={}, machine=WITH_TF32)
        inputs = random_inputs(spec, {}, np.random.default_rng(1))
        np.testing.assert_allclose(
            interpret(nest, inputs, {}, rounded=False)["y"],
            evaluate(spec, inputs, {})["y"],
            rtol=1e-9,
        )


@pytest.mark.parametrize(
    "spec",
    [
        spec_of(
            "y[m, n] = sum(x[m, k] * w[k, n], k)",
            inputs="x: f32[9, 7], w: f32[7, 8]",
            result="f32[9, 8]",
        ),
        spec_of(
            "y[b, c, p]: [2, 3, 4] = sum(x[b, c, p + i] * w[c, i], i=3)",
            inputs="x: f32[2, 3, 6], w: f32[3, 3]",
            result="f32[2, 3, 4]",
        ),
        spec_of(
            "y[b, c, p]: [2, 3, 4] = max(x[b, c, p + i], i=3)",
            inputs="x: f32[2, 3, 6]",
            result="f32[2, 3, 4]",
        ),
    ],
    ids=["product", "depthwise", "pool"],
)
def test_of_what_is_no_convolution_nothing_else_is_tried(spec):
    assert windowed(spec, {}) == ()
