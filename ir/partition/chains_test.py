"""Spellings of attention: which equations form a chain, and that the network computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from ir.network import Network
from ir.parse.parse import parse_spec
from ir.partition.chains import chains
from ir.partition.heads import with_split_heads
from ir.partition.partition import partition
from ir.partition.weights import with_plain_weights
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network
from ir.spec import Index, Number, Reduce, Spec

SCORES = "s[b, h, m, n] = sum(f32(q[b, h, m, d]) * f32(k[b, h, n, d]), d)"
SOFTMAX = (
    "t[b, h, m] = max(s[b, h, m, n], n)",
    "p[b, h, m, n] = exp(s[b, h, m, n] - t[b, h, m])",
    "l[b, h, m] = sum(p[b, h, m, n], n)",
)
OUT = (
    "o[b, h, m, e] = sum(p[b, h, m, n] * f32(v[b, h, n, e]), n)",
    "y[b, h, m, e] = o[b, h, m, e] / l[b, h, m]",
)
NORMALISED = (
    "t[b, h, m] = max(s[b, h, m, n], n)",
    "l[b, h, m] = sum(exp(s[b, h, m, n] - t[b, h, m]), n)",
    "w[b, h, m, n] = bf16(exp(s[b, h, m, n] - t[b, h, m]) / l[b, h, m])",
    "y[b, h, m, e] = sum(f32(w[b, h, m, n]) * f32(v[b, h, n, e]), n)",
)


def spec_of(given: str, result: str, *lines: str, returned: str = "y") -> Spec:
    body = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    return parse_spec(f'def f({given}) -> {result}:\n    """F."""\n{body}\n')


def agree(spec: Spec, takes=None) -> Network:
    """The network of a spec, after its results were compared with the spec's."""
    made = partition(spec, {}, takes=takes)
    given = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, given, {})
    for t, ours in zip(spec.outputs, evaluate_network(made, given), strict=True):
        np.testing.assert_allclose(ours, expected[t.name], rtol=1e-9, atol=1e-12)
    return made


def inputs(heads: int, groups: int, dtype: str = "f32") -> str:
    keys = f"{dtype}[2, {groups}, 11, 5]"
    return f"q: {dtype}[2, {heads}, 3, 5], k: {keys}, v: {keys}"


def shared(lines, ratio: int):
    return [
        line.replace("k[b, h,", f"k[b, h // {ratio},").replace("v[b, h,", f"v[b, h // {ratio},")
        for line in lines
    ]


def attention(*lines: str, heads: int = 4, groups: int = 4, result: str = "f32[2, 4, 3, 5]"):
    return spec_of(inputs(heads, groups), result, *lines)


def one_kernel(spec: Spec) -> Network:
    made = agree(spec, lambda _: 1.0)
    assert len(made.steps) == 1
    return made


def test_two_contractions_and_their_softmax_are_a_chain():
    spec = attention(SCORES, *SOFTMAX, *OUT)
    (found,) = chains(spec, ())
    assert found.members == ("s", "t", "p", "l", "o") and found.after == ("y",)
    one_kernel(spec)


def test_a_softmax_that_divides_its_weights_divides_their_sum():
    spec = attention(SCORES, *NORMALISED)
    made = with_plain_weights(spec, ())
    (found,) = chains(made, ())
    assert found.after == ("y",) and found.last == "y_raw"
    assert made.equation("l").sources() == ("powers",)
    # Rounding the weights before or after the division is no longer the same bit by bit.
    one_kernel(attention(SCORES, *(line.replace("bf16", "f32") for line in NORMALISED)))


def test_heads_that_share_keys_are_rows():
    spec = attention(*shared((SCORES, *SOFTMAX, *OUT), 2), groups=2)
    split, aliases = with_split_heads(spec, {})
    (key,) = (r for r in split.equation("s_parts").reads() if r.tensor == "k")
    assert all(isinstance(p, Index) for p in key.at)
    assert aliases == {"y": "y_parts", "q_parts": "q"}
    one_kernel(spec)


def test_one_head_of_keys_for_all_needs_no_groups():
    spec = attention(*shared((SCORES, *SOFTMAX, *OUT), 4), groups=1)
    made = one_kernel(spec)
    assert made.steps[0].spec.inputs[1].shape == tuple(map(Number, (2, 11, 5)))


def test_groups_of_unequal_sizes_stay_as_they_are():
    spec = attention(*shared((SCORES, *SOFTMAX, *OUT), 3), groups=2)
    assert with_split_heads(spec, {})[0] is spec
    one_kernel(spec)


@pytest.mark.parametrize(
    ("lines", "returned", "result"),
    [
        ((SCORES, *SOFTMAX, *OUT), "(y, p)", "(f32[2, 4, 3, 5], f32[2, 4, 3, 11])"),
        ((SCORES, *SOFTMAX, *OUT), "(y, s)", "(f32[2, 4, 3, 5], f32[2, 4, 3, 11])"),
        (
            (SCORES, *SOFTMAX, *OUT, "z[b, h, m] = argmax(p[b, h, m, n], n)"),
            "(y, z)",
            "(f32[2, 4, 3, 5], i64[2, 4, 3])",
        ),
    ],
)
def test_what_is_needed_of_a_chain_elsewhere_stays_in_memory(lines, returned, result):
    spec = spec_of(inputs(4, 4), result, *lines, returned=returned)
    assert not list(chains(spec, ()))
    agree(spec, lambda _: 1.0)


def test_without_a_softmax_two_contractions_are_no_chain():
    square = "p[b, h, m, n] = s[b, h, m, n] * s[b, h, m, n]"
    spec = attention(SCORES, square, OUT[0].replace("o[", "y["))
    assert not list(chains(spec, ()))


def test_a_kernel_that_takes_longer_than_several_is_not_made():
    def takes(spec) -> float:
        sums = [e for e in spec.equations if isinstance(e.value, Reduce)]
        return 10.0 ** len(sums)

    spec = attention(SCORES, *SOFTMAX, *OUT)
    assert len(agree(spec, takes).steps) == len(agree(spec).steps) == 3
