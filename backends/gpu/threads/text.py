"""Prints thread programs for people and models; no code parses the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from backends.gpu.text import grid_lines, repeat_text, scalar_text, sizes_lines, tiles_line
from backends.gpu.threads import thread as to
from backends.gpu.threads.expressions import rewritten
from backends.gpu.tile import Name, Place
from ir.spec import DTYPES, Expr, Number


def program_text(program: to.ThreadProgram) -> str:
    """The text of a program, launch by launch."""
    lines = [f"program {program.name}"]
    for repeat, launches in program.groups:
        lines += [repeat_text(repeat)] if repeat else []
        lines += [line for one in launches for line in ("", *_launch(one))]
    return "\n".join(lines) + "\n"


def statement_lines(block: Iterable[to.Statement], depth: int = 0) -> Iterator[str]:
    """The lines of statements."""
    pad = "    " * depth
    for s in block:
        yield pad + statement_text(s)
        match s:
            case to.Loop(body=body):
                yield from statement_lines(body, depth + 1)
            case to.Guard(_, body, others):
                yield from statement_lines(body, depth + 1)
                if others:
                    yield f"{pad}else:"
                    yield from statement_lines(others, depth + 1)


def expression_text(e: Expr) -> str:
    """The text of an expression of elements: `acc[m, n]` is the element at the current registers."""
    return scalar_text(rewritten(e, _spelled))


def statement_text(s: to.Statement) -> str:
    """The line of a statement, without nested ones."""
    text = expression_text
    match s:
        case to.Loop(name, low, high, step, _, _, certain):
            notes = [f"by {step}"] if step != 1 else []
            notes += ["unrolled"] if s.unrolled else []
            notes += ["once at least"] if certain else []
            ends = f"{text(name)} in {text(low)}..{text(high)}"
            return f"for {', '.join([ends, *notes])}:"
        case to.Guard(condition):
            return f"if {text(condition)}:"
        case to.Each(name, value):
            return f"{text(name)} = {text(value)}"
        case to.Positions(name, origin):
            start = f"{text(origin)} + " if origin is not None else ""
            return f"{text(name)} = {start}positions"
        case to.Reduce(name, reduction, value, _, over, nan):
            return f"{text(name)} = {reduction}({text(value)} over {over}{_nan(nan)})"
        case to.Shuffle(name, reduction, distances, nan):
            how = f"over threads ^ {', ^ '.join(map(str, distances))}"
            return f"{text(name)} = {reduction}({text(name)} {how}{_nan(nan)})"
        case to.Scan(name, reduction, value, over, nan, totals):
            rest = f", of each warp by itself, {text(totals)} of each" if totals else ""
            return f"{text(name)} = cum{reduction}({text(value)} along {over}{_nan(nan)}){rest}"
        case to.ScanAfter(name, before, _, reduction, over, nan):
            how = f"{reduction} of {text(before)} before{_nan(nan)}"
            return f"{text(name)} = {text(name)} after {how}, along {over}"
        case to.Multiply(name, a, b, instruction, first, a_scale, b_scale):
            start = f"[{text(first)}:]" if first is not None else ""
            how = f" by {instruction.name}" if instruction is not None else ""
            scales = f", scales {text(a_scale)} and {text(b_scale)}" if a_scale and b_scale else ""
            return f"{text(name)} += {text(a)}{start} @ {text(b)}{how}{scales}"
        case to.WarpgroupMultiply(name, a, b, instruction, _, a_stage, b_stage, pending):
            operands = f"{text(a)}{_stage(a_stage)} @ {text(b)}{_stage(b_stage)}"
            rest = f", {pending} in flight" if pending else ""
            return f"{text(name)} += {operands} by {instruction.name}{rest}"
        case to.WarpgroupWait(name, pending, after):
            rest = f", {pending} in flight" if pending else ""
            return f"wait for {text(name)}{rest}" + (f", after {text(after)}" if after else "")
        case to.TensorMultiply(
            name, a, b, instruction, _, onto, _, number, a_stage, b_stage, pending
        ):
            operands = f"{text(a)}{_stage(a_stage)} @ {text(b)}{_stage(b_stage)}"
            how = f"by {instruction.name}, number {text(number)}"
            rest = f", {pending} in flight" if pending else ""
            return f"{text(name)} = {operands}, onto it where {text(onto)}, {how}{rest}"
        case to.TensorLoad(name, source, _, number):
            return f"{text(name)} = {text(source)} after number {text(number)}"
        case to.Regroup(name, source, groups, split):
            pairs = [(one, f"({', '.join(into)})") for one, into in groups]
            each = [f"{a} as {b}" if split else f"{b} as {a}" for a, b in pairs]
            return f"{text(name)} = {text(source)}, {', '.join(each)}"
        case to.Part(name, source, axis, first):
            return f"{text(name)} = {text(source)}, {axis} from register {text(first)}"
    return _order(s)


def _order(s: to.Statement) -> str:
    """The line of a statement that orders threads, copies or the TMA."""
    text = expression_text
    match s:
        case to.Interleave(reads, matrix):
            return (
                f"interleave {reads} reads of shared memory with {matrix} matrix instructions each"
            )
        case to.Commit():
            return "commit"
        case to.Wait(pending):
            return f"wait until {pending} in flight"
        case to.Fence():
            return "fence, for the asynchronous proxy"
        case to.DeviceFence():
            return "fence, for all threads of the GPU"
        case to.Raise(flag):
            return f"raise {text(flag)}"
        case to.AwaitRaised(flag, count):
            rest = f" and those after it, {text(count)} in all; fence" if count is not None else ""
            return f"await {text(flag)}{rest}"
        case to.Await(signal, stage, parity):
            return f"await {text(signal)}{_stage(stage)}, parity {text(parity)}"
        case to.ClusterBarrier():
            return "barrier of the cluster"
        case to.Arrive(signal, stage, warps, expects, everywhere):
            rest = ", once for each warp" if warps else ""
            rest += ", in all blocks of the cluster" if everywhere else ""
            rest += f", with the bytes of {', '.join(map(text, expects))}" if expects else ""
            return f"arrive at {text(signal)}{_stage(stage)}{rest}"
        case to.Barrier(proxy):
            return "barrier, for the asynchronous proxy too" if proxy else "barrier"
    return _access(s)


def _access(s: to.Statement) -> str:
    """The line of a load, a store or a copy."""
    text = expression_text
    match s:
        case to.Load(name, place, other, vector, cache):
            return f"{text(name)} = load {_place(place, other)}{_by(vector)}{_hint(cache)}"
        case to.Store(place, value, _, copies, reduction, vector, cache):
            how = f" by atomic {reduction}" if reduction else ""
            how += f"{_by(vector)}{_copies(copies)}{_hint(cache)}"
            return f"store {_place(place)} = {text(value)}{how}"
        case to.SharedStore(tile, name, stage, copies):
            return f"{text(tile)}{_stage(stage)} = {text(name)}{_copies(copies)}"
        case to.SharedLoad(name, tile, stage, at, by):
            starts = "".join(f", {index} from {text(first)}" for index, first in at)
            how = f" by {by}" if by else ""
            return f"{text(name)} = {text(tile)}{_stage(stage)}{starts}{how}"
        case to.Copy(tile, place, _, stage, vector, cache, direct):
            how = f"{_by(vector)}{_hint(cache)}{f', {direct} bytes of each thread' * bool(direct)}"
            return f"copy {text(tile)}{_stage(stage)} = {_place(place)}{how}"
        case to.BoxStore(tile, tensor, at, cache):
            box = f"{text(tensor)}[{', '.join(map(text, at))}]"
            return f"store box {box} = {text(tile)}{_hint(cache)}"
        case to.BoxCopy(tile, tensor, at, stage, signal, part, cache):
            box = f"{text(tensor)}[{', '.join(map(text, at))}]"
            own = f", part {text(part)} of the cluster's" if part is not None else ""
            then = f"then {text(signal)}{_stage(stage)}"
            return f"copy {text(tile)}{_stage(stage)} = box {box}{own}, {then}{_hint(cache)}"
    raise AssertionError(f"no text for {type(s).__name__}")


def _launch(one: to.Launch) -> Iterator[str]:
    limit = f", at most {one.registers} registers each" if one.registers else ""
    head = f"launch {one.name}({', '.join(one.tensors)})"
    groups = f", {one.consumers} groups of them that take turns" if one.consumers > 1 else ""
    yield f"{head}: {one.threads} threads, warps of {one.warp}{limit}{groups}"
    yield from grid_lines(one.tiles, one.resident)
    if one.cluster is not None:
        yield f"    clusters of {expression_text(one.cluster)} blocks"
    yield from sizes_lines(one.sizes, one.specialized)
    yield from (f"    up to {expression_text(e)} = {most}" for e, most in one.limits)
    yield from (f"    constant {n} = {value}" for n, value in one.attributes)
    for name, value in one.constants:
        yield f"    constant {expression_text(name)} = {expression_text(value)}"
    for f in one.fragments:
        yield f"    {f.dtype} {expression_text(f.name)}" + (":" if f.axes else "")
        yield from (f"        {axis_text(a)}" for a in f.axes)
    yield from (f"    shared {shared_text(s)}" for s in one.shared)
    for m in one.maps:
        sizes, box = (", ".join(map(expression_text, e)) for e in (m.sizes, m.box))
        how = f", swizzled in {m.swizzle} bytes" if m.swizzle else ""
        how += f", in steps of {list(m.steps)}" if max(m.steps) > 1 else ""
        when = f" if {expression_text(m.described)}"
        yield f"    map {expression_text(m.name)}: {m.dtype} [{sizes}] in boxes of [{box}]{how}{when}"
    for g in one.signals:
        arrivals = f"{expression_text(g.arrivals)} arrivals"
        yield f"    signal {expression_text(g.name)}: {g.stages} stages, {arrivals}"
    for a in one.accumulators:
        where = f"columns of tensor memory for {a.groups} x 4 warps"
        yield f"    {expression_text(a.name)}: {where}, as {expression_text(a.fragment)}"
    yield from statement_lines(one.once, 1)
    yield tiles_line(one.shares, expression_text, one.steps)
    yield from statement_lines(one.body, 2)
    yield from statement_lines(one.end, 1)
    if one.producer is not None:
        yield f"    {one.producer.threads} threads that fill shared memory:"
        yield from statement_lines(one.producer.once, 2)
        yield f"    {tiles_line(one.shares, expression_text)}"
        yield from statement_lines(one.producer.body, 3)
        yield from statement_lines(one.producer.end, 2)


def axis_text(a: to.Axis) -> str:
    """The text of an axis: its layouts in CuTe notation."""
    wide = f"{expression_text(a.width)} positions, {a.span} at once"
    return f"{a.index}: thread {a.thread}, register {a.register}, {wide}"


def shared_text(s: to.Shared) -> str:
    """The text of a shared memory tile: extents, bytes where they are known, swizzle."""
    axes = ", ".join(f"{i}={expression_text(e)}" for i, e in zip(s.axes, s.extents))
    notes = [f"{s.stages} stages"] if s.stages != 1 else []
    notes += [f"rows of {s.row} axes"] if s.row != 1 else []
    notes += [f"rows padded by {s.padding}"] if s.padding else []
    notes += [f"panels of {s.panel}"] if s.panel else []
    notes += [str(s.swizzle)] if s.swizzle is not None else []
    notes += [f"region {s.region}"]
    numbers = [int(e.value) for e in s.extents if isinstance(e, Number)]
    if len(numbers) == len(s.extents):
        rows, row = (prod(part) for part in (numbers[: -s.row], numbers[-s.row :]))
        row = -(-row // s.panel) * s.panel if s.panel else row + s.padding
        notes += [f"{s.stages * rows * row * DTYPES[s.dtype]} bytes"]
    return f"{s.dtype} {expression_text(s.name)}[{axes}]: {', '.join(notes)}"


def _spelled(e: Expr) -> Expr | None:
    """A node that only thread programs have, as a name that is its text."""
    match e:
        case to.Element(name, axes):
            return Name("value", scalar_text(name) + (f"[{', '.join(axes)}]" if axes else ""))
        case to.Thread():
            return Name("value", "thread")
        case to.Exponent(power):
            return Name("value", f"exponent of {expression_text(power)}")
        case to.PowerOfTwo(exponent):
            return Name("value", f"exp2({expression_text(exponent)})")
        case to.All(conditions):
            return Name("value", " and ".join(map(expression_text, conditions)) or "True")
    return None


def _place(place: Place, other: Expr | None = None) -> str:
    masked = "".join(
        f" {'&' if n else 'if'} {expression_text(m)}" for n, m in enumerate(place.mask)
    )
    rest = f" else {expression_text(other)}" if place.mask and other is not None else ""
    return f"{expression_text(place)}{masked}{rest}"


def _by(vector: to.Vector | None) -> str:
    if vector is None:
        return ""
    when = f" if {expression_text(vector.aligned)}" if vector.aligned is not None else ""
    return f", {vector.count} along {vector.axis} at once{when}"


def _copies(copies: int) -> str:
    return f", by threads & {copies} == 0" if copies else ""


def _stage(stage: Expr | None) -> str:
    return f"[{expression_text(stage)}]" if stage is not None else ""


def _hint(cache: str) -> str:
    return f", hint {cache}" if cache else ""


def _nan(nan: bool) -> str:
    return ", nan" if nan else ""
