"""The order of blocks over a chip's dies, which get blocks in turn: block b is on die b % 8."""

from __future__ import annotations

from math import prod

import pytest

from backends.gpu.grid import grid_statements, tile_counts
from backends.gpu.text import scalar_text, statement_lines
from backends.hip.testing.samples import CASES, backend, machine_of, work_of
from backends.measure import check
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule

DIES = 8
SIZES = {"M": 1024, "N": 640, "K": 64}


def nest_of(lines: str) -> LoopNest:
    schedule = parse_schedule(f"schedule(linear)\n{CASES['direct'][1]}\n{lines}\n")
    return lower(work_of("direct").spec, schedule, machine_of("mi300"), work_of("direct").tune)


def rows_of_dies(nest: LoopNest) -> list[list[int]]:
    """The rows of A that each die begins to read, block by block."""
    (launch,) = nest.launches

    def cdiv(a: int, b: int) -> int:
        return -(-a // b)

    known = {"cdiv": cdiv, **SIZES}
    count = prod(eval(scalar_text(n), known) for n in tile_counts(launch))
    found: list[list[int]] = [[] for _ in range(DIES)]
    for block in range(count):
        names = {"tile": block, **known}
        for line in statement_lines(grid_statements(launch)):
            exec(line, names)
        found[block % DIES].append(names["m_at"])
    return found


def test_in_groups_of_as_many_rows_as_there_are_dies_each_die_reads_its_own_rows_once():
    for rows in rows_of_dies(nest_of("rasterize(m, size=8, over=n)")):
        changes = sum(a != b for a, b in zip(rows, rows[1:], strict=False))
        assert len(set(rows)) == changes + 1 == SIZES["M"] // 64 // DIES


def test_otherwise_every_die_reads_all_rows():
    for rows in rows_of_dies(nest_of("")):
        assert len(set(rows)) == SIZES["M"] // 64


@pytest.mark.parametrize("target", ["mi300", "mi350"])
def test_the_order_changes_no_result(target, tmp_path):
    machine, nest = machine_of(target), nest_of("rasterize(m, size=8, over=n)")
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    check(backend(), built, nest, machine, nest.spec, work_of("direct").checks[-1], seed=3)
