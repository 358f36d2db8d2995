"""Warps: shuffles and scans, which exchange values between threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cutlass.cute as cute
from cutlass import Boolean, Float32, Int32

from backends.cutedsl.kernel.functions import where

WARP = 32


def _moved(x: Any, move: Callable[[Any], Any]) -> Any:
    """Passes a value through a shuffle. Shuffles take neither truth values nor types below 32 bits,
    so these are widened."""
    if x.dtype is Boolean:
        return move(Int32(x)) != 0
    if x.dtype.width < 32:
        return x.dtype(move(Int32(x))) if not x.dtype.is_float else x.dtype(move(Float32(x)))
    return move(x)


def shuffle_xor(x: Any, distance: Any) -> Any:
    """The value of the thread at a XOR distance."""
    return _moved(x, lambda v: cute.arch.shuffle_sync_bfly(v, distance))


def scan(
    run: Any, registers: Sequence[Any], carry: Any, join: Callable, threads: int, apart: int
) -> Any:
    """Replaces a run of registers by its prefix reductions across `threads` threads at stride
    `apart`, starting from a carry; returns the new carry."""
    values, carry = _scanned([run[r] for r in registers], carry, join, threads, apart)
    for register, value in zip(registers, values, strict=True):
        run[register] = value
    return carry


def scan_one(x: Any, carry: Any, join: Callable, threads: int, apart: int) -> tuple[Any, Any]:
    """The same for one value; returns the new value and the new carry."""
    values, carry = _scanned([x], carry, join, threads, apart)
    return values[0], carry


def _scanned(
    values: list[Any], carry: Any, join: Callable, threads: int, apart: int
) -> tuple[list[Any], Any]:
    dtype = type(carry)
    for n in range(1, len(values)):
        values[n] = dtype(join(values[n - 1], values[n]))
    own = cute.arch.thread_idx()[0] % WARP
    place = own // apart % threads
    total = values[-1]
    distance = 1
    while distance < threads:
        before = _from_before(total, distance * apart)
        total = dtype(where(place >= distance, join(before, total), total))
        distance *= 2
    before = _from_before(total, apart)
    first = dtype(where(place > 0, join(carry, before), carry))
    last = own + (threads - 1 - place) * apart
    whole = _moved(total, lambda v: cute.arch.shuffle_sync(v, last))
    return [dtype(join(first, v)) for v in values], dtype(join(carry, whole))


def _from_before(x: Any, distance: int) -> Any:
    """The value of the thread at a distance before this one; undefined in the first threads."""
    return _moved(x, lambda v: cute.arch.shuffle_sync_up(v, distance, mask_and_clamp=0))


def scan_after(
    run: Any,
    registers: Sequence[Any],
    totals: Any,
    parts: Sequence[Any],
    own: Any,
    carry: Any,
    join: Callable,
) -> Any:
    """Combines the scans of several warps: adds the carry and the totals of earlier parts to a
    thread's run; returns the new carry."""
    first, carry = _before(totals, parts, own, carry, join)
    for register in registers:
        run[register] = type(carry)(join(first, run[register]))
    return carry


def scan_one_after(
    x: Any, totals: Any, parts: Sequence[Any], own: Any, carry: Any, join: Callable
) -> tuple[Any, Any]:
    """The same for one value; returns the new value and the new carry."""
    first, carry = _before(totals, parts, own, carry, join)
    return type(carry)(join(first, x)), carry


def _before(
    totals: Any, parts: Sequence[Any], own: Any, carry: Any, join: Callable
) -> tuple[Any, Any]:
    dtype, first = type(carry), carry
    for n, at in enumerate(parts):
        first = dtype(where(own > n, join(first, totals[at]), first))
        carry = dtype(join(carry, totals[at]))
    return first, carry
