"""Prints tile programs for people and models; no code parses the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from backends.gpu import tile as to
from backends.gpu.flags import Acquire, AcquireAll, Publish
from backends.gpu.program import TileProgram
from backends.gpu.tile import CONSTANTS, Launch, Name, Shares, Statement
from ir.nest.nest import Repeat
from ir.spec import Apply, Expr, Index, Number, Size

_SIGNS = (
    {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%"}
    | {"quotient": "//", "remainder": "%", "and": "&", "or": "|", "xor": "^"}
    | {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    | {"shl": "<<", "shr": ">>"}
)


def program_text(program: TileProgram) -> str:
    """The text of a program, launch by launch."""
    lines = [f"program {program.name}"]
    for repeat, launches in program.groups:
        lines += [repeat_text(repeat)] if repeat else []
        lines += [line for one in launches for line in ("", *_launch(one))]
    return "\n".join(lines) + "\n"


def statement_lines(block: Iterable[Statement], depth: int = 0) -> Iterator[str]:
    """The lines of statements."""
    pad = "    " * depth
    for s in block:
        match s:
            case to.Loop(body=body):
                yield pad + _loop(s)
                yield from statement_lines(body, depth + 1)
            case to.Guard(condition, body, others):
                yield f"{pad}if {scalar_text(condition)}:"
                yield from statement_lines(body, depth + 1)
                if others:
                    yield f"{pad}else:"
                    yield from statement_lines(others, depth + 1)
            case _:
                yield pad + _line(s)


def scalar_text(e: Expr) -> str:
    """The text of an expression; a scalar one is Python."""
    match e:
        case Number(value):
            return str(value)
        case Size(name):
            return name
        case Index(name):
            return f"{name}_at"
        case Name():
            return _name(e)
        case Apply(function, args) | to.Compute(function, args):
            return _applied(function, args)
        case to.Tiles(size, tile):
            return f"cdiv({scalar_text(size)}, {tile})"
        case to.Outer(number, group):
            return f"({scalar_text(number)} // ({scalar_text(group)}))"
        case to.FromEnd(count, number):
            return f"({scalar_text(count)} - 1 - {scalar_text(number)})"
        case to.BlockWidth(size, least):
            return f"max({least}, next_power_of_2({scalar_text(size)}))"
        case to.Even(size, width):
            return f"fills({scalar_text(size)}, {scalar_text(width)})"
        case to.Bits(number):
            return f"bits({scalar_text(number)})"
        case to.Describable(row, aligned, widths, most):
            aligns = [f"{scalar_text(row)} % {aligned} == 0"] if row is not None else []
            return " and ".join([*aligns, *(f"{scalar_text(w)} <= {most}" for w in widths)])
        case to.FirstProgram():
            return "first program"
    return _tensor(e)


def _tensor(e: Expr) -> str:
    text = scalar_text
    match e:
        case to.Spread(value, axes):
            return f"{text(value)}[{', '.join(':' if a else 'None' for a in axes)}]"
        case to.Permuted(value, order):
            return f"permute({text(value)}, {order})"
        case to.Reshaped(value, shape) | to.Broadcast(value, shape):
            return f"{type(e).__name__.lower()}({text(value)}, {_listed(shape)})"
        case to.Full(value, shape, dtype):
            return f"full({_listed(shape)}, {text(value)}, {dtype})"
        case to.Converted(value, dtype):
            return f"{dtype}({text(value)})"
        case to.Power(value, less, factor, apart):
            by = f" * {text(factor)}" if factor is not None else ""
            how = "exp2 of the difference" if apart else "exp2"
            return f"exp({text(value)}{by} - {text(less)}) by {how}"
        case to.Masked(mask, value, other):
            return f"where({_all(mask)}, {text(value)}, {text(other)})"
        case to.Reduced(reduction, value, axis, nan):
            return f"{reduction}({text(value)}, axis={axis}{', nan' if nan else ''})"
        case to.Scanned(reduction, value, axis):
            return f"cum{reduction}({text(value)}, axis={axis})"
        case to.Joined(reduction, onto, value, nan):
            return f"join {reduction}({text(onto)}, {text(value)}{', nan' if nan else ''})"
        case to.Truth(value):
            return f"({text(value)} != 0)"
        case to.Scaled(value, factor):
            return f"{text(value)} * {text(factor)}"
        case to.Product(a, b, onto, dtype, scales):
            added = f", onto={text(onto)}" if onto is not None else ""
            rest = f", scales={' and '.join(map(text, scales))}" if scales else ""
            return f"matmul({text(a)}, {text(b)}{added}, {dtype}{rest})"
        case to.Ranked(keys, table, count, steps):
            return f"rank({text(keys)}, {text(table)}[:{text(count)}], {text(steps)})"
        case to.Check(at, below, equal):
            bound = f"< {text(below)}" if below is not None else ">= 0"
            return f"({text(at)} {bound if equal is None else f'== {text(equal)}'})"
        case to.Term(value, stride, wide):
            first = f"i64({text(value)})" if wide else text(value)
            return " * ".join([first, *map(text, stride)])
        case to.Place(tensor, terms):
            return f"{text(tensor)}[{' + '.join(map(text, terms)) or '0'}]"
        case to.Entry(to.Place() as place, other):
            return f"load {text(place)}{_masked(place.mask, other)}"
    raise AssertionError(f"no text for {type(e).__name__}")


def _line(s: Statement) -> str:
    text = scalar_text
    match s:
        case to.Assign(name, value):
            return f"{_name(name)} = {text(value)}"
        case to.Positions(name, origin, width):
            start = f"{text(origin)} + " if origin is not None else ""
            return f"{_name(name)} = {start}arange({text(width)})"
        case to.Bounds(name, positions, end, even):
            flag = f" or {text(even)}" if even is not None else ""
            return f"{_name(name)} = {text(positions)} < {text(end)}{flag}"
        case to.StepOrigin(name, step, within, count, tile):
            inner = f" // ({text(within)})" if within is not None else ""
            outer = f" % ({text(count)})" if count is not None else ""
            return f"{_name(name)} = {text(step)}{inner}{outer} * {tile}"
        case to.Load(name, place, other):
            return f"{_name(name)} = load {text(place)}{_masked(place.mask, other)}"
        case to.Store(place, value, reduction):
            how = f" by atomic {reduction}" if reduction else ""
            return f"store {text(place)}{_masked(place.mask)} = {text(value)}{how}"
        case Publish(flag):
            return f"publish {text(flag)}"
        case Acquire(flag):
            return f"acquire {text(flag)}"
        case AcquireAll(first, count):
            return f"acquire {text(count)} flags from {text(first)} on"
        case to.BoxLoad(name, box):
            return f"{_name(name)} = copy {_box(box)}"
        case to.BoxStore(box, value):
            return f"copy {_box(box)} = {text(value)}"
    raise AssertionError(f"no text for {type(s).__name__}")


def _loop(s: to.Loop) -> str:
    notes = [f"by {s.tile}"] if s.tile != 1 else []
    notes += [f"{s.stages} stages"] if s.stages else []
    notes += ["unrolled"] if s.unrolled else []
    notes += [f"unrolled by {s.unroll}"] if s.unroll and not s.unrolled else []
    ends = f"{scalar_text(s.low)}..{scalar_text(s.high)}"
    return f"for {', '.join([f'{_name(s.name)} in {ends}', *notes])}:"


def _launch(one: Launch) -> Iterator[str]:
    limit = f", at most {one.registers} registers a thread" if one.registers else ""
    head = f"launch {one.name}({', '.join(one.tensors)})"
    yield f"{head}: {one.warps} warps, {one.stages} stages{limit}"
    yield from grid_lines(one.tiles, one.resident)
    yield from sizes_lines(one.sizes, one.specialized)
    yield from (f"    constant {n} = {value}" for n, value in one.attributes)
    yield from (f"    constant {_name(n)} = {scalar_text(value)}" for n, value in one.constants)
    for d in one.descriptors:
        yield f"    box {_name(d.name)} of {d.tensor}: {_listed(d.box)}"
    yield from statement_lines(one.once, 1)
    if one.shares is not None:
        yield from statement_lines(one.shares.before, 1)
    yield tiles_line(one.shares, scalar_text, one.steps)
    yield from statement_lines((*one.grid, *one.body), 2)


def tiles_line(
    shares: Shares | None, text: Callable[[Expr], str], steps: tuple[Name, Expr] | None = None
) -> str:
    """How a block iterates over tiles, or over the steps of its tile."""
    if steps is not None:
        counter, end = map(text, steps)
        return f"    for {counter} in 0..{end}, all blocks together:"
    if shares is None:
        return "    for each tile:"
    first, last, counter = map(text, (shares.first, shares.last, shares.counter))
    return f"    for each tile from {last} down to {first}, block by {counter}:"


def grid_lines(tiles: Iterable[Expr], resident: int) -> Iterator[str]:
    """The grid of a launch. resident: persistent blocks; 0: one block for each tile."""
    product = " * ".join(f"({scalar_text(t)})" for t in tiles) or "1"
    yield f"    grid {product}" + (f", {resident} resident" if resident else "")


def sizes_lines(sizes: tuple[str, ...], specialized: bool) -> Iterator[str]:
    """The sizes that a launch reads, if any. specialized: whether they are compile-time constants."""
    if sizes:
        yield f"    sizes {', '.join(sizes)}{' as constants' if specialized else ''}"


def repeat_text(repeat: Repeat) -> str:
    order = " backwards" if repeat.backwards else ""
    return f"\nfor {repeat.index}_at in 0..{scalar_text(repeat.size)}{order}, each after the last"


def _name(n: Name) -> str:
    stem = n.stem.upper() if n.sort in CONSTANTS else n.stem
    sort = "" if n.sort == "value" else {"origin": "at"}.get(n.sort, n.sort)
    sort = sort.upper() if n.sort in CONSTANTS else sort
    dim = str(n.dim) if n.dim >= 0 else ""
    return "_".join(part for part in (stem, sort + dim, str(n.copy or "")) if part)


def _applied(function: str, args: tuple[Expr, ...]) -> str:
    if function in _SIGNS:
        return f"({scalar_text(args[0])} {_SIGNS[function]} {scalar_text(args[1])})"
    called = {"minimum": "min", "maximum": "max"}.get(function, function)
    return f"{called}({', '.join(map(scalar_text, args))})"


def _listed(parts: Iterable[Expr]) -> str:
    return f"[{', '.join(map(scalar_text, parts))}]"


def _all(mask: Iterable[Expr]) -> str:
    return " & ".join(map(scalar_text, mask))


def _masked(mask: tuple[Expr, ...], other: Expr | None = None) -> str:
    if not mask:
        return ""
    return f" if {_all(mask)}" + (f" else {scalar_text(other)}" if other is not None else "")


def _box(box: to.Box) -> str:
    held = "" if box.shape == box.held else f" as {_listed(box.held)}"
    return f"{_name(box.descriptor)}{_listed(box.at)} of {_listed(box.shape)}{held}"
