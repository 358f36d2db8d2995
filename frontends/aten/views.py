"""Views: the same elements under another shape, order or choice of positions."""

from __future__ import annotations

from collections.abc import Sequence

from frontends.aten.table import rule
from frontends.axes import axis
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, product
from frontends.positions import counted, known, moved
from ir.errors import KernelError
from ir.spec import Expr, Index, Number

Dims = int | Sequence[int]


@rule(
    "alias",
    "alias_copy",
    "clone",
    "contiguous",
    "detach",
    "detach_copy",
    "lift_fresh_copy",
    "view_as_real",
    "view_as_complex",
)
def alias(b: Builder, out: Meta, self: Value, *_: object) -> Value:
    """A tensor never changes, so a copy is the tensor itself; complex ones are held as real."""
    return self


@rule(
    "view",
    "_unsafe_view",
    "view_copy",
    "reshape",
    "_reshape_alias",
    "_reshape_copy",
    "flatten",
    "unflatten",
    "ravel",
    "squeeze",
    "squeeze_copy",
    "unsqueeze",
    "unsqueeze_copy",
    "view_as",
    "reshape_as",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
)
def view(b: Builder, out: Meta, self: Value, *_: object, **__: object) -> Value:
    """Another shape, which PyTorch has worked out."""
    if self.dtype != out.dtype:
        raise KernelError(f"bits of {self.dtype} are seen as {out.dtype}", hint="cast: x.to(dtype)")
    return b.reshape(self, out.shape)


@rule("expand", "expand_copy", "expand_as", "broadcast_to")
def expand(b: Builder, out: Meta, self: Value, *_: object, **__: object) -> Value:
    if self.shape == out.shape:
        return self
    return b.define(out, lambda *at: b.operand(self, at))


@rule("copy")
def copy(b: Builder, out: Meta, self: Value, src: Value, *_: object, **__: object) -> Value:
    """The elements of `src`, broadcast and cast."""
    return src if src.meta == out else b.define(out, lambda *at: b.operand(src, at))


@rule("permute", "permute_copy")
def permute(b: Builder, out: Meta, self: Value, dims: Sequence[int]) -> Value:
    order = [axis(d, self.rank) for d in dims]
    if order == sorted(order):
        return self
    return b.define(out, lambda *at: self.at(*(at[order.index(d)] for d in range(self.rank))))


@rule("transpose", "transpose_copy", "swapaxes", "swapdims")
def transpose(b: Builder, out: Meta, self: Value, dim0: int, dim1: int) -> Value:
    order = list(range(self.rank))
    if order:
        one, other = axis(dim0, self.rank), axis(dim1, self.rank)
        order[one], order[other] = order[other], order[one]
    return permute(b, out, self, order)


@rule("t", "t_copy", "numpy_T", "mT", "adjoint")
def t(b: Builder, out: Meta, self: Value) -> Value:
    return self if self.rank < 2 else transpose(b, out, self, -2, -1)


@rule("movedim", "moveaxis")
def movedim(b: Builder, out: Meta, self: Value, source: Dims, destination: Dims) -> Value:
    sources = [axis(d, self.rank) for d in _list(source)]
    targets = [axis(d, self.rank) for d in _list(destination)]
    order = [d for d in range(self.rank) if d not in sources]
    for to, d in sorted(zip(targets, sources, strict=True)):
        order.insert(to, d)
    return permute(b, out, self, order)


def _list(dims: Dims) -> list[int]:
    return [dims] if isinstance(dims, int) else list(dims)


@rule("select", "select_copy")
def select(b: Builder, out: Meta, self: Value, dim: int, index: int | Expr) -> Value:
    dim = axis(dim, self.rank)
    place = counted(index, self.shape[dim])
    return b.define(out, lambda *at: self.at(*at[:dim], place, *at[dim:]))


def clipped(start: int | Expr | None, size: Expr) -> Expr:
    """Where a slice starts: those beyond an end start there."""
    place = counted(0 if start is None else start, size)
    if isinstance(place, Number) and isinstance(size, Number):
        return Number(min(max(place.value, 0), size.value))
    return place


def stepped(i: Index, start: Expr, step: Term = 1) -> Expr:
    """The position of an element of a slice."""
    place = i if step == 1 else i * step
    return place if start == Number(0) else place + start


