"""Spelling: the templates of CuTe DSL, and filters for values beyond those of all languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from backends.emit import Templates
from backends.gpu.source.layouts import BYTES, overshoots, registers
from backends.gpu.source.spelling import FILTERS
from backends.gpu.source.view import Kernel
from backends.gpu.threads import thread as of
from backends.gpu.threads.expressions import changed
from backends.gpu.threads.thread import Accumulator, Axis, Element, Launch, Shared, ThreadProgram
from backends.gpu.tile import CONSTANTS, Converted, Entry, FirstProgram, Name
from ir.spec import Expr, Size

LINE = 100  # columns
_EIGHT = ("f8e4m3", "f8e5m2")  # 8-bit floats
_WIDER = dict.fromkeys(("f16", "bf16", *_EIGHT), "f32") | dict.fromkeys(("i16", "i8", "u8"), "i32")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Promoted(Expr):
    """An element in the type that it is computed in: a short float as f32, a short integer as i32."""

    value: Expr
    dtype: str


@cache
def templates() -> Templates:
    """The templates of CuTe DSL."""
    own = (
        axes,
        axis_name,
        results,
        named,
        fixed,
        broken,
        swizzle_bytes,
        documentation,
        ordered,
        eight_bits,
        own_columns,
        columns_before,
        accumulator,
        signal_stages,
    )
    filters = {f.__name__: f for f in (*own, select_overshoots, cute_count)}
    return Templates("cutedsl", filters=FILTERS | filters)


def promoted(program: ThreadProgram) -> ThreadProgram:
    """The program in which short elements are promoted where they are operands."""
    groups = [
        (repeat, tuple(_promoted(launch) for launch in launches))
        for repeat, launches in program.groups
    ]
    return replace(program, groups=tuple(groups))


def _promoted(launch: Launch) -> Launch:
    wider = {f.name: _WIDER[f.dtype] for f in launch.fragments if f.dtype in _WIDER}

    def change(e: Expr) -> Expr | None:
        match e:
            case Promoted() | Converted(Element()):
                return e
            case Element(name) if name in wider:
                return Promoted(e, wider[name])
        return None

    return changed(launch, change) if wider else launch


def axes(kernel: Kernel) -> list[tuple[str, Axis]]:
    """The axes whose layouts a kernel uses, each with a name."""
    found: list[tuple[str, Axis]] = []
    for axis in _used(kernel):
        if all(known != axis for _, known in found):
            same = sum(known.index == axis.index for _, known in found)
            found.append((f"{axis.index}_axis" + (f"_{same}" if same else ""), axis))
    return found


def _used(kernel: Kernel) -> Iterator[Axis]:
    blocks = [kernel.once, kernel.body]
    if kernel.producer:
        blocks += [kernel.producer.once, kernel.producer.body]
    for s in of.statements(tuple(s for b in blocks for s in b)):
        inner = getattr(s, "statement", s)
        match inner:
            case of.Positions(name):
                yield kernel.fragment(name).axes[0]
            case of.SharedStore(name=name) | of.SharedLoad(name=name, by=""):
                yield from kernel.fragment(name).axes
            case of.Copy(axes=own):
                yield from own


def axis_name(kernel: Kernel, axis: Axis) -> str:
    """The name of an axis' layout."""
    return next(name for name, known in axes(kernel) if known == axis)


def results(kernel: Kernel) -> frozenset[Name]:
    """Fragments that are accumulators of warpgroups. Their registers have the instruction's order."""
    blocks = (*kernel.once, *kernel.body)
    return frozenset(s.to for s in of.statements(blocks) if isinstance(s, of.WarpgroupMultiply))


def ordered(kernel: Kernel, name: Name) -> tuple[Any, ...]:
    """The layout of the registers of a matrix operand, which are packed in the instruction's order.
    For M or N, and for K: the modes of one issue, and how many registers of the axis they cover;
    then the number of registers. Empty for other fragments."""
    for s in of.statements((*kernel.once, *kernel.body)):
        i = getattr(s, "instruction", None)
        if i is None or name not in (s.a, s.b):
            continue
        offsets, steps = (i.a, i.a_steps) if name == s.a else (i.b, i.b_steps)
        bits = [(1 << n, offsets[1 << n]) for n in range(len(offsets).bit_length() - 1)]
        parts = tuple(
            ([(2, b) for b, at in sorted(bits, key=lambda bit: bit[1]) if at[axis]], steps[axis])
            for axis in (0, 1)
        )
        return (*parts, len(offsets))
    return ()


