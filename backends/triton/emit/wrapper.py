"""The wrapper: a function named after the kernel, which checks its inputs and reads sizes from their shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from backends.gpu.program import sizes_of
from backends.triton.signature import size_sources
from ir.nest.nest import LoopNest
from ir.spec import Expr, Spec, Tensor

SizeSource = tuple[str, str, int, int]  # a size and its source: see `size_sources`


@dataclass(frozen=True, slots=True)
class Dimension:
    """A required dimension of an input."""

    size: Expr
    known: bool  # whether its sizes are known by then


@dataclass(frozen=True, slots=True)
class Require:
    """Refuses an input for which the kernel is not built."""

    tensor: str
    dtype: str
    shape: tuple[Dimension, ...]
    first: str  # the input that determines the device


@dataclass(frozen=True, slots=True)
class Told:
    """Reads a size from a dimension of a tensor."""

    size: str
    tensor: str
    dim: int
    shift: int  # added to the dimension


@dataclass(frozen=True, slots=True)
class Short:
    """Refuses a tensor whose shape gives a negative size."""

    size: str
    tensor: str


@dataclass(frozen=True, slots=True)
class Derived:
    """Computes a size from others."""

    size: str
    value: Expr


LauncherLine = Require | Told | Short | Derived


def size_lines(nest: LoopNest, used: Collection[str]) -> tuple[LauncherLine, ...]:
    """The lines that read sizes from shapes, and derive others."""
    derived, used = _derived(nest.spec, used)
    return (*(Told(*source) for source in size_sources(nest) if source[0] in used), *derived)


def wrapper_lines(nest: LoopNest, made: Collection[str]) -> tuple[LauncherLine, ...]:
    """The lines that check each input and each tensor to which a part is stored, and read the sizes
    of the outputs from shapes.

    A dimension is compared as soon as its sizes are known. An input is checked again at the end
    where another input determines one of its sizes, or where a size is derived or appears in two of
    its dimensions.
    """
    sources = size_sources(nest)
    names = {t.name for t in nest.spec.inputs}
    known = {size for size, tensor, *_ in sources if tensor not in names}
    checks: list[tuple[Require, list[SizeSource]]] = []  # each with the sizes to be read after it
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
    """The lines that read a size from an input; a dimension that exceeds its size may be too small."""
    size, tensor, _, shift = source
    if used or shift < 0:
        yield Told(*source)
    if shift < 0:
        yield Short(size, tensor)


def _derived(spec: Spec, used: Collection[str]) -> tuple[list[Derived], set[str]]:
    """The derived sizes that are used, and all sizes that are then used."""
    found: list[Derived] = []
    used = set(used)
    for name, expr in reversed(spec.derived):
        if name in used:
            found.insert(0, Derived(name, expr))
            used |= sizes_of(expr)
    return found, used
