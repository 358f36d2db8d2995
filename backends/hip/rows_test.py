"""Layouts of tiles in LDS follow the schedule: sources change, and are right in both orders of
work-items."""

from __future__ import annotations

import pytest

from backends.hip.testing.samples import CASES, backend, machine_of, work_of
from backends.measure import check
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule


def laid(name, machine, more):
    work = work_of(name)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{CASES[name][1]}\n{more}\n")
    return lower(work.spec, schedule, machine, work.tune)


@pytest.mark.parametrize(
    "name, more, word",
    [
        ("staged", "pad(x, bytes=16)\npad(w, bytes=16)", "* 40"),  # rows of 64 bytes and 16
        ("staged", "epilogue(y, by=shared, columns=32)", "n_subtile"),
        ("staged", "epilogue(y, by=shared)", "stored_tile"),
        ("ring", "swizzle(x, bytes=32)\nswizzle(w, bytes=64)", "panel<16>"),
    ],
)
def test_a_tile_is_moved_as_decided(name, more, word, tmp_path):
    machine = machine_of("mi300")
    nest = laid(name, machine, more)
    source = backend().emit(nest, machine)
    assert word in source and source != backend().emit(laid(name, machine, ""), machine)
    built = backend().build(source, nest, machine, tmp_path)
    for sizes in work_of(name).checks:
        check(backend(), built, nest, machine, nest.spec, sizes, seed=2)
