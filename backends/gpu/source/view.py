"""The view of a kernel for the templates: its thread program and what surrounds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from backends.backend import BackendError
from backends.gpu.source.layouts import BYTES, Counted, Padded, registers, stage_size
from backends.gpu.source.scopes import scoped
from backends.gpu.threads import thread as of
from backends.gpu.threads.constants import constant, constants
from backends.gpu.threads.expressions import changed, rewritten
from backends.gpu.threads.signals import Signal, TensorMap
from backends.gpu.threads.thread import (
    Accumulator,
    Axis,
    Element,
    Fragment,
    Launch,
    Producer,
    Shared,
    ThreadProgram,
)
from backends.gpu.tile import Compute, Converted, Masked, Name, Shares
from ir.digest import spec_digest, text_digest
from ir.nest.nest import LoopNest, Parameter
from ir.sizes import bind
from ir.spec import DTYPES, SMALL, Equation, Expr, Number, Size, Spec

ALIGNED = 1024  # alignment of a region in bytes: the period of the widest swizzle
SIGNALS, SIGNAL_BYTES = "signals", 8  # the region of signals, and bytes of one stage
_TRUTH = frozenset("lt le gt ge eq ne isnan isinf isfinite".split())
_KEPT = frozenset(("and", "or", "xor", "not"))  # functions that return booleans for booleans


@dataclass(frozen=True, slots=True)
class Region:
    """A part of shared memory, for tiles that are never live together."""

    name: str
    start: str  # its first byte: a number, or a name
    sizes: tuple[tuple[Expr | int, ...], ...]  # the factors of the bytes of each tile
    end: str  # a name for its end where that is no number; else empty


@dataclass(frozen=True, slots=True)
class Kernel:
    """A launch as a function."""

    name: str
    equations: tuple[Equation, ...]
    parameters: tuple[Parameter, ...]
    written: frozenset[str]  # tensors
    arguments: tuple[str | Name, ...]  # sizes, and the step of a recurrence
    fixed: tuple[str, ...]  # sizes that are compile-time constants
    attributes: tuple[tuple[str, float | int | bool], ...]
    threads: int
    warp: int  # threads of a warp
    registers: int  # limit per thread; 0: the compiler chooses
    resident: int
    tiles: tuple[Expr, ...]
    fragments: tuple[Fragment, ...]
    counts: tuple[Counted, ...]
    shared: tuple[Shared, ...]
    regions: tuple[Region, ...]
    starts: tuple[str, ...]  # of the tiles in shared memory, in bytes
    once: tuple[of.Statement, ...]
    body: tuple[of.Statement, ...]
    signals: tuple[tuple[Signal, str], ...]  # with the first byte of each
    maps: tuple[TensorMap, ...]
    producer: Producer | None
    cluster: Name | None  # the constant with the cluster size
    end: tuple[of.Statement, ...]
    shares: Shares | None
    consumers: int  # consumer groups
    steps: tuple[Name, Expr] | None  # a counter and its end
    accumulators: tuple[Accumulator, ...]  # in tensor memory

    def fragment(self, name: Name) -> Fragment:
        """The fragment with this name."""
        return next(f for f in self.fragments if f.name == name)

    def tile(self, name: Name) -> Shared:
        """The shared memory tile with this name."""
        return next(t for t in self.shared if t.name == name)


def kernel_view(spec: Spec, nest: LoopNest, program: ThreadProgram) -> dict[str, Any]:
    """The values for the template of sources. spec: before names were made legal. program: with
    distinct constants (`distinct`)."""
    sizes = bind(nest.spec, dict(nest.sizes))
    found: dict[str | Name, int] = {}
    for launch in program.launches:
        found |= macros(launch, sizes)
    return {
        "spec": nest.spec,
        "digests": {"spec": spec_digest(spec), "schedule": text_digest(str(nest.schedule))},
        "sizes": nest.sizes,
        "constants": tuple(found.items()),
        "launches": tuple(_kernel(one, program) for one in program.launches),
    }


def macros(launch: Launch, sizes: Mapping[str, float]) -> dict[str | Name, int]:
    """The constants of a launch that a build sets, by the name or size after which they are called."""
    found: dict[str | Name, int] = {}
    if launch.specialized:
        found |= {s: int(sizes[s]) for s in launch.sizes}
    return found | constants(launch.constants, sizes)


def distinct(program: ThreadProgram) -> ThreadProgram:
    """The program with distinct names of constants: a file has the constants of all launches, so
    those of one name with different values are numbered."""
    meant: dict[Name, list[Expr]] = {}
    groups = []
    for repeat, launches in program.groups:
        groups.append((repeat, tuple(_named_apart(launch, meant) for launch in launches)))
    return replace(program, groups=tuple(groups))


def _named_apart(launch: Launch, meant: dict[Name, list[Expr]]) -> Launch:
    """A launch with its constants numbered. meant: the values of each name so far, in order."""
    changes: dict[Expr, Name] = {}
    for name, given in launch.constants:
        value = rewritten(given, changes.get)
        known = meant.setdefault(name, [])
        if value not in known:
            known.append(value)
        if number := known.index(value):
            changes[name] = replace(name, copy=number)
    return changed(launch, changes.get) if changes else launch


def _kernel(launch: Launch, program: ThreadProgram) -> Kernel:
    _require_held(launch)
    dtypes = {f.name: f for f in launch.fragments}
    wide = {n for n, f in dtypes.items() if f.dtype == "f64"}
    launch = changed(launch, lambda e: _doubled(e, wide))
    parameters = {p.name: p for p in program.tensors}
    launch = changed(launch, lambda e: _spelled(e, dtypes))
    counts: list[Counted] = []
    launch = changed(launch, lambda e: None, lambda a: _counted(a, counts))
    stored = [s.place for s in of.statements(launch.once + launch.body) if isinstance(s, of.Store)]
    stored += [s.flag for s in of.statements(launch.body) if isinstance(s, of.Raise)]
    stored += [launch.shares.counter] if launch.shares else []  # beside the flags of blocks
    written = frozenset(place.tensor.stem for place in stored)  # type: ignore[attr-defined]
    once, body = scoped(launch)
    parts = regions(launch)
    starts = {r.name: r.start for r in parts}
    step = (launch.step,) if launch.step else ()
    return Kernel(
        name=launch.name,
        equations=launch.equations,
        parameters=tuple(parameters[t] for t in launch.tensors),
        written=written,
        arguments=(*(() if launch.specialized else launch.sizes), *step),
        fixed=launch.sizes if launch.specialized else (),
        attributes=launch.attributes,
        threads=launch.threads,
        warp=launch.warp,
        registers=launch.registers,
        resident=launch.resident,
        tiles=launch.tiles,
        fragments=launch.fragments,
        counts=tuple(counts),
        shared=launch.shared,
        regions=parts,
        starts=tuple(_start(t, starts) for t in launch.shared),
        once=once,
        body=body,
        signals=tuple(_placed(launch.signals, starts)),
        maps=launch.maps,
        producer=_scoped_producer(launch),
        cluster=launch.cluster,
        end=launch.end,
        shares=launch.shares,
        consumers=launch.consumers,
        steps=launch.steps,
        accumulators=launch.accumulators,
    )


def _start(tile: Shared, starts: Mapping[str, str]) -> str:
    """The first byte of a tile. starts: of regions."""
    start = starts[tile.region]
    return f"{start} + {tile.begin * DTYPES[tile.dtype]}" if tile.begin else start


def _scoped_producer(launch: Launch) -> Producer | None:
    """The producers' statements with their own declarations."""
    if launch.producer is None:
        return None
    once, body = scoped(replace(launch, once=launch.producer.once, body=launch.producer.body))
    return replace(launch.producer, once=once, body=body)


