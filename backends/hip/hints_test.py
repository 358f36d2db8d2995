"""Hints to the caches: nontemporal loads and stores, with the same results."""

from __future__ import annotations

import re

import pytest

from backends.hip.testing.samples import CASES, backend, machine_of, work_of
from backends.measure import check
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule


def hinted(name, more, machine):
    work = work_of(name)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{CASES[name][1]}\n{more}\n")
    return lower(work.spec, schedule, machine, work.tune)


@pytest.mark.parametrize("target", ["mi300", "mi350"])
@pytest.mark.parametrize(
    "name, moved", [("rows", ("load", "store")), ("staged", ("load",)), ("ring", ("load",))]
)
def test_instructions_are_nontemporal_where_the_schedule_says_so(name, moved, target, tmp_path):
    machine = machine_of(target)
    more = "cache(x, hint=evict_first)" + ("\ncache(y, hint=evict_first)" if len(moved) > 1 else "")
    nest = hinted(name, more, machine)
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    (assembly,) = tmp_path.glob("*.s")
    text = assembly.read_text(encoding="utf-8")
    for kind in ("load", "store"):
        found = re.findall(rf"(?m)^\s(?:global|buffer|flat)_{kind}\S* [^\n;]* nt\b", text)
        assert bool(found) == (kind in moved)
    for sizes in work_of(name).checks:
        check(backend(), built, nest, machine, nest.spec, sizes, seed=2)


def test_other_hints_are_not_there():
    with pytest.raises(KernelError, match="has no hint `evict_last`") as seen:
        hinted("rows", "cache(x, hint=evict_last)", machine_of("mi300"))
    assert seen.value.allowed == "evict_first"
