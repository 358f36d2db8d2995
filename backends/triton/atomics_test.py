"""Scatters as additions to memory: emitted, compiled for two chips, and interpreted."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from backends.measure import check
from backends.registry import REGISTRY, target
from backends.triton.backend import Triton
from backends.triton.testing.walks import walk, wrong
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import Workload
from testing.slow import in_turn, slow_but

GRADIENT = '''
def embedding_gradient(g: f32[L, D], idx: i32[L], table: f32[V, D]) -> f32[V, D]:
    """Add the gradients of what was looked up to those of the table's rows."""
    grad[idx[l], d] += g[l, d] * 2.0
    y[v, d] = grad[v, d] + table[v, d]
    return y

tune(L=4096, D=64, V=512)
check(L=1, D=1, V=1)
check(L=37, D=13, V=5)
check(L=130, D=33, V=70)
'''
ROWS = '''
def add_rows(g: bf16[L, D], idx: i64[L]) -> f32[V, D]:
    """Sum rows by where they belong."""
    y[idx[l], d] += f32(g[l, d])
    return y

tune(L=4096, D=64, V=512)
check(L=1, D=1, V=1)
check(L=37, D=13, V=5)
'''
HISTOGRAM = '''
def histogram(bins: i32[L], seen: b8[L]) -> i32[V]:
    """Count what was seen of each."""
    y[bins[l]] += i32(seen[l])
    return y

tune(L=4096, V=64)
check(L=1, V=1)
check(L=301, V=7)
'''
TABLE = "tile(l, size=16)\ntile(d, size=32)\n"
CASES = {
    "gradient": (GRADIENT, f"atomic(grad)\n{TABLE}tile(grad_0, size=8)\ntile(v, size=4)"),
    "whole_rows": (ROWS, "atomic(y)\ntile(l, size=8)\ntile(y_0, size=8)\nthreads(y, count=128)"),
    "one_by_one": (ROWS, "atomic(y)\ntile(l, size=1)\ntile(y_0, size=1)"),
    "persistent": (ROWS, f"atomic(y)\n{TABLE}tile(y_0, size=8)\npersistent(y, programs=1)"),
    "counts": (HISTOGRAM, "atomic(y)\ntile(l, size=128)\ntile(y_0, size=32)"),
    "counts_whole": (HISTOGRAM, "atomic(y)"),
}


@cache
def case(name: str) -> Workload:
    return parse_workload(CASES[name][0], name)


def nest(name: str, chip: str, tuned: bool = False) -> LoopNest:
    work = case(name)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{CASES[name][1]}\n")
    return lower(work.spec, schedule, target(chip), work.tune if tuned else work.checks[-1])


@cache
def triton() -> Triton:
    return Triton(REGISTRY.manifest("triton"))


@pytest.mark.parametrize(("name", "chip"), in_turn(CASES, ["h200", "mi300"]))
def test_it_compiles(name, chip, tmp_path):
    machine, made = target(chip), nest(name, chip, tuned=name != "counts_whole")
    figures = triton().build(triton().emit(made, machine), made, machine, tmp_path).figures
    assert figures["spills"] == 0


def test_memory_is_filled_by_a_launch_and_added_to_by_another():
    text = triton().emit(nest("gradient", "h200"), target("h200"))
    fill, add, last = text.split("@triton.jit")[1:]
    assert "tl.store(" in fill and "tl.atomic_add(" not in fill and "+=" not in fill
    assert "tl.atomic_add(" in add and 'sem="relaxed"' in add and "tl.store(" not in add
    assert "# grad[idx[l], d] += g[l, d] * 2.0" in add
    assert "torch.zeros" not in last


@pytest.mark.parametrize("name", ["gradient", "counts"])
def test_only_integers_are_held_to_the_same_bits(name, tmp_path):
    """The checker's rule, by the backend's own way of running without a device."""
    machine, made = target("h200"), nest(name, "h200")
    built = triton().build(triton().emit(made, machine), made, machine, tmp_path)
    found = check(triton(), built, made, machine, made.spec, case(name).checks[1], 3)
    assert found.repeated == (name == "counts")


@pytest.mark.parametrize("seed", slow_but(lambda seed: seed < 3, range(8)))
@pytest.mark.parametrize("name", ["gradient", "counts"])
def test_what_edits_make_of_it_is_right(name, seed, tmp_path: Path):
    work, machine = case(name), target("h200")
    start = parse_schedule(f"schedule({work.spec.name})\n{CASES[name][1]}\n")
    schedule = walk(work.spec, machine, work.checks[1], seed, start)
    made = lower(work.spec, schedule, machine, work.checks[1])
    assert wrong(made, machine, work.checks[1], tmp_path, seed) == "", str(schedule)


def test_sizes_that_only_the_result_tells_are_arguments():
    text = triton().emit(nest("whole_rows", "h200"), target("h200"))
    assert "def add_rows(g, idx, V):" in text
    assert "    y = torch.empty((V, D), dtype=torch.float32, device=g.device)" in text
    assert text.count("V = y.shape[0]") == 1, "of what launch() is given"
    text = triton().emit(nest("gradient", "h200"), target("h200"))
    assert "def embedding_gradient(g, idx, table):" in text
