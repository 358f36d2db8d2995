"""Costs of accesses: known cases, and definitions by brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.gpu.layout.access import (
    Access,
    Banks,
    accesses,
    bank_cycles,
    choose_swizzle,
    least_sectors,
    sectors,
    widest_vector,
)
from backends.gpu.layout.layout import Layout, row_major
from backends.gpu.layout.strategies import layouts
from backends.gpu.layout.swizzle import ComposedLayout, Swizzle
from backends.gpu.layout.text import parse
from ir.errors import KernelError

NVIDIA = Banks(32)
LDS_32, LDS_64 = Banks(32), Banks(64)  # gfx942, gfx950
# ds_read_b128 on gfx942: which threads of half a wavefront are served together.
READ_B128 = tuple(
    tuple(half + t for start in pair for t in range(start, start + 4))
    for half in (0, 32)
    for pair in ((0, 20), (4, 16), (8, 28), (12, 24))
)


def strided(stride, width, threads=32):
    """An access of each thread at its number times a stride of bytes."""
    return Access(tuple(t * stride for t in range(threads)), width)


@pytest.mark.parametrize(
    ("access", "banks", "cycles", "conflicts"),
    [
        (strided(4, 4), NVIDIA, 1, 0),
        (strided(0, 4), NVIDIA, 1, 0),
        (strided(8, 4), NVIDIA, 2, 1),
        (strided(128, 4), NVIDIA, 32, 31),
        (strided(132, 4), NVIDIA, 1, 0),
        (strided(2, 2), NVIDIA, 1, 0),
        (strided(1, 1), NVIDIA, 1, 0),
        (strided(8, 8), NVIDIA, 2, 0),
        (strided(16, 16), NVIDIA, 4, 0),
        (strided(32, 16), NVIDIA, 8, 4),
        (strided(128, 16), NVIDIA, 32, 28),
        (strided(144, 16), NVIDIA, 4, 0),
        (strided(4, 4, 64), LDS_32, 2, 0),
        (strided(4, 4, 64), LDS_64, 1, 0),
        (strided(8, 4, 64), LDS_32, 4, 2),
        (strided(8, 4, 64), LDS_64, 2, 1),
        (strided(16, 16, 64), LDS_32, 8, 0),
        (strided(16, 16, 64), LDS_64, 4, 0),
        (strided(256, 4, 64), LDS_64, 64, 63),
    ],
)
def test_bank_conflicts_of_known_accesses(access, banks, cycles, conflicts):
    found = bank_cycles(access, banks)
    assert (found.cycles, found.conflicts) == (cycles, conflicts)


def test_idle_threads_and_idle_phases_take_no_cycles():
    one = Access((0,) + (None,) * 31, 16)
    assert bank_cycles(one, NVIDIA).cycles == bank_cycles(one, NVIDIA).least == 1
    assert bank_cycles(Access((None,) * 32, 4), NVIDIA).cycles == 0


def test_threads_of_a_phase_need_not_be_successive():
    """An access may have conflicts between successive threads, and none in the phases of the LDS."""
    rows = tuple(128 * (t % 32) + 16 * (t % 8) for t in range(64))
    assert bank_cycles(Access(rows, 16), LDS_32).conflicts == 0
    assert bank_cycles(Access(rows, 16, READ_B128), LDS_32).conflicts == 0
    shifted = tuple(128 * (t % 32) + 16 * (t // 4 % 8) for t in range(64))
    assert bank_cycles(Access(shifted, 16), LDS_32).conflicts == 24
    assert bank_cycles(Access(shifted, 16, READ_B128), LDS_32).conflicts == 24
    pairs = tuple(16 * (t % 4 + 4 * (t // 16 % 2)) + 128 * t for t in range(64))
    assert bank_cycles(Access(pairs, 16), LDS_32).conflicts == 8
    assert bank_cycles(Access(pairs, 16, READ_B128), LDS_32).conflicts == 0
    with pytest.raises(KernelError, match="phases"):
        bank_cycles(Access(rows, 16, READ_B128[1:]), LDS_32)


@given(
    st.lists(st.integers(0, 255), min_size=64, max_size=64),
    st.sampled_from((1, 2, 4, 8, 16)),
    st.sampled_from((32, 64)),
)
def test_cycles_are_the_words_of_the_busiest_bank(places, width, count):
    access = Access(tuple(p * width for p in places), width)
    together = min(count, count * 4 // width)
    cycles = 0
    for first in range(0, 64, together):
        words = {
            (o + i) // 4 for o in access.offsets[first : first + together] for i in range(width)
        }
        cycles += max(sum(w % count == bank for w in words) for bank in range(count))
    assert bank_cycles(access, Banks(count)).cycles == cycles


@pytest.mark.parametrize(
    ("access", "count", "least"),
    [
        (strided(4, 4), 4, 4),
        (strided(8, 4), 8, 4),
        (strided(128, 4), 32, 4),
        (strided(16, 16), 16, 16),
        (strided(0, 4), 1, 1),
        (Access(tuple(4 + 4 * t for t in range(32)), 4), 5, 4),
        (strided(2, 2), 2, 2),
        (Access((None,) * 32, 4), 0, 0),
    ],
)
def test_sectors_of_known_accesses(access, count, least):
    assert (sectors(access, 32), least_sectors(access, 32)) == (count, least)


def test_a_layout_gives_an_access_for_each_vector():
    """Rows of 64 elements: 8 threads a row, 8 elements each."""
    found = accesses(parse("((8,4),(8,2)):((8,64),(1,256))"), element_bytes=2, vector=8)
    assert [a.width for a in found] == [16, 16]
    assert found[0].offsets[:9] == (0, 16, 32, 48, 64, 80, 96, 112, 128)
    assert found[1].offsets[0] == 512
    assert sectors(found[0], 32) == least_sectors(found[0], 32) == 16


@pytest.mark.parametrize(
    ("layout", "vector", "fault"),
    [
        ("(32,4):(4,1)", 3, "no vectors of 3"),
        ("(32,4):(1,32)", 2, "not adjacent"),
        ("(32,4):(5,1)", 2, "not aligned"),
        ("(32,16):(16,1)", 16, "64 bytes"),
    ],
)
def test_an_access_that_is_none_is_refused(layout, vector, fault):
    with pytest.raises(KernelError, match=fault):
        accesses(parse(layout), 4, vector)


def admits(layout, vector):
    """Whether each thread's registers in vectors are adjacent, aligned elements."""
    threads, registers = layout[0].size, layout[1].size
    return registers % vector == 0 and all(
        layout(t, first) % vector == 0 and layout(t, first + i) == layout(t, first) + i
        for t in range(threads)
        for first in range(0, registers, vector)
        for i in range(vector)
    )


