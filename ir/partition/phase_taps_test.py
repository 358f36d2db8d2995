"""Transposed convolutions sum only the taps of their phases, and results are unchanged."""

from dataclasses import replace

import numpy as np
import pytest

from ir.literal import literal
from ir.parse.parse import parse_spec
from ir.partition import phase_taps
from ir.partition.constants import divided
from ir.partition.partition import partition
from ir.partition.phase_taps import with_taps_of_phases, with_whole_tiles
from ir.partition.phases import with_phases_apart
from ir.print import expression_text, spec_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as stepwise

SUM = "c[b, q, i, j]: [2, 12, 5, 4] = sum(pad(x[b, k, i + n, j + p], 0.0) * u[q, n, p, k], k, n, p)"
MIN = "m[b, s, t]: [2, 10, 8] = min(c[b, (s % 2 * 2 + t % 2) * 3 + o, s // 2, t // 2], o=3)"


def net(first: str = "1 + d - g * 2, 1 + e - h * 2", last: str = MIN, kernel: int = 3):
    """A transposed convolution with a stride of 2, of 3 channels, whose filter is a tensor of phases."""
    result, shape = ("m", "2, 10, 8") if last else ("c", "2, 12, 5, 4")
    lines = (
        f"v[d, e, f, g, h, l]: [2, 2, 3, 2, 2, 4] = pad(w[l, f, {first}], 0.0)",
        "u[a, y, z, t4]: [12, 2, 2, 4] = v[(((a * 2 + y) * 2 + z) * 4 + t4) // 96, "
        "(((a * 2 + y) * 2 + z) * 4 + t4) // 48 % 2, (((a * 2 + y) * 2 + z) * 4 + t4) // 16 % 3, "
        "(((a * 2 + y) * 2 + z) * 4 + t4) // 8 % 2, (((a * 2 + y) * 2 + z) * 4 + t4) // 4 % 2, "
        "(((a * 2 + y) * 2 + z) * 4 + t4) % 4]",
        SUM,
        *([last] if last else []),
        f"return {result}",
    )
    text = "\n".join(f"    {line}" for line in lines)
    inputs = f"x: f32[2, 4, 5, 4], w: f32[4, 3, {kernel}, {kernel}]"
    return literal(parse_spec(f'def f({inputs}) -> f32[{shape}]:\n    """F."""\n{text}\n'), {})


def parts(spec):
    """The parts of ranges that a spec's sums run over, by index."""
    found = [r for e in spec.equations for r in getattr(e.value, "ranges", ()) if r.partial]
    return {r.index: f"{expression_text(r.low)} to {expression_text(r.high)}" for r in found}


def same(spec, made):
    given = random_inputs(spec, {}, np.random.default_rng(3))
    expected, found = evaluate(spec, given, {}), evaluate(made, given, {})
    for t in spec.outputs:
        np.testing.assert_allclose(found[t.name], expected[t.name], rtol=1e-12)
    assert parse_spec(spec_text(made)) == parse_spec(spec_text(parse_spec(spec_text(made))))


@pytest.mark.parametrize(
    ("first", "kernel", "expected"),
    [
        ("1 + d - g * 2, 1 + e - h * 2", 3, {"n": "0 to q // 6 + 1", "p": "0 to q // 3 % 2 + 1"}),
        ("2 + d - g * 2, 1 + e - h * 2", 3, {"n": "q // 6 to 2", "p": "0 to q // 3 % 2 + 1"}),
        ("2 + d - g * 2, 2 + e - h * 2", 4, {}),
        (
            "1 - d - g * 2, 1 + e - h * 2",
            3,
            {"p": "0 to q // 3 % 2 + 1"},
        ),  # falls as the phase grows
        ("1 + l % 2 - g * 2, 1 + e - h * 2", 3, {"p": "0 to q // 3 % 2 + 1"}),  # none of a phase
    ],
)
def test_taps_that_are_zero_in_a_phase_are_left_out(first, kernel, expected):
    spec = net(first, kernel=kernel)
    made = with_taps_of_phases(spec)
    assert parts(made) == expected
    assert (made is spec) == (not expected)
    same(spec, made)


def test_a_pad_that_is_no_zero_stays():
    spec = net()
    first, *others = spec.equations
    ones = replace(first, value=replace(first.value, pad=1.0))
    spec = replace(spec, equations=(ones, *others))
    assert with_taps_of_phases(spec) is spec


def test_a_phase_that_is_an_index_of_its_own_bounds_taps(monkeypatch):
    monkeypatch.setattr("ir.partition.phases.suits_tile", lambda extent, **_: extent < 16)
    spec = with_taps_of_phases(net())
    made, _ = with_phases_apart(spec, {})
    assert sorted(parts(made).values()) == ["0 to phase % 2 + 1", "0 to phase // 2 + 1"]
    assert with_whole_tiles(made) is made
    same(spec, made)


def test_phases_that_lie_closer_than_a_tile_have_all_taps(monkeypatch):
    spec = with_taps_of_phases(net(last=""))
    monkeypatch.setattr(phase_taps, "TILE", 6)
    made = with_whole_tiles(spec)
    assert list(parts(made)) == ["n"]
    same(spec, made)
    monkeypatch.setattr(phase_taps, "TILE", 7)
    assert parts(with_whole_tiles(made)) == {}


def test_the_kernel_of_a_network_has_them(monkeypatch):
    """Filters that are computed before calls are known while they are divided from these."""
    monkeypatch.setattr(phase_taps, "TILE", 6)
    spec = net(last="")
    found = divided(spec, {"u": "v"}, {"w"}, rounded=("c",))
    given = random_inputs(spec, {}, np.random.default_rng(3))
    expected = evaluate(spec, given, {})["c"]
    filters = evaluate(found.before, {"w": given["w"]}, {})
    network = partition(found.call, {}, found.aliases)
    bounded = [k for k in network.kernels() if parts(k)]
    assert len(bounded) == 1
    inputs = {"x": given["x"], **filters}
    (result,) = stepwise(network, {t.name: inputs[t.name] for t in found.call.inputs})
    np.testing.assert_allclose(result, expected, rtol=1e-9)
