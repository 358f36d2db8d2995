"""Unrolls loops over tiles by factors of the schedule.

Compilers do not unroll a loop with barriers whose number of iterations they do not know. So the
loop runs over chunks of a few iterations, and an inner loop with a known number of iterations runs
through a chunk:

    for k_chunk in low..high, by 2 * 32:
      for k_at in k_chunk..k_chunk + 2 * 32, by 32, unrolled:
        if k_at < high:
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.tile import Compute, Launch, Name, statements
from ir.spec import Apply, Number

Scalar = Callable[[Name], Name]  # records a scalar of the launch


def factors(launch: Launch) -> Mapping[str, int]:
    """The unroll factors of a tile program's loops, by index."""
    loops = [s for s in statements((*launch.once, *launch.body)) if isinstance(s, of.Loop)]
    return {s.name.stem: s.unroll for s in loops if s.unroll}


def unrolled(block: to.Block, by: Mapping[str, int], scalar: Scalar) -> to.Block:
    """The block with loops unrolled. by: factors, by index."""
    return tuple(_statement(s, by, scalar) for s in block) if by else block


def _statement(s: to.Statement, by: Mapping[str, int], scalar: Scalar) -> to.Statement:
    s = to.changed_inside(s, lambda block: unrolled(block, by, scalar))
    match s:
        case to.Loop(name):
            # Other loops are over registers, or over the issues of a matmul.
            walks = name.sort in ("origin", "step") and not s.unrolled
            return _chunked(s, by[name.stem], scalar) if walks and name.stem in by else s
    return s


def _chunked(s: to.Loop, factor: int, scalar: Scalar) -> to.Loop:
    first = to.Element(scalar(Name("chunk", s.name.stem, copy=s.name.copy)))
    whole = s.step * factor
    inside = Compute("lt", (to.Element(s.name), s.high))
    inner = to.Loop(
        name=s.name,
        low=first,
        high=Apply("add", (first, Number(whole))),
        step=s.step,
        body=s.body if _divides(s, whole) else (to.Guard(inside, s.body),),
        unrolled=True,
    )
    return replace(s, name=first.name, step=whole, body=(inner,))


def _divides(s: to.Loop, whole: int) -> bool:
    """Whether all chunks are whole."""
    ends = (s.low, s.high)
    low, high = (e.value if isinstance(e, Number) else None for e in ends)
    return low is not None and high is not None and (high - low) % whole == 0