def _placed(signals: tuple[Signal, ...], starts: Mapping[str, str]) -> Iterator[tuple[Signal, str]]:
    """Signals with their start addresses, consecutively."""
    at = 0
    for signal in signals:
        start = starts[SIGNALS]
        yield signal, str(int(start) + at) if start.isdigit() else f"{start} + {at}"
        at += SIGNAL_BYTES * signal.stages


def _spelled(expr: Expr, fragments: Mapping[Name, Fragment]) -> Expr | None:
    """An element without the axes along which threads have one register; `not` of integers as a
    bitwise complement. None: unchanged."""
    match expr:
        case Masked(mask, Element(name), Number() as other) if _short(name, fragments):
            typed = Converted(other, fragments[name].dtype)
            parts = (rewritten(e, lambda e: _spelled(e, fragments)) for e in (*mask, expr.value))
            *limits, value = parts
            return Masked(tuple(limits), value, typed)
        case Element(name, axes) if name in fragments:
            own = fragments[name].axes
            left = tuple(a for a, axis in zip(axes, own, strict=True) if registers(axis) != 1)
            return Element(name, left)
        case Compute("not", (value,)) if not _truth(value, fragments):
            return Compute("complement", (rewritten(value, lambda e: _spelled(e, fragments)),))
    return None


