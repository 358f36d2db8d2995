"""Tiles over multiprocessors: waves of whole tiles, equal shares of a loop, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.gpu.model.extents import Extents
from backends.gpu.model.model import modelled
from backends.gpu.model.shares import spread
from backends.gpu.plain_rules import RULES
from backends.registry import target
from ir.lower.lower import lower
from ir.machine import Rendering
from ir.sizes import bind
from testing.samples.samples import decisions, spec_of

SPEC = spec_of(
    "y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
    inputs="x: bf16[M, K], w: bf16[K, N]",
    result="f32[M, N]",
)
CHIP = replace(target("h200"), rendering=Rendering())  # of a backend that renders all
UNITS = CHIP.parallel
SHARED = "stream_k(y, over=k)"


def matmul(tiles, *more, k=4096):
    sizes = {"M": 128 * tiles, "N": 128, "K": k}
    lines = (
        *("tile(m, size=128)", "tile(n, size=128)", "tile(k, size=64)", "threads(y, count=256)"),
        *("place(m.outer, level=grid)", "place(n.outer, level=grid)", "compute(y, unit=matrix)"),
        *("pipeline(x, stages=3)", "pipeline(w, stages=3)", "persistent(y, programs=1)"),
    )
    return lower(SPEC, decisions(SPEC, *lines, *more), CHIP, sizes), sizes


def spread_of(tiles, *more, k=4096):
    nest, sizes = matmul(tiles, *more, k=k)
    launch = nest.launches[-1]
    return spread(launch, Extents(launch, bind(nest.spec, sizes), RULES), UNITS, 1)


def figure(tiles, name, *more, k=4096):
    nest, sizes = matmul(tiles, *more, k=k)
    found = modelled(nest, CHIP, RULES, sizes, {}).figures
    return found[f"{nest.launches[-1].name}.{name}"]


def us(tiles, *more, k=4096):
    return figure(tiles, "us", *more, k=k)


def test_whole_tiles_come_in_waves():
    assert spread_of(UNITS).busiest == 1 and spread_of(UNITS + 1).busiest == 2
    assert spread_of(UNITS + 1).handed == 0


def test_shares_have_no_waves():
    one = spread_of(UNITS + 1, SHARED)  # 64 iterations each
    share = -(-64 * (UNITS + 1) // UNITS)
    assert one.busiest == one.rounds == share / 64
    assert one.at_once == -(-64 * (UNITS + 1) // share)
    assert one.bytes == 4 * 128 * 128


def test_parts_are_handed_on_where_shares_end_within_tiles():
    assert spread_of(UNITS, SHARED).handed == 0
    few = spread_of(1, SHARED)  # a share is one iteration
    assert few.at_once == 64 and few.handed == 63 and few.most == 64
    assert few.bytes_of_busiest() == pytest.approx(2 * few.bytes * 63 / 64)


def test_one_tile_more_than_multiprocessors_costs_no_second_wave():
    assert us(UNITS + 1) > 1.6 * us(UNITS)
    assert us(UNITS + 1, SHARED) < 1.15 * us(UNITS)


def test_parts_are_written_and_read():
    plain, shared = (figure(UNITS + 1, "asked_bytes", *more) for more in ((), (SHARED,)))
    one = spread_of(UNITS + 1, SHARED)
    assert shared - plain == pytest.approx(2 * one.handed * one.bytes)
    plain, shared = (figure(UNITS // 2, "alone_us", *more) for more in ((), (SHARED,)))
    assert shared > plain / 2  # half of the iterations, and what is added after them


def test_shares_without_parts_cost_nothing_and_short_sums_are_not_worth_a_launch():
    assert us(UNITS, SHARED) == pytest.approx(us(UNITS))
    plain, shared = (
        modelled(nest, CHIP, RULES, sizes, {}).us
        for nest, sizes in (matmul(UNITS // 2, *more, k=256) for more in ((), (SHARED,)))
    )
    assert shared > plain


BULK = ("copy(x, by=bulk)", "copy(w, by=bulk)", "copy(y, by=bulk)")


def test_groups_that_take_turns_hide_the_epilogue_of_all_tiles_but_the_last():
    together, turns = BULK, (*BULK, "pingpong(y)")
    chain = ("wait_us", "alone_us", "step_us")
    for name in chain:
        assert figure(UNITS, name, *turns, k=512) >= figure(UNITS, name, *together, k=512)
    many = sum(figure(8 * UNITS, name, *turns, k=512) for name in chain)
    one = sum(figure(UNITS, name, *turns, k=512) for name in chain)
    assert 4 * one < many < 8 * one
    assert figure(8 * UNITS, "matrix_us", *turns) == pytest.approx(
        8 * figure(UNITS, "matrix_us", *turns)
    )
