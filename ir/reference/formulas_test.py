"""Inputs by formulas: distributions, draws, and parts that equal those of the whole."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.reference import formulas as module
from ir.reference.draws import INFINITE, NAN, POSITIVE, drawn
from ir.reference.formulas import DRAWS, Formulas, formulas, inputs_of, quantiles
from ir.reference.inputs import uses
from ir.reference.reference import evaluate
from ir.reference.rows import WHOLE, Rows
from ir.sizes import bind
from testing.samples.samples import spec_of

SPEC = parse_spec(
    "def f(x: f32[M, N], w: f16[N, K], b: bf16[N], i: i32[M, N], c: b8[M, N]) -> f32[M, N]:\n"
    '    """Data, weights, a bias, integers and truth values."""\n'
    "    t[n] = sum(w[n, k], k)\n"
    "    y[m, n] = where(c[m, n], x[m, n] + b[n], t[n] + i[m, n])\n"
    "    return y\n"
)
SIZES = {"M": 40, "N": 30, "K": 20}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """What is large otherwise is large from a few hundred numbers, and made in parts."""
    monkeypatch.setattr(module, "MANY", 1000)
    monkeypatch.setattr(module, "FEW", 100)
    monkeypatch.setattr(module, "PART", 64)


def made(draw="", spec=SPEC, sizes=SIZES, seed=5):
    found = formulas(spec, sizes, seed, draw)
    assert found is not None
    return found


def test_few_numbers_are_drawn_and_so_is_a_small_input_beside_large_ones():
    assert formulas(SPEC, {"M": 2, "N": 3, "K": 2}, 5) is None
    found = made()
    assert set(found.formulas) == {"x", "w", "i", "c"} and list(found) == list("xwbic")
    assert found["b"].shape == (30,) and not found.held
    assert {n: (a.shape, a.dtype.name) for n, a in found.items()} == {
        "x": ((40, 30), "float32"),
        "w": ((30, 20), "float16"),
        "b": ((30,), "float32"),
        "i": ((40, 30), "int32"),
        "c": ((40, 30), "bool"),
    }


def test_floats_are_distributed_normally_and_integers_evenly():
    found = made(sizes={"M": 400, "N": 300, "K": 20})
    x = found["x"].astype(np.float64)
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02
    assert abs((np.abs(x) < 1).mean() - 0.6827) < 0.01 and 3.5 < np.abs(x).max() < 5
    assert len(np.unique(x)) > 0.95 * x.size  # far more than there are quantiles
    assert abs(np.corrcoef(x[:, :-1].ravel(), x[:, 1:].ravel())[0, 1]) < 0.02
    values, counts = np.unique(found["i"], return_counts=True)
    assert values.tolist() == list(range(-8, 9)) and counts.min() > 0.9 * counts.max()
    assert 0.48 < found["c"].mean() < 0.52


def test_another_seed_draw_or_name_gives_other_numbers():
    one = made(sizes={"M": 400, "N": 300, "K": 300})
    for other in (made(seed=6, sizes={"M": 400, "N": 300, "K": 300})["x"], one["w"]):
        count = min(one["x"].size, other.size)
        pair = (a.ravel()[:count].astype(np.float64) for a in (one["x"], other))
        assert abs(np.corrcoef(*pair)[0, 1]) < 0.02
    assert np.array_equal(made()["x"], made()["x"])


@pytest.mark.parametrize("draw", DRAWS)
def test_a_part_holds_what_the_whole_holds_there_and_nothing_else(draw):
    rows = Rows({"x": {0: (slice(0, 3), slice(37, 40)), 1: (slice(4, 9),)}}, {})
    some, whole = made(draw).needed(rows), made(draw)
    assert list(some) == list(whole) and np.array_equal(some["w"], whole["w"])
    kept = np.zeros((40, 30), bool)
    kept[:3, 4:9] = kept[37:, 4:9] = True
    assert np.array_equal(some["x"][kept], whole["x"][kept], equal_nan=True)
    assert not some["x"][~kept].any()


def test_a_reference_at_rows_is_that_of_whole_inputs():
    runs = (slice(2, 4), slice(30, 33))
    at = np.array([2, 3, 30, 31, 32])
    rows = Rows({n: {0: runs} for n in ("x", "i", "c", "y")}, {"y": {0: at}})
    found = made()
    some = evaluate(SPEC, found.needed(rows), SIZES, rows)["y"]
    assert np.array_equal(some, evaluate(SPEC, found, SIZES, WHOLE)["y"][at])


def test_draws_change_floats_as_they_do_where_all_is_drawn():
    assert 14 < made("large")["x"].std() < 18 and 14 < made("large")["b"].std() < 20
    assert made("tiny")["x"].std() < 0.0011
    shifted = made("shifted")
    assert shifted["x"].min() > 990 and abs(shifted["w"].mean()) < 1 and shifted["b"].max() < 10
    zeros = made("zero_rows")["x"]
    assert not zeros[::2].any() and zeros[1::2].all() and not np.signbit(zeros[::2]).any()
    ties = made("ties")
    for name in "xw":
        assert np.array_equal(ties[name], np.rint(ties[name])) and len(np.unique(ties[name])) > 5
    assert not np.signbit(ties["x"][ties["x"] == 0]).any()


@pytest.mark.parametrize("draw, value", [(NAN, np.nan), (INFINITE, -np.inf), (POSITIVE, np.inf)])
def test_a_place_of_every_fourth_row_is_planted_as_where_all_is_drawn(draw, value):
    found = made(draw)
    drawn_alike = drawn(SPEC, SIZES, np.random.default_rng(1), draw)["x"]
    here = ~np.isfinite(found["x"])
    assert np.array_equal(here, ~np.isfinite(drawn_alike)) and here.sum() == 10
    assert np.array_equal(found["x"][here], np.full(10, value, np.float32), equal_nan=True)
    assert np.isfinite(found["w"]).all() and np.isfinite(found["b"]).all()


def test_a_vector_is_planted_at_every_fourth_place_and_a_small_first_float_too():
    inputs, result = "x: f32[M], z: f32[N]", "f32[M]"
    spec = spec_of("t[()] = sum(z[n], n)", "y[m] = x[m] * t[()]", inputs=inputs, result=result)
    found = made(NAN, spec, {"M": 2000, "N": 8})
    assert np.isnan(found["x"]).sum() == 500 and np.isfinite(found["z"]).all()
    other = made(NAN, spec, {"M": 80, "N": 2000})
    assert np.isnan(other["x"]).sum() == 20 and np.isfinite(other["z"]).all()


def test_positions_ranges_and_divisors_are_kept_in_every_draw():
    spec = parse_spec(
        "def g(t: f32[N], i: i64[M], x: f32[M], low: f32[M], d: f32[M]) -> f32[M]:\n"
        '    """A look-up."""\n'
        "    range(low, 2.0, 3.0)\n"
        "    range(x, -1.0, 0.5)\n"
        "    y[m] = (t[i[m]] + x[m]) * low[m] / d[m]\n"
        "    return y\n"
    )
    sizes = {"M": 700, "N": 300}
    assert uses(spec, bind(spec, sizes)).within["i"] == (0, 300)
    for draw in DRAWS:
        found = made(draw, spec, sizes)
        assert set(found.formulas) == set(found)
        assert 0 <= found["i"].min() < 5 and 294 < found["i"].max() < 300
        assert np.isfinite(found["d"]).all()
        assert found["x"].min() >= -1.0 and found["x"].max() <= 0.5
        assert found["low"].min() >= 2.0 and found["low"].max() <= 3.0
        assert draw == "tiny" or found["d"].min() > 0.05
    ends = made("ends", spec, sizes)["i"]
    assert ends[::2].min() == 299 and not ends[1::2].any()


def test_what_has_no_formula_is_drawn_beside_what_has_one():
    spec = parse_spec(
        "def h(x: f32[M], o: i32[S + 1], e: f64[M]) -> f32[S]:\n"
        '    """Sums of segments."""\n'
        "    y[s] = sum(x[k] * f32(e[k]), k=range(o[s], o[s + 1]))\n"
        "    return y\n"
    )
    for draw in DRAWS:
        found = made(draw, spec, {"M": 2000, "S": 500})
        assert set(found.formulas) == {"x"} and set(found.given) == {"o", "e"}
        assert np.all(np.diff(found["o"]) >= 0) and found["o"][-1] == 2000
        assert found["e"].std() > (8 if draw == "large" else 0)


def test_draws_that_have_no_formulas_are_made_as_ever():
    assert formulas(SPEC, SIZES, 5, "denormal") is None
    assert not isinstance(inputs_of(SPEC, SIZES, 5, "denormal")[0], Formulas)
    assert isinstance(inputs_of(SPEC, SIZES, 5)[0], Formulas)


def test_large_outputs_of_small_inputs_count_too():
    spec = parse_spec(
        "def o(x: f32[M], y: f32[N]) -> f32[M, N]:\n"
        '    """All products."""\n'
        "    z[m, n] = x[m] * y[n]\n"
        "    return z\n"
    )
    found = made(spec=spec, sizes={"M": 50, "N": 60})
    assert not found.formulas and set(found.given) == {"x", "y"}


def test_quantiles_are_those_of_the_normal_distribution():
    found = quantiles()
    assert found.dtype == np.float32 and np.all(np.diff(found) > 0)
    assert np.allclose(found, -found[::-1], atol=1e-6) and abs(found.std() - 1) < 1e-3
