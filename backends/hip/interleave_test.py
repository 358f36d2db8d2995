"""Matrix instructions between reads of LDS: told where a loop multiplies once, seen in the assembly, and no
register file overflows."""

from __future__ import annotations

import re

import pytest

from backends.gpu.threads.thread import Interleave, Loop, statements
from backends.hip import build as building
from backends.hip import clang
from backends.hip.backend import program, spelled
from backends.hip.testing.samples import backend, emitted, machine_of, nest_of, work_of
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule

LARGE = (
    "tile(m, size=128)\ntile(n, size=128)\ntile(k, size=64)\nplace(m.outer, level=grid)\n"
    "place(n.outer, level=grid)\nplace(k.outer, level=loop)\ncompute(acc, unit=matrix)\n"
    "pipeline(x, stages=2)\npipeline(w, stages=2)\nthreads(y, count=256)"
)
ARCHITECTURES = {"mi300": "gfx942", "mi350": "gfx950"}


def large(target):
    work = work_of("staged")
    machine = machine_of(target)
    nest = lower(
        work.spec,
        parse_schedule(f"schedule(dense)\n{LARGE}\n"),
        machine,
        {"M": 4096, "K": 4096, "N": 4096},
    )
    return backend().emit(nest, machine)


def compiled(source, target, folder):
    """The kernel's assembly."""
    file = folder / "kernel.hip"
    file.write_text(source, encoding="utf-8")
    text = clang.assembly(file, ARCHITECTURES[target], (), folder / "kernel.s")
    (found,) = building.kernels(text).values()
    return found


def waiting(assembly):
    """The largest number of consecutive LDS reads in the block with the most matrix
    instructions."""
    blocks = re.split(r"(?m)^\.L\w+:|^\ts_c?branch.*$", assembly)
    body = max(blocks, key=lambda block: block.count("v_mfma"))
    order = "".join(
        "r" if "ds_" in found else "m" for found in re.findall(r"\tds_read|v_mfma", body)
    )
    return max(map(len, re.findall("r+", order)))


@pytest.mark.parametrize("target", ARCHITECTURES)
def test_reads_lie_between_matrix_instructions_and_nothing_spills(target, tmp_path):
    source = large(target)
    (told,) = re.findall(r"\n +interleave<\d+, \d+>\(\);", source)
    with_it = compiled(source, target, tmp_path)
    without = compiled(source.replace(told, ""), target, tmp_path)
    assert waiting(with_it) < waiting(without)
    counts = [building.code(text).mix() for text in (with_it, without)]
    assert counts[0]["matrix"] == counts[1]["matrix"] and counts[0]["shared"] <= counts[1]["shared"]
    assert building.code(with_it).spills == 0


def test_the_order_is_that_of_what_the_loop_has():
    """128 x 128 x 64 on 4 wavefronts: 4 x 4 instructions for each of 4 K steps, with 4 + 4
    reads."""
    (reads, matrix) = re.findall(r"interleave<(\d+), (\d+)>", large("mi300"))[0]
    assert (int(reads), int(matrix)) == (32, 2)


@pytest.mark.parametrize(
    ("name", "told"), [("ring", 1), ("direct", 1), ("streamed", 0), ("rows", 0), ("packed", 0)]
)
def test_loops_that_multiply_once_are_told(name, told):
    """Attention has two matmuls in its loop, with a softmax between them."""
    (launch, *_) = program(spelled(nest_of(name)), machine_of("mi300")).launches
    found = [s for s in statements(launch.body) if isinstance(s, Interleave)]
    assert len(found) == told == emitted(name).count("interleave<")
    loops = [s for s in statements(launch.body) if isinstance(s, Loop)]
    assert all(sum(isinstance(s.body[-1], Interleave) for s in loops) == told for _ in found)
