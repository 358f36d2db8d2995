"""Block-scaled matmuls (OCP's MX formats): by their instruction where a chip has it, by products of the numbers
and their scales elsewhere; faults of the layout of scales are found."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.matrix.fragments import fragments, multiply
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.hip import emulator
from backends.hip.backend import program, spelled
from backends.hip.instructions import instructions, with_functions
from backends.hip.testing.samples import CASES, FOLDER, backend, emulated, machine_of, source_of
from backends.measure import check, compare, reference
from backends.parameters import parameters
from backends.shared.arrays import from_device, poisoned, to_device
from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import Dot
from ir.parse.parse import parse_schedule, parse_workload
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret as interpret_nest
from ir.reference.reference import evaluate
from ir.sizes import bind
from testing.slow import slow_but

TEXT = (FOLDER / "scaled.kir").read_text(encoding="utf-8")
LINES = CASES["scaled"][1]
INSTRUCTION = "v_mfma_scale_f32_16x16x128_f8f6f4"
MI350 = machine_of("mi350")
SCALED = {f"{i.m}x{i.k}-{i.a.dtype}-{i.b.dtype}": i for i in with_functions(MI350) if i.block}


def work_of(text=TEXT):
    return parse_workload(text, "scaled")


def lowered(machine=MI350, lines=LINES, text=TEXT):
    work = work_of(text)
    schedule = parse_schedule(f"schedule(scaled)\n{lines}\n")
    return lower(work.spec, schedule, machine, work.tune)


def dot_of(nest):
    (dot,) = (s for launch in nest.launches for s in launch.statements() if isinstance(s, Dot))
    return dot


def built_of(nest, folder, machine=MI350):
    built = backend().build(backend().emit(nest, machine), nest, machine, folder)
    (text,) = (f.read_text(encoding="utf-8") for f in folder.glob("*.s"))
    return built, text


VARIANTS = {  # changes of the kernel, and of its schedule
    "as it is": ({}, {}),
    "f8e5m2": ({"f8e4m3": "f8e5m2"}, {}),
    "columns first": ({"f32[M, N]": "f32[N, M]", "y[m, n]": "y[n, m]"}, {}),
    "a batch": (
        {
            "x: f8e4m3[M": "x: f8e4m3[H, M",
            "s: f8e8m0[M": "s: f8e8m0[H, M",
            "f32[M, N]": "f32[H, M, N]",
        }
        | {
            "w: f8e4m3[N": "w: f8e4m3[H, N",
            "t: f8e8m0[N": "t: f8e8m0[H, N",
            "y[m, n]": "y[h, m, n]",
        }
        | {f"{n}[{i}": f"{n}[h, {i}" for n, i in ("xm", "sm", "wn", "tn")}
        | {
            "M=1, B=1": "H=1, M=1, B=1",
            "M=128": "H=2, M=128",
            "M=33": "H=3, M=33",
            "M=64": "H=2, M=64",
        },
        {"tile(m,": "tile(h, size=1)\nplace(h.outer, level=grid)\ntile(m,"},
    ),
    "no stages": ({}, {"pipeline": "# pipeline"}),
    "a ring": ({}, {"stages=2": "stages=3"}),
    "fewer blocks than the instruction": ({}, {"tile(b, size=4)": "tile(b, size=1)"}),
    "several issues": ({}, {"tile(b, size=4)": "tile(b, size=8)"}),
    "32 x 32": ({}, {"threads": "instruction(y, shape=m32n32k64)\nthreads"}),
}


@pytest.mark.parametrize(
    "name", slow_but(lambda name: name in ("f8e5m2", "a batch", "32 x 32"), VARIANTS)
)
def test_a_block_scaled_matmul_is_right_by_its_instruction(name, tmp_path):
    text, lines = TEXT, LINES
    for old, new in VARIANTS[name][0].items():
        assert old in text
        text = text.replace(old, new)
    for old, new in VARIANTS[name][1].items():
        assert old in lines
        lines = lines.replace(old, new)
    nest = lowered(text=text, lines=lines)
    assert len(dot_of(nest).scales) == 2
    built, assembly = built_of(nest, tmp_path)
    instruction = INSTRUCTION.replace("16x16x128", "32x32x64") if name == "32 x 32" else INSTRUCTION
    assert instruction in assembly and built.figures["spills"] == 0
    for sizes in work_of(text).checks:
        check(backend(), built, nest, MI350, work_of(text).spec, sizes, seed=3)


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("mi300", LINES),  # which has no such instruction
        ("mi350", f"{LINES}\nprecision(y, dtype=bf16)"),
        (
            "mi350",
            LINES.replace("tile(b,", "tile(k, size=16)\nplace(k.outer, level=loop)\ntile(b,"),
        ),
    ],
)
def test_elsewhere_numbers_are_multiplied_by_their_scales_first(target, lines, tmp_path):
    machine = machine_of(target)
    nest = lowered(machine, lines)
    assert not dot_of(nest).scales
    built, assembly = built_of(nest, tmp_path, machine)
    assert "v_mfma_f32" in assembly and "mfma_scale" not in assembly
    check(backend(), built, nest, machine, nest.spec, work_of().checks[0], seed=3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("32", "16"),  # blocks of another size
        ("w: f8e4m3", "w: f8e5m2"),
        (" * f32(s[m, b])", ""),  # one operand without scales
        ("f32(s[m, b])", "f32(s[m, b]) * 2.0"),
        ("t: f8e8m0[N, B]", "t: bf16[N, B]"),
    ],
)
def test_other_sums_of_products_are_none(old, new):
    text = TEXT.replace(old, new)
    text = text.replace("    s: f8e8m0[M, B],\n", "") if "s[m, b]" not in text else text
    assert not dot_of(
        lowered(text=text, lines=f"{LINES}\nprecision(y, dtype=bf16)".replace("pipeline(s", "# "))
    ).scales


@pytest.mark.parametrize("target", ["mi300", "mi350"])
def test_the_first_schedule_takes_what_the_chip_has(target, tmp_path):
    machine, work = machine_of(target), work_of()
    nest = lower(work.spec, autoschedule(work.spec, machine, work.tune), machine, work.tune)
    built, assembly = built_of(nest, tmp_path, machine)
    assert (INSTRUCTION in assembly) == (target == "mi350")
    check(backend(), built, nest, machine, work.spec, work.checks[0], seed=3)


def test_edits_offer_to_round_the_operands():
    work = work_of()
    found = neighbours(work.spec, lowered().schedule, MI350, work.tune)
    assert "precision(y, dtype=bf16)" in {str(e.new) for e in found if e.new}


def test_the_nest_is_right_and_its_text_says_the_scales():
    work, nest = work_of(), lowered()
    inputs = random_inputs(work.spec, work.checks[0], np.random.default_rng(0))
    (exact,) = evaluate(work.spec, inputs, work.checks[0]).values()
    (found,) = interpret_nest(nest, inputs, work.checks[0]).values()
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)


# -- thread programs ------------------------------------------------------------------------------


def interpreted(change=lambda launch: launch):
    nest, sizes = lowered(), work_of().checks[0]
    made, known = program(spelled(nest), MI350), reference(nest.spec, sizes, 7)
    (launch,) = made.launches
    made = replace(made, groups=((None, (change(launch),)),))
    held = {
        p.name: to_device(known.inputs[p.name], p.dtype)
        if p.role == "input"
        else poisoned(p, bind(nest.spec, sizes))
        for p in parameters(nest)
    }
    interpret(made, sizes, held, instructions(MI350), MI350.on_chip_bytes)
    compare(nest.spec, sizes, "y", from_device(held["y"], "f32"), known)


def test_the_thread_program_is_right():
    interpreted()


def test_scales_at_other_rows_than_their_numbers_are_found():
    """A wavefront takes the scales of its neighbour's rows."""

    def wrong(launch):
        (one,) = (s for s in to.statements(launch.body) if isinstance(s, to.Multiply))
        (loaded,) = (
            s
            for s in to.statements(launch.body)
            if isinstance(s, to.SharedLoad) and s.name == one.a_scale
        )
        held = launch.fragment(loaded.name)
        rows = held.axes[0]
        strides = tuple(0 if s == 16 else s for s in rows.thread.stride)  # those of the wavefronts
        axis = replace(rows, thread=replace(rows.thread, stride=strides))
        made = replace(held, axes=(axis, *held.axes[1:]))
        fragments_of = tuple(made if f.name == held.name else f for f in launch.fragments)
        return replace(launch, fragments=fragments_of)

    with pytest.raises(ThreadFault) as seen:
        interpreted(wrong)
    assert seen.value.kind in ("wrong fragment", "layout")


