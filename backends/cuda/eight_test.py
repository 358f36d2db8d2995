"""8-bit floats in emitted kernels: every code has its value, and f32 is rounded as the reference does."""

from __future__ import annotations

import numpy as np
import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import backend
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.reference.rounding import round_to

TEXT = '''
def convert(x: f32[M], e: {0}[M]) -> ({0}[M], f32[M]):
    """f32 in 8 bits, and 8 bits in f32."""
    y[m] = x[m]
    z[m] = f32(e[m])
    return y, z

tune(M=4096)
check(M=4096)
'''
MACHINE, SIZES = machine_of("h200"), {"M": 4096}


def converted(dtype, x, e, folder):
    work = parse_workload(TEXT.format(dtype), "convert")
    nest = lower(work.spec, parse_schedule("schedule(convert)\n"), MACHINE, work.tune)
    source = backend().emit(nest, MACHINE)
    return emulated(source, nest, MACHINE, SIZES, {"x": x, "e": e}, folder)


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_conversions_are_those_of_the_reference(dtype, tmp_path):
    draw = np.random.default_rng(3)
    x = draw.normal(size=4096).astype(np.float32) * np.exp2(draw.integers(-24, 20, 4096))
    every = round_to(np.exp2(np.linspace(-20, 18, 512)).astype(np.float32), dtype)
    every = np.unique(every[np.isfinite(every)])
    middles = (every[1:] + every[:-1]) / 2  # ties
    near = np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))
    ends = np.array([0, -0.0, np.inf, -np.inf, np.nan, 464, 465, 61440, 61439, 1e30], np.float32)
    given = np.concatenate([ends, middles, -middles, *near, every])[:4096]
    x[: len(given)] = given
    e = round_to(np.roll(x, 7), dtype)
    found = converted(dtype, x, e, tmp_path)
    wanted = round_to(x, dtype)
    assert len(given) > 200 and np.array_equal(found["y"], wanted, equal_nan=True)
    assert np.array_equal(np.signbit(found["y"]), np.signbit(wanted))
    assert np.array_equal(found["z"], e, equal_nan=True)
