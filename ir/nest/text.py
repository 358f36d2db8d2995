"""Prints a loop nest: its launches, their grids and values, and one statement a line.

`a :+ n` denotes the n positions starting at `a`, in which an index is the origin of its tile.
`where` names the bounds of the last tile: no statement touches elements beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from ir.functions import SCANS
from ir.machine import Machine
from ir.nest.nest import (
    Bound,
    Dot,
    Fill,
    Launch,
    Load,
    Loop,
    LoopNest,
    Map,
    Recall,
    Reduction,
    Scan,
    Search,
    Slice,
    Statement,
    Store,
    Take,
    Tile,
    Value,
)
from ir.print import expression_text, number_text
from ir.sizes import free_sizes
from ir.spec import Expr, Number, Size
from ir.visit import rebuilt

_STEP = "  "
_SCAN_NAMES = {reduction: name for name, reduction in SCANS.items()}


def nest_text(nest: LoopNest, machine: Machine) -> str:
    """All launches of a nest in order, ending in a newline. machine: decides where values are
    held."""
    order = {name: n for n, name in enumerate(free_sizes(nest.spec))}  # not that of the caller
    known = sorted(nest.sizes, key=lambda one: order.get(one[0], len(order)))
    sizes = ", ".join(f"{name}={size}" for name, size in known)
    head = f"nest of {nest.spec.name} for {nest.machine}" + (f" at {sizes}" if sizes else "")
    launches = ("\n".join(_launch(launch, machine)) for launch in nest.launches)
    return "\n\n".join((head, *launches)) + "\n"


def _launch(launch: Launch, machine: Machine) -> Iterator[str]:
    yield f"launch {launch.name}({', '.join(launch.sizes)})"
    for p in launch.parameters:
        yield f"{_STEP}{p.role} {p.name}: {p.dtype}[{_list(p.shape)}]"
    grid = (f"{g.index} < {_text(g.size)} by {g.tile}" for g in launch.grid)
    yield f"{_STEP}grid {', '.join(grid) or 'of one block'}"
    for line in _mapping(launch):
        yield _STEP + line
    for value in launch.values:
        yield f"{_STEP}{space_of(value, launch, machine)} {_value(value)}"
    ends = {g.index: _text(g.size) for g in launch.grid}
    writer = _Writer(launch, {index: tile for index, tile in launch.tiles if tile > 1})
    for name, block in (("prologue", launch.once), ("body", launch.body)):
        if block:
            yield f"{_STEP}{name}:"
            yield from writer.block(block, ends, _STEP * 2)


def _mapping(launch: Launch) -> Iterator[str]:
    """The mapping of a launch's blocks onto the machine, and its tilings."""
    if launch.rasterization:
        rasterization = launch.rasterization
        yield f"rasterize: groups of {rasterization.size} tiles of {rasterization.index} along all of {rasterization.over}"
    if launch.cluster:
        yield f"clusters of {launch.cluster.size} tiles of {launch.cluster.index}"
    if launch.threads:
        yield f"threads {launch.threads}"
    if launch.resident:
        yield f"persistent, {launch.resident} blocks a processor"
    if launch.stream_k:
        yield f"equal shares of all iterations over {launch.stream_k.index} of all tiles"
    if launch.registers:
        yield f"at most {launch.registers} registers a thread"
    if launch.roles:
        own = f" with {launch.roles.registers} registers each" if launch.roles.registers else ""
        yield f"{launch.roles.producers} producers{own}"
    if launch.pingpong:
        yield "two groups of threads take turns with tiles"
    if launch.specialized:
        yield "compiled for each set of sizes"
    if step := launch.repeat:
        order = ", from the last to the first" if step.backwards else ""
        yield f"again for each {step.index} < {_text(step.size)}{order}, recurrence of {step.of}"
    if launch.meeting:
        yield "all steps in one cooperative launch, with a grid barrier between them"
    if launch.tiles:
        yield f"tiles {', '.join(f'{index}={tile}' for index, tile in launch.tiles)}"
    if launch.whole:
        yield f"untiled {', '.join(f'{index} < {_text(size)}' for index, size in launch.whole)}"


