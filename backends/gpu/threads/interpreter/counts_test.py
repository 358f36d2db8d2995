"""Wavefronts and sectors are those that layouts are judged by."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.layout.access import Access, Banks, bank_cycles, least_sectors
from backends.gpu.layout.access import sectors as sectors_of
from backends.gpu.threads.interpreter.cases import SIZES, TABLE, arrays
from backends.gpu.threads.interpreter.counts import IDLE, SECTOR_BYTES, sectors, wavefronts
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.testing import samples
from backends.gpu.tile import Name

WIDTHS = st.sampled_from((1, 2, 4, 8, 16))


@st.composite
def warps(draw):
    """The accesses of a warp, aligned, with idle threads."""
    width = draw(WIDTHS)
    one = st.lists(st.none() | st.integers(0, 63), min_size=32, max_size=32)
    found = draw(st.lists(one, min_size=1, max_size=3))
    accesses = [tuple(None if o is None else o * width for o in offsets) for offsets in found]
    return accesses, width


def as_array(accesses):
    return np.array([[IDLE if o is None else o for o in offsets] for offsets in accesses])


@given(warps())
def test_wavefronts_are_the_cycles_of_banks(made):
    accesses, width = made
    cycles = [bank_cycles(Access(offsets, width), Banks(32)) for offsets in accesses]
    expected = sum(c.cycles for c in cycles), sum(c.least for c in cycles)
    assert wavefronts(as_array(accesses), width) == expected


@given(warps())
def test_sectors_are_those_that_an_access_touches(made):
    accesses, width = made
    known = [Access(offsets, width) for offsets in accesses]
    touched = sum(sectors_of(a, SECTOR_BYTES) for a in known)
    least = sum(least_sectors(a, SECTOR_BYTES) for a in known)
    assert sectors(as_array(accesses), width) == (touched, least)


def run(program, sizes=None):
    sizes = sizes or SIZES[program.name]
    return interpret(program, sizes, arrays(program, sizes), TABLE, 1 << 16)


def test_a_column_without_swizzle_takes_a_wavefront_for_each_thread():
    tile = Name("shared", "x")
    plain = run(samples.transpose(swizzle=None), {"M": 64, "N": 64})
    # 4 warps load 32 registers each, and all 32 threads of a warp meet in one bank.
    assert plain.conflicts(tile) == 4 * 32 * 31
    assert run(samples.transpose()).conflicts(tile) == 0
    assert plain.conflicts(tile, launch="transpose") and not plain.conflicts(tile, launch="other")


def test_contiguous_vectors_touch_the_fewest_sectors():
    loads = [r for r in run(samples.vector_add(), {"N": 1024}).rows if r.memory == "global"]
    assert len(loads) == 3 and all(r.transactions == r.least == 128 for r in loads)
    assert all(r.executions == r.measured == 2 for r in loads)


def test_counts_can_be_read():
    text = str(run(samples.transpose(), {"M": 64, "N": 64}))
    assert "       1 x      128 /      128 shared transpose: y = x_shared" in text.splitlines()