@rule("slice", "slice_copy")
def slice(
    b: Builder,
    out: Meta,
    self: Value,
    dim: int = 0,
    start: int | Expr | None = None,
    end: int | Expr | None = None,
    step: int = 1,
) -> Value:
    """Every `step`th element from `start` on, as many as the result has."""
    dim = axis(dim, self.rank)
    if self.shape == out.shape:
        return self
    first = clipped(start, self.shape[dim])
    return b.define(out, lambda *at: self.at(*moved(at, dim, stepped(at[dim], first, step))))


@rule("narrow", "narrow_copy")
def narrow(
    b: Builder, out: Meta, self: Value, dim: int, start: int | Expr, length: int | Expr
) -> Value:
    if isinstance(start, Value):
        raise KernelError("`narrow` starts at an element of a tensor", allowed="a number")
    return slice(b, out, self, dim, start)


@rule("flip", "fliplr", "flipud")
def flip(b: Builder, out: Meta, self: Value, dims: Sequence[int]) -> Value:
    flipped = {axis(d, self.rank) for d in dims}

    def mirrored(*at: Index) -> Expr:
        return self.at(
            *(counted(-1, self.shape[d]) - i if d in flipped else i for d, i in enumerate(at))
        )

    return b.define(out, mirrored)


@rule("roll")
def roll(b: Builder, out: Meta, self: Value, shifts: Dims, dims: Dims = ()) -> Value:
    """Without dims, of the elements in row-major order."""
    if not _list(dims):
        flat = b.reshape(self, (product(self.shape),))
        return b.reshape(roll(b, flat.meta, flat, shifts, 0), out.shape)
    by = dict.fromkeys(range(self.rank), 0)
    for shift, d in zip(_list(shifts), _list(dims), strict=True):
        by[axis(d, self.rank)] += shift

    def rolled(*at: Index) -> Expr:
        return self.at(*((i - by[d]) % self.shape[d] if by[d] else i for d, i in enumerate(at)))

    return b.define(out, rolled)


@rule("unfold", "unfold_copy")
def unfold(b: Builder, out: Meta, self: Value, dimension: int, size: int, step: int) -> Value:
    """Windows along a dimension; positions in a window are the last dimension."""
    if not self.rank:
        return b.reshape(self, out.shape)
    dim = dimension % self.rank
    return b.define(out, lambda *at: self.at(*moved(at[:-1], dim, at[dim] * step + at[-1])))


@rule("as_strided", "as_strided_copy")
def as_strided(
    b: Builder,
    out: Meta,
    self: Value,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Value:
    """Places in memory, where the tensor is taken to lie in row-major order from the start on."""
    size, stride = ([known(n, "a size of `as_strided`") for n in ns] for ns in (size, stride))
    count = known(product(self.shape), "a size of `as_strided`")
    first = known(storage_offset or 0, "the offset of `as_strided`")
    last = first + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if last >= count:
        raise KernelError(
            f"`as_strided` reads place {last} of a tensor of {count} elements",
            allowed=f"0 to {count - 1}",
            hint="views of views by strides: use slices, permute and reshape",
        )
    flat = b.reshape(self, (count,))

    def strided(*at: Index) -> Expr:
        place: Expr = Number(first)
        for i, step in zip(at, stride, strict=True):
            term = i if step == 1 else i * step
            place = term if place == Number(0) else place + term
        return flat.at(place)

    return b.define(out, strided)


@rule("pixel_shuffle")
def pixel_shuffle(b: Builder, out: Meta, self: Value, upscale_factor: int) -> Value:
    """`y[c, h*r + i, w*r + j] = x[c*r*r + i*r + j, h, w]`."""
    r = upscale_factor

    def shuffled(*at: Index) -> Expr:
        *outer, c, y, x = at
        return self.at(*outer, c * (r * r) + y % r * r + x % r, y // r, x // r)

    return b.define(out, shuffled)


@rule("pixel_unshuffle")
def pixel_unshuffle(b: Builder, out: Meta, self: Value, downscale_factor: int) -> Value:
    """The inverse of `pixel_shuffle`."""
    r = downscale_factor

    def shuffled(*at: Index) -> Expr:
        *outer, c, y, x = at
        return self.at(*outer, c // (r * r), y * r + c // r % r, x * r + c % r)

    return b.define(out, shuffled)


@rule("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(b: Builder, out: Meta, self: Value, groups: int) -> Value:
    """Channels of groups in turn: the first of each group, the second of each, and so on."""
    each = known(self.shape[1], "the number of channels") // groups

    def shuffled(n: Index, c: Index, *at: Index) -> Expr:
        return self.at(n, c % groups * each + c // groups, *at)

    return b.define(out, shuffled)
