"""Padding: a tensor with more around it, or (where a number is below 0) less."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from frontends.aten.table import Rule, rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, call
from frontends.positions import counted
from ir.errors import KernelError
from ir.spec import Expr, Index

Inside = Callable[[Expr, Expr], Expr]  # of a position and a size: the position that is read


def _reflected(place: Expr, size: Expr) -> Expr:
    last = counted(-1, size)
    return last - call("abs", last - call("abs", place))


def _nearest(place: Expr, size: Expr) -> Expr:
    return call("minimum", call("maximum", place, 0), counted(-1, size))


def _around(place: Expr, size: Expr) -> Expr:
    return place % size


_MODES: dict[str, Inside] = {
    "reflect": _reflected,
    "replicate": _nearest,
    "circular": _around,
}


def _sides(pad: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """Before and after each dimension; `pad` has them from the last dimension on."""
    given = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)]
    return [(0, 0)] * (rank - len(given)) + given[::-1]


def _read(self: Value, sides: list[tuple[int, int]], at: Sequence[Index], inside: Inside) -> Expr:
    """What padding by positions inside reads."""
    places: list[Expr] = []
    for i, side, size in zip(at, sides, self.shape, strict=True):
        place = i - side[0] if side[0] > 0 else i + -side[0] if side[0] else i
        places.append(inside(place, size) if max(side) > 0 else place)
    return self.at(*places)


@rule("constant_pad_nd")
def constant_pad_nd(
    b: Builder, out: Meta, self: Value, pad: Sequence[int], value: Term | None = 0
) -> Value:
    if self.shape == out.shape and not any(pad):
        return self
    sides = _sides(pad, self.rank)

    def body(*at: Index) -> Expr:
        places = [i - side[0] if side[0] else i for i, side in zip(at, sides, strict=True)]
        return self.at(*places, pad=float(value or 0))

    return b.define(out, body)


def _padded(mode: str) -> Rule:
    def padded(b: Builder, out: Meta, self: Value, padding: Sequence[int]) -> Value:
        sides = _sides(padding, self.rank)
        return b.define(out, lambda *at: _read(self, sides, at, _MODES[mode]))

    return padded


rule("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")(_padded("reflect"))
rule("replication_pad1d", "replication_pad2d", "replication_pad3d")(_padded("replicate"))


@rule("_pad_circular")
def pad_circular(b: Builder, out: Meta, self: Value, pad: Sequence[int]) -> Value:
    return _padded("circular")(b, out, self, pad)


@rule("pad")
def pad(
    b: Builder,
    out: Meta,
    self: Value,
    pad: Sequence[int],
    mode: str = "constant",
    value: Term | None = None,
) -> Value:
    if mode == "constant":
        return constant_pad_nd(b, out, self, pad, value)
    if mode not in _MODES:
        raise KernelError(f"`pad` is given the mode {mode!r}", allowed=f"constant, {_MODES.keys()}")
    return _padded(mode)(b, out, self, pad)
