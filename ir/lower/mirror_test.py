"""Reverse scans in one launch, which stores them from their end."""

import numpy as np
import pytest

from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import Load, Store
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from testing.samples.samples import SMALL, WITH_THREADS, decisions, spec_of

SPEC = spec_of("y[m, k] = cumsum(x[m, k], k, reverse=True)")
ROWS = ("tile(m, size=2)", "tile(k, size=8)", "place(m.outer, level=grid)")
SIZES = {"M": 5, "K": 37}


def made(*lines, spec=SPEC, machine=WITH_THREADS):
    return lower(spec, decisions(spec, *lines), machine, SIZES)


@pytest.mark.parametrize("lines", [ROWS, (ROWS[0], ROWS[2]), ()])
@pytest.mark.parametrize("sizes", [SIZES, {"M": 1, "K": 1}, {"M": 2, "K": 16}])
@pytest.mark.parametrize("scan", ["cumsum", "cummax"])
def test_one_launch_stores_the_scan_from_its_end(lines, sizes, scan):
    spec = spec_of(f"y[m, k] = {scan}(x[m, k] * 2.0, k, reverse=True)")
    apart, nest = made(*lines, spec=spec), made("mirror(y)", *lines, spec=spec)
    assert len(apart.launches) == 2
    (launch,) = nest.launches
    stored = [s.tensor for s in launch.statements() if isinstance(s, Store)]
    loaded = [s.tensor for s in launch.statements() if isinstance(s, Load)]
    assert (stored, loaded) == (["y"], ["x"])
    inputs = random_inputs(spec, sizes, np.random.default_rng(2))
    (expected,) = evaluate(spec, inputs, sizes).values()
    for one in (apart, nest):
        (found,) = interpret(one, inputs, sizes).values()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_what_follows_the_scan_is_in_another_launch():
    spec = spec_of("t[m, k] = cumsum(x[m, k], k, reverse=True)", "y[m, k] = t[m, k] * 2.0")
    with pytest.raises(KernelError, match="read at other indices than it is computed at"):
        made("mirror(t)", *ROWS, spec=spec)
    nest = made("mirror(t)", "kernel(t)", *ROWS, spec=spec)
    assert len(nest.launches) == 2


def test_only_a_reverse_scan_is_stored_from_its_end():
    spec = spec_of("y[m, k] = cumsum(x[m, k], k)")
    with pytest.raises(KernelError, match="`y` is no reverse scan") as refused:
        made("mirror(y)", spec=spec)
    assert refused.value.place and refused.value.allowed and refused.value.hint == "drop mirror(y)"
    with pytest.raises(KernelError, match="which has no `mirror`"):
        made("mirror(y)", machine=SMALL)


def test_edits_have_it_and_take_it_away():
    found = {str(e) for e in neighbours(SPEC, decisions(SPEC, *ROWS), WITH_THREADS, SIZES)}
    assert "+ mirror(y)" in found
    schedule = decisions(SPEC, "mirror(y)", *ROWS)
    assert "- mirror(y)" in {str(e) for e in neighbours(SPEC, schedule, WITH_THREADS, SIZES)}
    other = {str(e) for e in neighbours(SPEC, decisions(SPEC, *ROWS), SMALL, SIZES)}
    assert "+ mirror(y)" not in other
