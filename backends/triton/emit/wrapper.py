"""The wrapper: the function named after a kernel, which checks its inputs and reads sizes off them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from backends.gpu.program import sizes_of
from backends.triton.signature import size_sources
from ir.nest.nest import LoopNest
from ir.spec import Expr, Spec, Tensor

SizeSource = tuple[str, str, int, int]  # a size, and where it is told: see `size_sources`


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension that an input must have."""

    size: Expr
    known: bool  # whether it is a number by then


@dataclass(frozen=True, slots=True)
class Require:
    """Refuses an input that the kernel is not built for."""

    tensor: str
    dtype: str
    shape: tuple[Dimension, ...]
    first: str  # the input whose device counts


@dataclass(frozen=True, slots=True)
class Told:
    """Reads a size off a dimension of a tensor."""

    size: str
    tensor: str
    dim: int
    shift: int  # what is added to the dimension


@dataclass(frozen=True, slots=True)
class Short:
    """Refuses a tensor that tells a size less than 0."""

    size: str
    tensor: str


@dataclass(frozen=True, slots=True)
class Derived:
    """Computes a size from others."""

    size: str
    value: Expr


LauncherLine = Require | Told | Short | Derived


def size_lines(nest: LoopNest, used: Collection[str]) -> tuple[LauncherLine, ...]:
    """What reads sizes off shapes, and derives others."""
    derived, used = _derived(nest.spec, used)
    return (*(Told(*source) for source in size_sources(nest) if source[0] in used), *derived)


def wrapper_lines(nest: LoopNest, made: Collection[str]) -> tuple[LauncherLine, ...]:
    """What checks each input and each tensor that a part is stored to, and reads the sizes of what is made
    off shapes.

    A dimension is compared as soon as its sizes are known. An input is checked again at the end
    where other inputs tell a size of it, or a size is derived, or stands in two of its dimensions.
    """
    sources = size_sources(nest)
    names = {t.name for t in nest.spec.inputs}
    known = {size for size, tensor, *_ in sources if tensor not in names}
    checks: list[tuple[Require, list[SizeSource]]] = []  # and the sizes to be read below it
    again: list[Tensor] = []
    used = set(made)
    for t in nest.spec.inputs:
        own = [s for s in sources if s[1] == t.name]
        dims = tuple(Dimension(e, sizes_of(e) <= known) for e in t.shape)
        open_ = {n for n, one in enumerate(dims) if not one.known}
        if open_ - {dim for _, _, dim, _ in own}:
            again.append(t)
        checks.append((_require(nest.spec, t, dims), own))
        known |= {size for size, *_ in own}
        used |= sizes_of(*(one.size for one in dims if one.known))
    last = [_require(nest.spec, t, tuple(Dimension(e, True) for e in t.shape)) for t in again]
    used |= sizes_of(*(t.shape for t in again))
    parts = [t for t in nest.spec.outputs if t.part is not None]
    last += [_require(nest.spec, t, tuple(Dimension(e, True) for e in t.memory)) for t in parts]
    used |= sizes_of(*(t.memory for t in parts))
    derived, used = _derived(nest.spec, used)
    first = [
        line
        for check, own in checks
        for line in (check, *(x for s in own for x in _told(s, s[0] in used)))
    ]
    return (*first, *derived, *last)


def _require(spec: Spec, t: Tensor, shape: tuple[Dimension, ...]) -> Require:
    return Require(t.name, t.dtype, shape, (*spec.inputs, t)[0].name)


def _told(source: SizeSource, used: bool) -> Iterator[LauncherLine]:
    """What reads a size off an input; one that is less than its dimension may be too small."""
    size, tensor, _, shift = source
    if used or shift < 0:
        yield Told(*source)
    if shift < 0:
        yield Short(size, tensor)


def _derived(spec: Spec, used: Collection[str]) -> tuple[list[Derived], set[str]]:
    """The derived sizes that are used, and all that are used then."""
    found: list[Derived] = []
    used = set(used)
    for name, expr in reversed(spec.derived):
        if name in used:
            found.insert(0, Derived(name, expr))
            used |= sizes_of(expr)
    return found, used