def _doubled(expr: Expr, wide: Set[Name]) -> Expr | None:
    """An f64 expression with its constants in f64. None: it has no f64. wide: the f64 fragments."""

    def change(e: Expr) -> Expr | None:
        number = isinstance(e, Number) and isinstance(e.value, float)
        return Converted(e, "f64") if number else None

    held = (isinstance(e, Element) and e.name in wide for e in expr.walk())
    made = (isinstance(e, Converted) and e.dtype == "f64" for e in expr.walk())
    return rewritten(expr, change) if any(held) or any(made) else None


def _short(name: Name, fragments: Mapping[Name, Fragment]) -> bool:
    """Whether a fragment has 16-bit or narrower floats, to whose dtype constants are converted."""
    return name in fragments and fragments[name].dtype in ("f16", "bf16", *SMALL)


def _truth(expr: Expr, fragments: Mapping[Name, Fragment]) -> bool:
    """Whether an expression is a boolean."""
    match expr:
        case Element(name) if name in fragments:
            return fragments[name].dtype == "b8"
        case Compute(function, args) if function in _KEPT or function == "where":
            return _truth(args[-1], fragments)
        case Compute(function):
            return function in _TRUTH
        case Number(value):
            return isinstance(value, bool)
    kept = getattr(expr, "value", None)
    if isinstance(expr, Masked) and isinstance(kept, Expr):
        return _truth(kept, fragments)
    return getattr(expr, "dtype", "b8") == "b8" and not isinstance(expr, Size)


def regions(launch: Launch) -> tuple[Region, ...]:
    """The regions of tiles and of signals in order, those of constant size first."""
    sizes: dict[str, list[tuple[Expr | int, ...]]] = {}
    for tile in launch.shared:
        sizes.setdefault(tile.region, []).append(_bytes(tile))
    if launch.signals:
        sizes[SIGNALS] = [(SIGNAL_BYTES * sum(s.stages for s in launch.signals),)]
    found: list[Region] = []
    at, known = 0, ""
    for name, own in sorted(sizes.items(), key=lambda item: not _numbers(item[1])):
        start = known or str(at)
        if _numbers(own):
            at += _rounded(max(_product(size, {}) for size in own))
        else:
            known = f"shared_{len(found) + 1}"
        found.append(Region(name, start, tuple(own), known))
    return tuple(found)


def shared_bytes(launch: Launch, known: Mapping[Name, int]) -> int:
    """Bytes of shared memory of a launch. known: its constants."""
    return sum(
        _rounded(max(_product(size, known) for size in region.sizes)) for region in regions(launch)
    )


def _numbers(sizes: list[tuple[Expr | int, ...]]) -> bool:
    return all(len(size) == 1 for size in sizes)


def _rounded(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _bytes(tile: Shared) -> tuple[Expr | int, ...]:
    """The factors of a tile's bytes, the constant first."""
    number, rest = BYTES[tile.dtype] * tile.stages, []
    for f in stage_size(tile):
        if isinstance(f, int):
            number *= f
        else:
            rest.append(f)
    return (number, *rest)


def _product(factors: tuple[Expr | int, ...], known: Mapping[Name, int]) -> int:
    total = 1
    for f in factors:
        match f:
            case int():
                total *= f
            case Padded(extent, padding):
                total *= constant(extent, {}, known) + padding
            case _:
                total *= constant(f, {}, known)
    return total


def _counted(axis: Axis, known: list[Counted]) -> Axis:
    """The axis with a name for its number of registers, unless that is a constant."""
    if registers(axis) is not None:
        return axis
    same = [a for a in known if a.index == axis.index]
    for one in same:
        if (one.register.size, one.span, one.width) == (axis.register.size, axis.span, axis.width):
            return replace(one, thread=axis.thread, register=axis.register)
    own = (axis.index, axis.thread, axis.register, axis.span, axis.width)
    known.append(Counted(*own, len(same)))
    return known[-1]


def _require_held(launch: Launch) -> None:
    """Raises BackendError where a dtype has no representation in registers or memory."""
    for dtype in (*(f.dtype for f in launch.fragments), *(t.dtype for t in launch.shared)):
        if dtype not in BYTES:
            raise BackendError("emit", f"values of {dtype} are not held here")