def space_of(value: Value, launch: Launch, machine: Machine) -> str:
    """The memory space that holds a value."""
    return machine.model.space_of(value, launch)


def _matmul(s: Dot) -> str:
    """The decisions on a matmul."""
    ahead = ", what comes before it one ahead" if s.ahead else ""
    shape = ", by m{}n{}k{}".format(*s.instruction) if s.instruction else ""
    warps = ", warps {} x {}".format(*s.warps) if s.warps else ""
    return shape + warps + (", one iteration later" if s.overlaps else "") + ahead


def _value(value: Value) -> str:
    axes = ", ".join(f"{a.name}={_text(a.extent)}" for a in value.axes)
    of = f" of {value.tensor}" if value.tensor != value.name else ""
    loaded = ", loaded" if value.loaded else ""
    stages = f", {value.stages} stages" if value.stages > 1 else ""
    stages = f", kept in {_text(value.slots)} slots" if value.slots is not None else stages
    rows = ""
    if value.rows is not None:
        panel, padding = value.rows.panel, value.rows.padding
        rows = f", swizzled in {panel} bytes" if panel else f", rows padded by {padding} bytes"
        rows = rows if panel or padding else ""
        rows = f", copied past the registers in {panel} bytes" if value.rows.direct else rows
        rows += ", a part of a window" if value.rows.window else ""
    return f"{value.name}: {value.dtype}[{axes}]{of}{loaded}{stages}{rows}"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Prints the statements of one launch."""

    launch: Launch
    tiles: Mapping[str, int]  # of the indices whose last tile can be partial

    def block(
        self, block: tuple[Statement, ...], ends: Mapping[str, str], indent: str
    ) -> Iterator[str]:
        """The lines of a block. ends: the bound of each index that is tiled around it."""
        for s in block:
            if not isinstance(s, Loop):
                yield indent + self._line(s, ends)
                continue
            low, high = self._bound(s.low), self._bound(s.high)
            order = ", from the last to the first" if s.backwards else ""
            order += f", unrolled by {s.unroll}" if s.unroll else ""
            yield f"{indent}for {s.index} in {low} .. {high} by {s.tile}{order}:"
            yield from self.block(s.body, {**ends, s.index: high}, indent + _STEP)

    def _line(self, s: Statement, ends: Mapping[str, str]) -> str:
        match s:
            case Load():
                return self._load(s, ends)
            case Store():
                return self._store(s, ends)
            case Fill(value, number):
                return f"{value} = {number_text(number)}"
            case Map(value, expression):
                return f"{value} = {_text(expression)}"
            case Reduction(value, reduction, source, over, accumulate):
                part = f"{reduction}({_text(source)}, {', '.join(over)})"
                return f"{value} = " + (f"{reduction}({value}, {part})" if accumulate else part)
            case Dot(value, a, b, over, accumulate):
                sign = "+=" if accumulate else "="
                made = f"{value} {sign} matmul({_text(a)}, {_text(b)}, {', '.join(over)})"
                scales = f", scales {' and '.join(map(_text, s.scales))}" if s.scales else ""
                return made + scales + _matmul(s)
            case Scan(value, reduction, source, along, carry):
                name = _SCAN_NAMES[reduction]
                return f"{value} = {name}({_text(source)}, {along}, carry={carry})"
            case Recall(value, index):
                return f"{value} = kept at {index}"
            case Search(value, source, borders, count):
                given = f"{_text(source)}, {_text(borders)}, count={_text(count)}"
                return f"{value} = bucketize({given})"
            case Take(value, table, axis, count, at):
                given = f"{_text(table)}, {axis}, count={_text(count)}, at={_text(at)}"
                return f"{value} = take({given})"
        raise KernelError(
            f"there is no text for the statement {type(s).__name__}",
            hint="add it to ir/nest/text.py",
        )

    def _load(self, s: Load, ends: Mapping[str, str]) -> str:
        said = [f"{s.value} = load {self._region(s.tensor, s.region, s.value)}"]
        said += self._where(s.region, ends)
        said += [f"out of bounds {number_text(s.pad)}"] if s.pad is not None else []
        said += [f"broadcast along {s.shared}"] if s.shared else []
        said += ["by bulk copy"] if s.bulk else []
        said += [f"hint {s.cache}"] if s.cache else []
        return ", ".join(said)

    def _store(self, s: Store, ends: Mapping[str, str]) -> str:
        sign = f"atomic {s.reduction}=" if s.reduction else "="
        said = [f"store {self._region(s.tensor, s.region, s.value)} {sign} {s.value}"]
        said += self._where(s.region, ends)
        if s.epilogue is not None:
            columns = f", {s.epilogue.columns} columns at a time" if s.epilogue.columns else ""
            said += [f"from {s.epilogue.by}{columns}"]
        said += [f"only at {', '.join(f'{index} = 0' for index in s.once)}"] if s.once else []
        said += ["by bulk copy"] if s.bulk else []
        said += [f"hint {s.cache}"] if s.cache else []
        return ", ".join(said)

    def _where(self, region: tuple[Slice, ...], ends: Mapping[str, str]) -> list[str]:
        """The bounds of a region's last tiles."""
        placed = dict.fromkeys(i for one in region if not one.whole for i, _ in one.terms)
        bounds = [f"{i} < {ends[i]}" for i in placed if i in self.tiles and i in ends]
        return [f"where {' and '.join(bounds)}"] if bounds else []

    def _region(self, tensor: str, region: tuple[Slice, ...], value: str) -> str:
        return f"{tensor}[{', '.join(self._slice(one, value) for one in region) or '()'}]"

    def _slice(self, one: Slice, value: str) -> str:
        if one.rows is not None:
            walked = ", ".join(_affine((term,), Number(0)) for term in one.terms)
            along = f" along {walked}" if walked else ""
            more = "" if one.offset == Number(0) else f" + {_text(one.offset)}"
            return f"at {_text(one.rows)}{more}{along}"
        start = _affine((), one.offset) if one.whole else _affine(one.terms, one.offset)
        if one.axis is None:
            return start
        axes = {a.name: a for a in self.launch.value(value).axes}
        axis = "" if one.axis in dict(one.terms) else f" as {one.axis}"
        step = f" step {one.step}" if one.step != 1 else ""
        return f"{start} :+ {_text(axes[one.axis].extent)}{step}{axis}"

    def _bound(self, bound: Bound) -> str:
        if bound.size is not None:
            return _text(bound.size)
        return f"{bound.tensor}[{self._slice(bound.entry, '')}]"


def _affine(terms: tuple[tuple[str, int], ...], offset: Expr) -> str:
    """`2 * p + i - 1`."""
    text = " + ".join(i if c == 1 else f"{c} * {i}" for i, c in terms)
    if offset == Number(0):
        return text or "0"
    more = _text(offset)
    if not text:
        return more
    return f"{text} - {more[1:]}" if more.startswith("-") else f"{text} + {more}"


def _text(expr: Expr) -> str:
    return expression_text(_named(expr))


def _named(expr: Expr) -> Expr:
    """The expression with its tiles as names, which is all that its printer supports."""
    return Size(_tile(expr)) if isinstance(expr, Tile) else rebuilt(expr, _named)


def _tile(tile: Tile) -> str:
    """A value's name, with the windows that it is indexed through: `x{p_i: 2 * p + i, k: part}`."""
    seen = [f"{w.axis}: {_affine(w.terms, Number(0))}" for w in tile.windows]
    seen += [f"{axis}: part" for axis in tile.shifted]
    return tile.value + (f"{{{', '.join(seen)}}}" if seen else "")


def _list(sizes: tuple[Expr, ...]) -> str:
    return ", ".join(map(_text, sizes)) or "()"
