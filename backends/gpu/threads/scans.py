"""Scans along an axis that several warps hold: each warp scans its parts, the totals of all parts
go through shared memory, and each thread adds those before its own."""

from __future__ import annotations

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.distribution import bits_of, ordered, parts_of
from backends.gpu.tile import Name
from ir.spec import Apply, Expr, Number

EXCHANGE = "exchange"  # the shared memory region for immediate exchanges between threads


def scan(lowering, name: Name, reduction: str, value: Expr, over: to.Axis, nan: bool) -> None:  # type: ignore[no-untyped-def]
    """Appends the statements of a scan into a fragment. Raises BackendError where threads do not
    hold the axis in order."""
    if not ordered(over):
        raise BackendError("emit", f"a scan along `{over.index}`, which a matmul distributes")
    warps = sorted(b for b in bits_of(over) if b >= lowering.owners.warp_bits)
    if not warps:
        lowering.put(to.Scan(name, reduction, value, over.index, nan))
        return
    fragment = lowering.fragments[name]
    rest = tuple(a for a in fragment.axes if a.index != over.index)
    own, every = parts_of(warps, _parts(over, 1 << len(warps)), lowering.threads)
    totals = lowering.temporary(fragment.dtype, (*rest, own))
    before = lowering.temporary(fragment.dtype, (*rest, every))
    lowering.put(to.Scan(name, reduction, value, over.index, nan, totals))
    lowering.passed(Name("shared", "part", copy=lowering.parts), totals, before)
    lowering.put(to.ScanAfter(name, before, totals, reduction, over.index, nan))


def _parts(over: to.Axis, warps: int) -> Expr:
    """The number of parts of an axis: what each warp holds in one repetition."""
    if isinstance(over.width, Number):
        return Number(-(-int(over.width.value) // over.span) * warps)
    return Apply("mul", (of.Tiles(over.width, over.span), Number(warps)))
