"""Tells the compiler to interleave matrix instructions with LDS reads, at the end of loops with one
matmul whose operands are in LDS.

By default the compiler puts all reads of a K step before its matrix instructions, which wait for
the last read. Loops with several matmuls keep the default order, because statements between them
would need more registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from backends.gpu.source.layouts import BYTES, registers
from backends.gpu.threads.staging import COPY_BYTES, run_of
from backends.gpu.threads.thread import (
    Guard,
    Interleave,
    Launch,
    Loop,
    Multiply,
    SharedLoad,
    Statement,
    ThreadProgram,
)
from ir.spec import Number

LEAST_READS = 4  # reads of a loop; fewer have nothing to interleave with
MOST_READS = 64  # groups in the hint


def interleaved(program: ThreadProgram) -> ThreadProgram:
    """The program with interleaving hints in loops with known instruction counts."""
    groups = tuple(
        (repeat, tuple(replace(one, body=_block(one, one.body)) for one in launches))
        for repeat, launches in program.groups
    )
    return replace(program, groups=groups)


def _block(launch: Launch, block: tuple[Statement, ...]) -> tuple[Statement, ...]:
    return tuple(_one(launch, s) for s in block)


def _one(launch: Launch, s: Statement) -> Statement:
    match s:
        case Guard(_, body, others):
            return replace(s, body=_block(launch, body), others=_block(launch, others))
        case Loop(body=body):
            text = tuple(_unrolled(body))
            told = _order(launch, text) if len(text) > 1 else None
            if told is not None:
                return replace(s, body=(*body, told))
            return s if s.unrolled else replace(s, body=_block(launch, body))
    return s


def _unrolled(block: tuple[Statement, ...], times: int = 1) -> Iterator[tuple[Statement, int]]:
    """The statements of a loop's body with their repetitions, including unrolled inner loops but no
    others."""
    for s in block:
        if isinstance(s, Loop):
            if s.unrolled and isinstance(s.low, Number) and isinstance(s.high, Number):
                count = -(-int(s.high.value - s.low.value) // s.step)
                yield from _unrolled(s.body, times * count)
            else:
                yield s, times
        else:
            yield s, times


def _order(launch: Launch, text: tuple[tuple[Statement, int], ...]) -> Interleave | None:
    """The interleaving of a loop's instructions; None if the compiler decides."""
    multiplied = [(s, n) for s, n in text if isinstance(s, Multiply)]
    if len(multiplied) != 1 or multiplied[0][0].instruction is None:
        return None
    if any(isinstance(s, Loop) for s, _ in text):
        return None
    parts = [(_reads(launch, s), n) for s, n in text if isinstance(s, SharedLoad)]
    s, times = multiplied[0]
    issues = _issues(launch, s)
    if issues is None or any(n is None for n, _ in parts):
        return None
    reads, matrix = sum(n * each for n, each in parts if n), issues * times
    if not LEAST_READS <= reads <= MOST_READS or matrix < reads:
        return None
    return Interleave(reads, matrix // reads)


def _issues(launch: Launch, s: Multiply) -> int | None:
    """The number of matrix instructions of a matmul of fragments."""
    assert s.instruction is not None
    to, b = launch.fragment(s.to), launch.fragment(s.b)
    counts = [registers(a) for a in (*to.axes, b.axes[-2])]
    if any(n is None for n in counts):
        return None
    steps = (*s.instruction.c_steps, s.instruction.b_steps[0])
    return prod(n for n in counts if n) // prod(steps)


def _reads(launch: Launch, s: SharedLoad) -> int | None:
    """The number of LDS reads of a fragment, in runs of up to 16 bytes."""
    f = launch.fragment(s.name)
    counts = [registers(a) for a in f.axes]
    if any(n is None for n in counts):
        return None
    size = BYTES[f.dtype]
    run = min(run_of(f.axes[-1]), max(1, COPY_BYTES // size))
    return prod(n for n in counts if n) // run