def eight_bits(kernels: Sequence[Kernel]) -> bool:
    """Whether any of the kernels has 8-bit floats."""
    held = (x.dtype for k in kernels for x in (*k.fragments, *k.shared, *k.parameters))
    return any(dtype in _EIGHT for dtype in held)


def own_columns(kernel: Kernel, one: Accumulator, count: Any) -> str:
    """Columns of an accumulator for a warpgroup: one per register of the fragment. count: gives the
    registers of an axis."""
    number, texts = 1, []
    for axis in kernel.fragment(one.fragment).axes:
        known = registers(axis)
        number *= known or 1
        texts += [] if known else [count(axis)]
    return " * ".join([*([str(number)] if number != 1 or not texts else []), *texts])


def columns_before(kernel: Kernel, one: Accumulator | None, count: Any) -> str:
    """Columns of all accumulators before one, or of all accumulators if it is None; empty if there are none."""
    number, texts = 0, []
    for other in kernel.accumulators:
        if other == one:
            break
        own = own_columns(kernel, other, count)
        if own.isdigit():
            number += int(own) * other.groups
        else:
            texts.append(f"{own} * {other.groups}" if other.groups > 1 else own)
    return " + ".join([*([str(number)] if number else []), *texts])


def accumulator(kernel: Kernel, name: Name) -> Accumulator:
    """The accumulator with a name."""
    return next(a for a in kernel.accumulators if a.name == name)


def signal_stages(kernel: Kernel, name: Name) -> int:
    """The number of stages of a signal."""
    return next(s.stages for s, _ in kernel.signals if s.name == name)


def named(value: Expr) -> Name:
    """The fragment that an element belongs to."""
    while not isinstance(value, Element):
        value = value.value  # type: ignore[attr-defined]
    return value.name


def fixed(condition: Expr) -> bool:
    """Whether a condition is known at build time."""
    parts = list(condition.walk())
    names = [e for e in parts if isinstance(e, Name)]
    return all(e.sort in (*CONSTANTS, "aligned") for e in names) and not any(
        isinstance(e, Size | Element | of.Thread | FirstProgram | Entry) for e in parts
    )


def select_overshoots(own: Sequence[Axis]) -> list[Axis]:
    """The axes whose last registers may be out of bounds."""
    return [a for a in own if overshoots(a)]


def cute_count(axis: Axis, count: Any) -> str:
    """The number of registers of an axis, as text."""
    return count(axis)


def swizzle_bytes(swizzle: Any, tile: Shared) -> str:
    """A swizzle of elements as a swizzle of bytes, which pointers take."""
    base = swizzle.base + BYTES[tile.dtype].bit_length() - 1
    return f"cute.make_swizzle({swizzle.bits}, {base}, {swizzle.shift})"


def documentation(text: str) -> str:
    """A text that is safe inside triple quotes."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


def broken(line: str) -> str:
    """A line. If it is too long, it is split after commas of its outermost brackets."""
    if len(line) <= LINE or "#" in line:
        return line
    pad = line[: len(line) - len(line.lstrip())]
    start = next(
        (n for n, c in enumerate(line) if c in "([" and _closes(line, n) == len(line) - 1), -1
    )
    if start < 0:
        return line
    parts, depth, begin = [], 0, start + 1
    for n in range(start + 1, len(line) - 1):
        depth += (line[n] in _OPEN) - (line[n] in _CLOSE)
        if line[n] == "," and depth == 0:
            parts.append(line[begin:n].strip())
            begin = n + 1
    parts.append(line[begin:-1].strip())
    inner = [broken(f"{pad}    {part},") for part in parts if part]
    return "\n".join([line[: start + 1], *inner, pad + line[-1]])


def _closes(line: str, start: int) -> int:
    depth = 0
    for n in range(start, len(line)):
        depth += (line[n] in _OPEN) - (line[n] in _CLOSE)
        if not depth:
            return n
    return -1
