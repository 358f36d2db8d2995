"""CuTe's operations on layouts: composition, complement, inverses, divisions and products.

A tiler is a layout, an integer n for `n:1`, None for no change, or a tuple with a tiler for each of
the first modes. An undefined operation, by CuTe's divisibility conditions, raises KernelError. As
in CuTe, composition extends the last mode of the outer layout beyond its extent. So a division by a
tile that does not divide also covers the remainder, which the caller masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from backends.gpu.layout.layout import IntTuple, Layout, concatenate
from backends.gpu.layout.swizzle import ComposedLayout
from ir.errors import KernelError

Tiler: TypeAlias = "Layout | int | None | tuple[Tiler, ...]"
Mapped = TypeVar("Mapped", Layout, ComposedLayout)
_TRIVIAL = Layout(1, 0)


def coalesce(layout: Layout, profile: IntTuple = 1) -> Layout:
    """The same function of linear indices with the fewest modes; mode by mode where the profile is a tuple."""
    if isinstance(profile, tuple):
        return _by_mode(coalesce, layout, profile)
    found: list[tuple[int, int]] = []
    for extent, stride in layout.flat:
        if extent == 1:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = (found[-1][0] * extent, found[-1][1])
        else:
            found.append((extent, stride))
    return _of_modes(found)


def composition(outer: Mapped, inner: Tiler) -> Mapped:
    """The layout R with R(c) = outer(inner(c)) and the modes of `inner`."""
    if isinstance(outer, ComposedLayout):
        within = composition(outer.layout, inner)
        return ComposedLayout(outer.swizzle, outer.offset, within)
    if inner is None:
        return outer
    if isinstance(inner, tuple):
        return _by_mode(composition, outer, inner)
    inner = _as_layout(inner)
    return _composed(outer, inner, coalesce(outer).flat)


def complement(layout: Layout, size: int = 1) -> Layout:
    """The layout whose indices, added to this one's, reach each index below `size` once.

    It extends beyond `size` where this layout, or a part of it, does. Modes of stride 0 are
    ignored.
    """
    found = []
    reached = 1
    for stride, extent in sorted((d, s) for s, d in layout.flat if s > 1 and d > 0):
        if stride % reached:
            raise KernelError(
                f"`{layout}` has no complement: its stride {stride} is no multiple of {reached}, "
                "which the modes of smaller strides span",
                allowed="strides that are multiples of the span of the modes below",
            )
        found.append((stride // reached, reached))
        reached = extent * stride
    return coalesce(_of_modes([*found, (-(-size // reached), reached)]))


def right_inverse(layout: Layout) -> Layout:
    """A layout R with layout(R(i)) = i, as far as the sorted strides are contiguous."""
    modes = []
    domain = 1  # stride of a mode in the linear index of the domain
    for extent, stride in layout.flat:
        modes.append((stride, extent, domain))
        domain *= extent
    found = []
    reached = 1
    for stride, extent, domain in sorted(modes):
        if extent == 1 or stride == 0:
            continue
        if stride != reached:
            break
        found.append((extent, domain))
        reached *= extent
    return coalesce(_of_modes(found))


def left_inverse(layout: Layout) -> Layout:
    """A layout L with L(layout(i)) = i. Raises KernelError where two coordinates share an index."""
    if any(extent > 1 and stride == 0 for extent, stride in layout.flat):
        raise KernelError(
            f"`{layout}` has no left inverse: coordinates share an index",
            allowed="strides of 1 or more",
        )
    return right_inverse(concatenate(layout, complement(layout)))


def logical_divide(layout: Mapped, tiler: Tiler) -> Mapped:
    """The layout as (tile, rest): composed with the tiler and its complement."""
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return _by_mode(logical_divide, layout, tiler)
    tile = _as_layout(tiler)
    return composition(layout, concatenate(tile, complement(tile, layout.size)))


def zipped_divide(layout: Mapped, tiler: Tiler) -> Mapped:
    """A division by mode, with all tiles in the first mode and all rests in the second."""
    if isinstance(layout, ComposedLayout):
        within = zipped_divide(layout.layout, tiler)
        return ComposedLayout(layout.swizzle, layout.offset, within)
    if tiler is None:
        return concatenate(_TRIVIAL, layout)
    if not isinstance(tiler, tuple):
        return logical_divide(layout, tiler)
    _require_modes(layout, len(tiler))
    modes = list(layout)
    pairs = [zipped_divide(mode, one) for mode, one in zip(modes, tiler)]
    rest = [pair[1] for pair in pairs] + modes[len(tiler) :]
    return concatenate(concatenate(*(pair[0] for pair in pairs)), concatenate(*rest))


def tiled_divide(layout: Mapped, tiler: Tiler) -> Mapped:
    """The zipped division with a mode for each rest: (tile, rest, rest, ...)."""
    if isinstance(layout, ComposedLayout):
        within = tiled_divide(layout.layout, tiler)
        return ComposedLayout(layout.swizzle, layout.offset, within)
    tile, rest = zipped_divide(layout, tiler)
    return concatenate(tile, *rest)


def logical_product(layout: Layout, tiler: Tiler) -> Layout:
    """The layout repeated according to a tiler, (layout, repetitions): copy i starts at the index
    that the layout's complement has at tiler(i)."""
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return _by_mode(logical_product, layout, tiler)
    tile = _as_layout(tiler)
    free = complement(layout, layout.size * tile.cosize)
    return concatenate(layout, composition(free, tile))


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """The product mode by mode, ((block, tiler), ...): each copy of the block is contiguous."""
    return _zipped(*_repeated(block, tiler))


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """The product mode by mode, ((tiler, block), ...): the copies of the block interleave."""
    copies, repetitions = _repeated(block, tiler)
    return _zipped(repetitions, copies)


