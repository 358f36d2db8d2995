"""8-bit floats: every code has its value, and f32 is rounded as the reference does."""

import numpy as np
import pytest

from backends.cutedsl.testing.assembly import ptx
from backends.cutedsl.testing.fakes import installed
from ir.reference.rounding import round_to

TYPES = {"f8e4m3": "Float8E4M3FN", "f8e5m2": "Float8E5M2"}


@pytest.mark.parametrize("dtype", TYPES)
def test_conversions_are_those_of_the_reference(dtype):
    every = round_to(np.exp2(np.linspace(-20, 18, 512)).astype(np.float32), dtype)
    every = np.unique(every[np.isfinite(every)])
    middles = (every[1:] + every[:-1]) / 2  # ties
    near = np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))
    ends = np.array([0, -0.0, np.inf, -np.inf, np.nan, 464, 465, 61440, 61439, 1e30], np.float32)
    given = np.concatenate([ends, middles, -middles, *near, every])
    with installed() as kernel:
        own, fn = getattr(kernel.matrices, TYPES[dtype]), kernel.functions
        found = [fn.in_dtype(fn.Float32(x), own) for x in given]
        codes = [x.bitcast(fn.Uint8) for x in found]
        wide = np.array([float(fn.Float32(x)) for x in found], np.float32)
        again = [float(c.bitcast(own)) for c in codes]
    wanted = round_to(given, dtype)
    assert len(given) > 200 and np.array_equal(wide, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(wide), np.signbit(wanted))
    finite = np.isfinite(wanted)
    assert np.array_equal(np.array(again)[finite], wanted[finite])


@pytest.mark.parametrize(("dtype", "name"), [("f8e4m3", "e4m3"), ("f8e5m2", "e5m2")])
def test_the_compiler_rounds_by_an_instruction_that_stops_at_the_ends(dtype, name):
    text = ptx("    put(y_ptr, 0, get(x_ptr, 0))\n", ("Float32", TYPES[dtype]))
    assert f"cvt.rn.satfinite.{name}x2.f32" in text