@given(
    layouts().filter(lambda a: len(a) == 2),
    st.sampled_from((1, 2, 4)),
    st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(0, 8))),
)
def test_the_widest_vector_is_the_widest_that_all_threads_admit(layout, element, swizzle):
    whole = layout
    if swizzle:
        whole = ComposedLayout(Swizzle(2, swizzle[0], 3), swizzle[1], layout)
    found = widest_vector(whole, element)
    assert admits(whole, found) and found * element <= 16
    if not swizzle:
        assert all(not admits(layout, v) for v in (2, 4, 8, 16) if found < v <= 16 // element)


@pytest.mark.parametrize(
    ("layout", "alignment", "vector"),
    [
        ("(32,8):(8,1)", 16, 8),
        ("(32,8):(8,1)", 4, 2),
        ("(32,8):(8,1)", 12, 2),
        ("(32,(2,4)):(8,(1,2))", 16, 8),
        ("(32,6):(6,1)", 16, 2),
        ("(32,8):(12,1)", 16, 4),
        ("(32,8):(1,32)", 16, 1),
        ("Sw<3,3,3> o 0 o (32,64):(64,1)", 16, 8),
        ("Sw<3,2,3> o 0 o (32,64):(64,1)", 16, 4),
        ("Sw<3,3,3> o 4 o (32,64):(64,1)", 16, 4),
    ],
)
def test_vectors_of_16_bit_elements(layout, alignment, vector):
    assert widest_vector(parse(layout), 2, alignment) == vector


def test_a_vector_needs_threads_and_registers():
    with pytest.raises(KernelError, match="not \\(thread, register\\)"):
        widest_vector(Layout(32, 1), 2)


def copied(row_bytes, rows):
    """16-byte copies of successive threads into rows."""
    return tuple(
        Access(tuple(16 * (t + first) for t in range(32)), 16)
        for first in range(0, row_bytes * rows // 16, 32)
    )


def matrices(row_bytes, rows):
    """The addresses of ldmatrix: 8 rows of 16 bytes in each phase, over all columns."""
    return tuple(
        Access(tuple(row_bytes * (first + t) + column for t in range(32)), 16)
        for first in range(0, rows, 32)
        for column in range(0, row_bytes, 16)
    )


@pytest.mark.parametrize(
    ("row_bytes", "chosen"),
    [
        (16, "Sw<0,4,3>"),
        (32, "Sw<1,4,3>"),
        (64, "Sw<2,4,3>"),
        (128, "Sw<3,4,3>"),
        (256, "Sw<3,4,4>"),
        (48, "Sw<0,4,3>"),
        (192, "Sw<2,4,3>"),
    ],
)
def test_the_swizzles_of_rows_that_ldmatrix_reads(row_bytes, chosen):
    """32, 64 and 128 bytes: those of TMA. 48 = 3 x 16 needs none; 192 bytes are 96 elements."""
    patterns = copied(row_bytes, 64) + matrices(row_bytes, 64)
    assert str(choose_swizzle(patterns, NVIDIA, 64 * row_bytes)) == chosen


def test_a_transposed_tile_of_words_needs_chunks_of_a_word():
    """32 x 32 of 4 bytes, written by rows and read by columns."""
    rows = tuple(strided(4, 4) for _ in range(32))
    columns = tuple(Access(tuple(128 * t + 4 * c for t in range(32)), 4) for c in range(32))
    assert choose_swizzle(rows + columns, NVIDIA, 4096) is None
    assert str(choose_swizzle(rows + columns, NVIDIA, 4096, chunk_bytes=4)) == "Sw<5,2,5>"


def test_a_swizzle_that_would_leave_the_tile_is_not_chosen():
    """Three rows of 48 bytes: no block of two chunks divides 144 bytes."""
    pattern = (Access((0, 128), 16, ((0, 1),)),)
    assert choose_swizzle(pattern, NVIDIA, 144) is None
    assert str(choose_swizzle(pattern, NVIDIA, 256)) == "Sw<1,4,3>"


@given(
    st.sampled_from((32, 48, 64, 96, 128, 160, 192, 256, 384)),
    st.sampled_from((NVIDIA, LDS_64)),
    st.sampled_from((8, 16, 32)),
)
def test_a_chosen_swizzle_has_no_conflicts_and_stays_in_the_tile(row_bytes, banks, rows):
    patterns = tuple(
        Access(tuple(row_bytes * (t % rows) + column for t in range(32)), 16)
        for column in range(0, row_bytes, 16)
    )
    tile = row_bytes * rows
    chosen = choose_swizzle(patterns, banks, tile)
    if chosen is not None:
        assert all(bank_cycles(a.swizzled(chosen), banks).conflicts == 0 for a in patterns)
        assert sorted(map(chosen, range(tile))) == list(range(tile))


def test_a_swizzle_moves_accesses_as_the_layout_says():
    """Bytes of a swizzled layout of elements are those of the access that is swizzled."""
    layout = row_major((32, 8))
    (plain,) = accesses(layout, 2, 8)
    (moved,) = accesses(ComposedLayout(Swizzle(1, 3, 2), 0, layout), 2, 8)
    assert moved == plain.swizzled(Swizzle(1, 4, 2))
    with pytest.raises(KernelError, match="apart"):
        plain.swizzled(Swizzle(1, 3, 3))
