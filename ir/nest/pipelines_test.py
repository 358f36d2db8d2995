"""Pipeline stages on backends that give each loop one number of stages."""

import dataclasses

import pytest

from ir.errors import KernelError
from ir.machine import Rendering
from testing.samples.samples import WITH_THREADS, lowered

BY_LOOP = dataclasses.replace(WITH_THREADS, rendering=Rendering("other", stages_of="loop"))
TILES = (
    *("tile(m, size=8)", "tile(n, size=8)", "tile(k, size=8)"),
    *("place(m.outer, level=grid)", "place(n.outer, level=grid)"),
)


def fault(*lines: str) -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered("matmul_bias_gelu", *TILES, *lines, machine=BY_LOOP)
    return caught.value


def test_unlike_stages_of_one_loop_are_refused():
    lines = ("pipeline(x, stages=3)", "pipeline(w, stages=2)")
    found = fault(*lines)
    assert "`x` has 3 pipeline stages and `w` 2 in the loop over `k`" in str(found)
    assert "backend `other` gives one number" in str(found)
    assert found.hint == "pipeline(w, stages=3)"
    lowered("matmul_bias_gelu", *TILES, *lines, machine=WITH_THREADS)


def test_a_load_without_stages_of_its_own_is_taken_along():
    lowered("matmul_bias_gelu", *TILES, "pipeline(x, stages=3)", machine=BY_LOOP)


def test_stages_of_what_no_loop_loads_are_refused():
    for name in ("b", "y"):
        found = fault("pipeline(x, stages=3)", f"pipeline({name}, stages=3)")
        assert f"no loop loads `{name}`" in str(found)
        assert (found.allowed, found.hint) == ("w, x", f"drop pipeline({name}, stages=3)")


def test_a_persistent_launch_is_one_loop():
    parts = ("pipeline(x, stages=3)", "pipeline(w, stages=2)", "persistent(y, programs=1)")
    assert "in one persistent launch" in str(fault(*parts))