# -- the emulator ---------------------------------------------------------------------------------


def instruction_source(row, counts):
    names = [f"{x}[{n}]" for x, c in zip("cab", (counts[2], *counts[:2])) for n in range(c)]
    body = f"""
      {row.a.dtype} a[{counts[0]}]; {row.b.dtype} b[{counts[1]}]; float c[{counts[2]}];
      for (int n = 0; n < {counts[0]}; ++n) a[n] = a_ptr[(blockIdx.x * 64 + thread) * {counts[0]} + n];
      for (int n = 0; n < {counts[1]}; ++n) b[n] = b_ptr[thread * {counts[1]} + n];
      for (int n = 0; n < {counts[2]}; ++n) c[n] = 0;
      mfma_scaled_{row.m}x{row.n}x{row.k}({", ".join(names)}, s_ptr[thread], t_ptr[thread]);
      for (int n = 0; n < {counts[2]}; ++n) y_ptr[(blockIdx.x * 64 + thread) * {counts[2]} + n] = c[n];"""
    given = ("a", row.a.dtype), ("b", row.b.dtype), ("s", "f8e8m0"), ("t", "f8e8m0")
    parameters = ", ".join(f"const {dtype}* __restrict__ {n}_ptr" for n, dtype in given)
    define = "#define __gfx950__ 1\n"
    return define + source_of(body, f"float* __restrict__ y_ptr, {parameters}")


