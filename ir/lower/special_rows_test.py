"""NaN and infinities: lowered nests give the reference's results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.lower.lower import lower
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from testing.samples.samples import SMALL, WITH_REGISTERS, decisions
from testing.samples.special_rows import NAMES, extrema, special_rows

PLACES = ("argmax", "argmin")
TILED = ("tile(m, size=2)", "tile(k, size=3)")
SCHEDULES = {  # decisions, and what they are taken for
    "whole": ((), NAMES),
    "tiled": (TILED, NAMES),
    "online": ((*TILED, "online(y_{0}_top, into=y_{0})"), PLACES),
    "split_k": ((*TILED, "split_k(y_{0}, over=k, parts=2)"), ("max", "min")),
    "split_top": ((*TILED, "split_k(y_{0}_top, over=k, parts=2)"), PLACES),
}
CASES = [(name, schedule) for schedule, (_, names) in SCHEDULES.items() for name in names]


@pytest.mark.parametrize(("name", "schedule"), CASES)
@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 8),
    seed=st.integers(0, 999),
    dtype=st.sampled_from(["f32", "bf16"]),
)
def test_special_rows(name, schedule, rows, columns, seed, dtype):
    spec, sizes = extrema(name, dtype=dtype), {"M": rows, "K": columns}
    lines = [line.format(name) for line in SCHEDULES[schedule][0]]
    machine = WITH_REGISTERS if schedule.startswith("split") else SMALL
    nest = lower(spec, decisions(spec, *lines), machine, sizes)
    x = {"x": special_rows(rows, columns, seed)}
    expected = evaluate(spec, x, sizes)[f"y_{name}"]
    np.testing.assert_array_equal(interpret(nest, x, sizes)[f"y_{name}"], expected)


@pytest.mark.parametrize("name", PLACES)
@given(columns=st.integers(1, 8), seed=st.integers(0, 999))
def test_the_first_nan_is_the_extremum(name, columns, seed):
    x = special_rows(9, columns, seed)
    found = evaluate(extrema(name), {"x": x}, {"M": 9, "K": columns})[f"y_{name}"]
    has = np.isnan(x).any(axis=1)
    np.testing.assert_array_equal(found[has], np.isnan(x).argmax(axis=1)[has])
    assert (found >= 0).all() and (found < columns).all()