def _repeated(block: Layout, tiler: Layout) -> tuple[Layout, Layout]:
    """Block and repetitions of a product, with equal rank."""
    rank = max(len(block), len(tiler))
    one, other = (concatenate(*a, *[_TRIVIAL] * (rank - len(a))) for a in (block, tiler))
    block, repetitions = logical_product(one, other)
    return block, repetitions


def _zipped(first: Layout, second: Layout) -> Layout:
    return concatenate(*map(concatenate, first, second))


def _as_layout(tiler: Layout | int) -> Layout:
    return tiler if isinstance(tiler, Layout) else Layout(tiler, 1)


def _of_modes(modes: Sequence[tuple[int, int]]) -> Layout:
    """The layout with these modes, each an extent and a stride; an integer where there is only one."""
    if len(modes) < 2:
        return Layout(*modes[0]) if modes else _TRIVIAL
    return Layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))


def _require_modes(layout: Layout | ComposedLayout, count: int) -> None:
    if count > len(layout):
        raise KernelError(
            f"a tiler of {count} modes does not fit `{layout}`", allowed=f"{len(layout)} at most"
        )


def _by_mode(operation: Callable, layout: Mapped, tilers: tuple) -> Mapped:
    """Applies an operation to each of the first modes; the others remain."""
    if isinstance(layout, ComposedLayout):
        within = _by_mode(operation, layout.layout, tilers)
        return ComposedLayout(layout.swizzle, layout.offset, within)
    _require_modes(layout, len(tilers))
    modes = list(layout)
    changed = [operation(mode, tiler) for mode, tiler in zip(modes, tilers)]
    return concatenate(*changed, *modes[len(tilers) :])


def _composed(outer: Layout, inner: Layout, flat: Sequence[tuple[int, int]]) -> Layout:
    """Composition mode by mode. flat: the outer layout's coalesced modes."""
    if isinstance(inner.shape, tuple):
        return concatenate(*(_composed(outer, mode, flat) for mode in inner))
    assert isinstance(inner.stride, int), "the stride is as nested as the shape"
    rest, step = inner.shape, inner.stride
    if rest == 1 or step == 0:
        return Layout(rest, 0)
    found = []
    for extent, stride in flat[:-1]:
        # A mode that ends within this one needs no divisibility.
        if (rest - 1) * step < extent:
            flat = ((extent, stride),)
            break
        if step % extent == 0:
            step //= extent
            continue
        if extent % step or rest % (extent // step):
            raise KernelError(
                f"`{outer}` cannot be composed with `{inner}`: steps of {step} over {rest} "
                f"elements do not fit a mode of {extent}",
                allowed="steps that divide the mode or are its multiples, and whole modes",
            )
        found.append((extent // step, step * stride))
        rest, step = rest // (extent // step), 1
    if rest > 1:
        found.append((rest, step * flat[-1][1]))
    return _of_modes(found)