def multiplied(row, folder, a, b, s, t):
    """The emulator's result for fragments; a has one for each block."""
    lies = fragments(row)
    counts = [lies.a[1].size, lies.b[1].size, lies.c[1].size]
    y = np.zeros((len(a), 64, counts[2]), np.float32)
    held = (to_device(a, row.a.dtype), to_device(b, row.b.dtype))
    scales = (to_device(s, "f8e8m0"), to_device(t, "f8e8m0"))
    emulated(instruction_source(row, counts), folder, y, *held, *scales, grid=len(a))
    return y


@pytest.mark.parametrize("name", SCALED)
def test_scales_have_the_published_layout(name, tmp_path):
    """The ends of each run of A alone, against B of ones: an element meets the scale of its row and block,
    which thread `row + M * block` has, and that of each column and the block."""
    row = SCALED[name]
    lies, places = fragments(row), [(t, r) for t in range(64) for r in (0, 15, 16, 31)]
    a = np.zeros((len(places), 64, lies.a[1].size), np.float32)
    for n, at in enumerate(places):
        a[n][at] = 3
    b, zero = np.ones((64, lies.b[1].size), np.float32), np.zeros((64, lies.c[1].size), np.float32)
    s, t = 2.0 ** (np.arange(64) % 23 - 11), 2.0 ** (np.arange(64) * 7 % 19 - 9)
    columns = np.arange(row.n)
    for n, y in enumerate(multiplied(row, tmp_path, a, b, s, t)):
        expected = multiply(lies, a[n], b, zero, (s[:, None], t[:, None]))
        np.testing.assert_array_equal(y, expected)
        # From the published table, without the layouts of this project.
        thread, register = places[n]
        k = thread // row.m * 16 + register % 16 + register // 16 * (row.k // 2)
        of_row, block = thread % row.m, k // 32
        found = np.array([y[_home(row, of_row, c)] for c in columns])
        np.testing.assert_array_equal(
            found, 3 * s[of_row + row.m * block] * t[columns + row.m * block]
        )
        assert np.count_nonzero(y) == row.n


def _home(row, of_row, column):
    """The thread and register of an element of C. A thread has runs of 4 columns."""
    group = 64 // row.m
    thread = of_row + row.m * (column // 4 % group)
    return thread, column % 4 + column // (4 * group) * 4


@pytest.mark.parametrize("name", SCALED)
def test_scales_are_joined_before_they_meet_the_numbers(name, tmp_path):
    """Scales at both ends of their range cancel; NaN affects only its row or column; 0 is
    2^-127."""
    row = SCALED[name]
    lies = fragments(row)
    ones = np.ones((1, 64, lies.a[1].size), np.float32), np.ones((64, lies.b[1].size), np.float32)
    large, small = np.full(64, 2.0**127), np.full(64, 2.0**-127)
    np.testing.assert_array_equal(multiplied(row, tmp_path, *ones, large, small), row.k)
    s = np.ones(64)
    s[row.m + 1] = np.nan  # of row 1, block 1
    y = multiplied(row, tmp_path, *ones, s, np.ones(64))[0]
    bad = {_home(row, 1, column) for column in range(row.n)}
    assert {tuple(at) for at in np.argwhere(np.isnan(y))} == bad
    assert (y[~np.isnan(y)] == row.k).all()


@pytest.mark.parametrize("backwards", emulator.ORDERS)
def test_scales_of_another_block_are_found_by_a_check(backwards, tmp_path):
    nest, work = lowered(), work_of()
    source = backend().emit(nest, MI350)
    found = re.search(r"s_tile\[panel<4>\(64, .*?thread / 16 % 4\)\]", source, re.DOTALL)
    assert found is not None
    wrong = found[0].replace("thread / 16 % 4", "(thread / 16 + 1) % 4")
    built = backend().build(source.replace(found[0], wrong), nest, MI350, tmp_path)
    with pytest.raises((BackendError, KernelError), match="`y`"):
        check(backend(), built, nest, MI350, work.spec, work.checks[1], seed=3)
