"""Random layouts for property tests."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from backends.gpu.layout.layout import IntTuple, Layout, column_major, flatten

EXTENTS = st.sampled_from((1, 2, 2, 3, 4, 4, 5, 6, 8))


@st.composite
def shapes(draw, most: int = 200) -> IntTuple:
    """A shape of up to three modes, each of which may have two; at most `most` coordinates."""
    inner = st.one_of(EXTENTS, st.tuples(EXTENTS, EXTENTS))
    outer = st.one_of(EXTENTS, st.lists(inner, min_size=1, max_size=3).map(tuple))
    return draw(outer.filter(lambda shape: prod(flatten(shape)) <= most))


@st.composite
def layouts(draw, most: int = 200) -> Layout:
    """Any layout, with random strides."""
    shape = draw(shapes(most))
    return Layout(shape, _like(shape, lambda: draw(st.integers(0, 12))))


@st.composite
def compact_layouts(draw, most: int = 200) -> Layout:
    """A permutation of the indices below its size, with modes in any order."""
    shape = draw(shapes(most))
    extents = flatten(shape)
    strides, reached = [0] * len(extents), 1
    for mode in draw(st.permutations(range(len(extents)))):
        strides[mode], reached = reached, reached * extents[mode]
    found = iter(strides)
    return Layout(shape, _like(shape, lambda: next(found)))


@st.composite
def spread_layouts(draw, most: int = 120) -> Layout:
    """An injective layout with gaps that a complement fills."""
    shape = draw(shapes(most))
    extents = flatten(shape)
    strides, reached = [0] * len(extents), 1
    for mode in draw(st.permutations(range(len(extents)))):
        strides[mode] = reached * draw(st.sampled_from((1, 1, 2, 3)))
        reached = strides[mode] * extents[mode]
    found = iter(strides)
    return Layout(shape, _like(shape, lambda: next(found)))


@st.composite
def tilers(draw, size: int) -> Layout:
    """A layout of one or two modes over `size` elements, whose steps divide them."""
    step = draw(st.sampled_from(divisors(size)))
    first = draw(st.sampled_from(divisors(size // step)))
    rest = size // step // first
    second = draw(st.sampled_from(divisors(rest)))
    return draw(
        st.sampled_from((Layout(first, step), Layout((first, second), (step, step * first))))
    )


def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a number."""
    return tuple(d for d in range(1, number + 1) if number % d == 0)


def column_majors(most: int = 200) -> st.SearchStrategy[Layout]:
    """Compact layouts whose first mode is fastest."""
    return shapes(most).map(column_major)


def _like(shape: IntTuple, made) -> IntTuple:
    return tuple(_like(one, made) for one in shape) if isinstance(shape, tuple) else made()
