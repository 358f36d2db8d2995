"""Phases of transposed convolutions are reduced separately, and results are unchanged."""

import numpy as np
import pytest

from ir.contraction import contraction
from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition import phases as module
from ir.partition.groups import suits_tile
from ir.partition.partition import partition
from ir.partition.phases import with_phases_apart
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise
from ir.spec import Reduce


@pytest.fixture(autouse=True)
def any_tile(monkeypatch):
    """The few channels of these tests as what tiles have all of."""
    monkeypatch.setattr(module, "suits_tile", lambda extent, **_: extent < 16)


INPUTS = {
    "x": "f32[2, 3, 5, 4]",
    "w": "f32[12, 2, 2, 3]",
    "bias": "f32[3]",
    "z": "f32[2, 3, 10, 8]",
}
SUM = "c[b, q, i, j]: [2, 12, 5, 4] = sum(pad(x[b, k, i + r, j + s], 0.0) * w[q, r, s, k], k, r, s)"
WHOLE = "y[b, o, m, n]: [2, 3, 10, 8] = c[b, (m % 2 * 2 + n % 2) * 3 + o, m // 2, n // 2] + bias[o]"
SHIFTED = "y[b, o, m, n]: [2, 3, 9, 7] = c[b, ((m + 1) % 2 * 2 + (n + 1) % 2) * 3 + o, (m + 1) // 2, (n + 1) // 2]"


def spec_of(*lines, result):
    text = "\n".join(f"    {line}" for line in (SUM, *lines, "return t"))
    used = (f"{name}: {kind}" for name, kind in INPUTS.items() if f"{name}[" in text)
    spec = parse_spec(f'def f({", ".join(used)}) -> {result}:\n    """F."""\n{text}\n')
    return literal(spec, {})


def agreed(spec):
    """The spec with phases apart, after it and its network computed what the spec does."""
    made, aliases = with_phases_apart(spec, {})
    given = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, given, {})["t"]
    np.testing.assert_allclose(evaluate(made, given, {})["t"], expected, rtol=1e-12)
    (found,) = stepwise(partition(spec, {}), given)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert made is spec or len(aliases) == 1
    return made


def sums(spec):
    return [e for e in spec.equations if contraction(e) is not None]


@pytest.mark.parametrize("places", [WHOLE, SHIFTED])
def test_channels_are_reduced_in_each_phase(places):
    rows, columns = (10, 8) if places is WHOLE else (9, 7)
    lines = (places, "t[b, m, n] = min(gelu(y[b, o, m, n]), o=3)")
    spec = agreed(spec_of(*lines, result=f"f32[2, {rows}, {columns}]"))
    (made,) = sums(spec)
    assert [int(n.value) for n in made.sizes] == [2, 4, 3, 5, 4]
    (least,) = (
        e for e in spec.equations if isinstance(e.value, Reduce) and e.reduce.reduction == "min"
    )
    assert [int(n.value) for n in least.sizes] == [2, 4, 5, 4]


def test_what_reads_all_channels_again_does_so_in_each_phase():
    spec = agreed(
        spec_of(
            SHIFTED,
            "m1[b, m, n]: [2, 9, 7] = max(y[b, o, m, n], o)",
            "e[b, o, m, n]: [2, 3, 9, 7] = exp(y[b, o, m, n] - m1[b, m, n]) + bias[o]",
            "t[b, o, m, n] = e[b, o, m, n] * 2.0",
            result="f32[2, 3, 9, 7]",
        )
    )
    (last,) = (e for e in spec.equations if e.target == "t")
    assert not [e for e in spec.equations if e.target in ("y", "m1", "e")]
    assert last.sources() == ("t_apart",)


def test_a_sum_over_all_places_needs_no_order_of_them():
    spec = agreed(spec_of(WHOLE, "t[b, o] = sum(y[b, o, m, n], m=10, n=8)", result="f32[2, 3]"))
    (total,) = (e for e in spec.equations if e.target == "t")
    assert len(total.reduced) == 3 and [e.target for e in spec.equations][-2:] == ["y_apart", "t"]


@pytest.mark.parametrize(
    "lines",
    [
        (
            SHIFTED,
            "t[b, o] = sum(y[b, o, m, n], m=9, n=7)",
        ),  # where phases have more places than results
        (WHOLE, "h[b, o, n] = max(y[b, o, m, n], m)", "t[b, o] = sum(h[b, o, n], n)"),
        (WHOLE, "t[b, m, n] = min(y[b, o, m, n] * f32(m), o)"),
        (WHOLE, "t[b, m, n] = min(y[b, o, m, n] + z[b, o, m, n], o)"),
        (WHOLE, "t[b, m, n] = min(y[b, o, 9 - m, n], o)"),
        (WHOLE, "t[b, m, n] = min(y[b, o, m, n] + c[b, o, m // 2, n // 2], o)"),
        (WHOLE, "t[b, o, m, n] = gelu(y[b, o, m, n])"),  # without a reduction
    ],
)
def test_others_stay(lines):
    if "max(" in lines[1]:
        lines = (
            WHOLE,
            "h[b, o, n]: [2, 3, 8] = max(y[b, o, m, n], m)",
            "t[b, o] = sum(h[b, o, n], n)",
        )
    result = {"b, o": "f32[2, 3]", "b, m, n": "f32[2, 10, 8]", "b, o, m, n": "f32[2, 3, 10, 8]"}
    spec = spec_of(*lines, result=result[lines[-1][2 : lines[-1].index("]")]])
    assert agreed(spec) == spec


def test_so_do_channels_that_fill_no_tile(monkeypatch):
    monkeypatch.setattr(module, "suits_tile", suits_tile)
    spec = spec_of(WHOLE, "t[b, m, n] = min(y[b, o, m, n], o=3)", result="f32[2, 10, 8]")
    assert agreed(spec) == spec
