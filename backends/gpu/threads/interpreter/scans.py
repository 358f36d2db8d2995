"""Scans: within a warp, and across the parts that several warps scanned separately."""

from __future__ import annotations

import numpy as np

from backends.gpu.threads.interpreter.expressions import Code, Run
from backends.gpu.threads.interpreter.faults import FRAGMENT
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.interpreter.values import joining
from backends.gpu.threads.thread import Scan, ScanAfter


def scan(block: Block, s: Scan, v: Variable, value: Code, totals: Variable | None) -> Run:
    """The closure of a scan. totals: receives the total of each part, where warps have parts."""
    along = [a.index for a in v.axes].index(s.over) + 1
    threads, registers = _in_order(block, v, along - 1, totals is not None)
    parts = 1 if totals is None else totals.axes[-1].count
    places = threads.shape[1] // parts
    joined = joining(s.reduction, s.nan)
    part = np.repeat(np.arange(parts), places)[None]

    def run() -> None:
        block.require_groups("a scan")
        data = np.moveaxis(np.broadcast_to(value.run(), v.shape), along, 1)
        ordered = data[threads, registers]
        runs = ordered.reshape(len(ordered), parts, places, *ordered.shape[2:])
        sums = joined.accumulate(runs, axis=2)
        found = np.empty_like(data)
        found[threads, registers] = sums.reshape(ordered.shape)
        block.write(v, np.moveaxis(found, 1, along), value.dtype)
        if totals is not None:
            whole = np.empty((block.threads, parts, *data.shape[2:]), data.dtype)
            whole[threads, part] = np.repeat(sums[:, :, -1], places, axis=1)
            block.write(totals, np.moveaxis(whole, 1, -1), value.dtype)

    return run


def after(block: Block, s: ScanAfter, v: Variable, before: Variable, totals: Variable) -> Run:
    """The closure of adding the totals of earlier parts."""
    along = [a.index for a in v.axes].index(s.over) + 1
    axis, own = v.axes[along - 1], totals.axes[-1]
    runs = own.count
    length = axis.span * runs // max(1, before.axes[-1].width)  # positions of a part
    first = axis.positions[:, :: axis.count // runs]
    counted = before.axes[-1].positions
    if (first // length != own.positions).any() or (counted != np.arange(counted.shape[1])).any():
        hint = "count parts in the order of the positions that warps hold"
        raise block.fault(FRAGMENT, f"`{totals.name.stem or 'totals'}` has other parts", hint)
    joined = joining(s.reduction, s.nan)
    thread = np.arange(block.threads)[:, None]
    starts = own.positions == 0

    def run() -> None:
        given = np.moveaxis(block.whole(before), -1, 1)
        whole = joined.accumulate(given, axis=1)[thread, np.maximum(own.positions - 1, 0)]
        data = np.moveaxis(block.whole(v), along, 1)
        data = data.reshape(len(data), runs, -1, *data.shape[2:])
        none = starts.reshape(*starts.shape, *(1 for _ in data.shape[2:]))
        found = np.where(none, data, joined(whole[:, :, None], data))
        found = found.reshape(len(data), -1, *data.shape[3:])
        block.write(v, np.moveaxis(found, 1, along), v.dtype)

    return run


def _in_order(
    block: Block, v: Variable, along: int, by_warp: bool
) -> tuple[np.ndarray, np.ndarray]:
    """[groups of threads, places along an axis] -> thread and register, by position.

    Threads of a group hold the same part of the other axes. by_warp: whether groups are within one
    warp, and hold only its parts; otherwise raises ThreadFault where a group has threads of several
    warps.
    """
    axis = v.axes[along]
    others = [a.positions[:, 0] for n, a in enumerate(v.axes) if n != along]
    threads = np.arange(block.threads)
    # Copies of an element are in different groups: the n-th copy of a position is in the n-th.
    keys = np.stack([*others, axis.positions[:, 0], threads // block.warp], 1)
    seen: dict[tuple[int, ...], int] = {}
    groups: dict[tuple[int, ...], list[int]] = {}
    for t in threads:
        one = tuple(keys[t])
        copy = seen[one] = seen.get(one, -1) + 1
        groups.setdefault((*one[:-2], one[-1], copy), []).append(int(t))
    members = {len(g) for g in groups.values()}
    owners = len(np.unique(axis.positions[:, 0]))
    if by_warp and len(members) == 1:
        owners = max(members)
    if members != {owners}:
        hint = "distribute an axis that is scanned over the threads of one warp"
        raise block.fault(FRAGMENT, f"`{axis.index}` is held by threads of several warps", hint)
    found_threads, found_registers = [], []
    for group in groups.values():
        flat = np.argsort(axis.positions[group].reshape(-1), kind="stable")
        number, register = np.divmod(flat, axis.count)
        found_threads.append(np.array(group)[number])
        found_registers.append(register)
    return np.stack(found_threads), np.stack(found_registers)
