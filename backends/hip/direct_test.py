"""Copies to LDS past the registers: right in emulator and interpreter, no wait behind the barrier; faults
are found, and what cannot be copied so is refused."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from backends.backend import BackendError
from backends.gpu.layout.swizzle import Swizzle
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.hip import build as building
from backends.hip.backend import program, spelled
from backends.hip.instructions import instructions
from backends.hip.testing.samples import CASES, backend, emitted, machine_of, nest_of, work_of
from backends.measure import check, reference
from backends.parameters import parameters
from backends.shared.arrays import poisoned, to_device
from ir.edits.edits import neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.parse.parse import parse_schedule, parse_spec
from ir.sizes import bind
from testing.slow import in_turn

TARGETS = {"mi300": "buffer_load_dword v", "mi350": "buffer_load_dwordx4 v"}
WORK = work_of("direct")
LINES = CASES["direct"][1]


def lowered(machine, lines, spec=WORK.spec, sizes=None):
    schedule = parse_schedule(f"schedule({spec.name})\n{lines}\n")
    return lower(spec, schedule, machine, sizes or WORK.tune)


@pytest.mark.parametrize("target", TARGETS)
def test_copies_are_right_and_the_loop_waits_once_before_its_barrier(target, tmp_path):
    machine, nest = machine_of(target), nest_of("direct", target)
    built = backend().build(emitted("direct", target), nest, machine, tmp_path)
    for sizes in WORK.checks:
        check(backend(), built, nest, machine, nest.spec, sizes, seed=3)
    (text,) = (f.read_text(encoding="utf-8") for f in tmp_path.glob("*.s"))
    copies = re.findall(r"\t(\S+) v\d+, s\[\d+:\d+\], 0 offen lds", text)
    assert set(copies) == {TARGETS[target].removesuffix(" v")}
    assert text.count("s_waitcnt vmcnt") == 1  # the one in the loop, before its barrier
    assert re.search(r"s_waitcnt vmcnt\(0\)(?:\n.*){,8}?\n\ts_barrier", text)
    assert built.figures[f"{nest.launches[0].name}.loop.copy_async"] > 0


def test_registers_and_stores_to_lds_are_saved(tmp_path):
    machine, figures = machine_of("mi350"), {}
    for name, lines in (("lds", LINES), ("no", LINES.replace("copy(", "# copy("))):
        nest, folder = lowered(machine, lines), tmp_path / name
        folder.mkdir()
        figures[name] = (
            backend().build(backend().emit(nest, machine), nest, machine, folder).figures
        )
    launch = nest.launches[0].name
    assert figures["lds"]["registers"] < figures["no"]["registers"]
    assert figures["lds"][f"{launch}.loop.shared"] < figures["no"][f"{launch}.loop.shared"]


def test_large_tensors_are_copied_by_address(tmp_path):
    machine, sizes = machine_of("mi350"), {"M": 1 << 20, "K": 2048, "N": 256}
    nest = lowered(machine, LINES, sizes=sizes)
    backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    (text,) = (f.read_text(encoding="utf-8") for f in tmp_path.glob("*.s"))
    assert "global_load_lds_dwordx4" in text and " lds\n" not in text


def test_a_hint_goes_with_a_copy(tmp_path):
    machine = machine_of("mi350")
    nest = lowered(machine, f"{LINES}\ncache(w, hint=evict_first)")
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    (text,) = (f.read_text(encoding="utf-8") for f in tmp_path.glob("*.s"))
    assert " offen nt lds" in text and " offen lds" in text
    check(backend(), built, nest, machine, nest.spec, WORK.checks[0], seed=3)


PLANTED = {  # for each text: the change, the replacement and the message
    "no wait": (
        "    wait_copies<0>();\n",
        "",
        r"copy in flight, block 0, thread \d+: reads byte \d+",
    ),
    "a wait behind the barrier": (
        "    wait_copies<0>();\n    __syncthreads();\n",
        "    __syncthreads();\n    wait_copies<0>();\n",
        r"(copy in flight|race), block 0, thread \d+: reads byte \d+ of LDS",
    ),
    "no barrier": (
        "    wait_copies<0>();\n    __syncthreads();\n",
        "    wait_copies<0>();\n",
        "race, block 0",
    ),
    "a swizzle": (
        "panel<8>(64, thread % 64,",
        "panel<8>(64, 1 ^ thread % 64,",
        r"layout, block 0, thread \d+: copies to byte \d+ of LDS, which is not behind",
    ),
    "the stage that is read": (
        "x_tile[k_write_1 * 2048",
        "x_tile[k_read_1 * 2048",
        r"(copy in flight|race|uninitialised), block 0",
    ),
}


@pytest.mark.parametrize(("name", "target"), in_turn(PLANTED, TARGETS))
def test_a_fault_of_the_text_is_found_and_named(name, target, tmp_path):
    old, new, said = PLANTED[name]
    if target == "mi300":  # where four threads share a panel
        old, new = (t.replace("thread % 64", "thread / 4") for t in (old, new))
    machine, source = machine_of(target), emitted("direct", target)
    assert old in source
    nest = nest_of("direct", target)
    built = backend().build(source.replace(old, new), nest, machine, tmp_path)
    with pytest.raises(BackendError, match=said):
        check(backend(), built, nest, machine, nest.spec, WORK.checks[0], seed=3)


def without_waits(statements):
    """The statements without the waits for copies."""
    return tuple(
        replace(s, body=without_waits(s.body)) if isinstance(s, to.Loop) else s
        for s in statements
        if not isinstance(s, to.Wait)
    )


def interpreted(change=None, of_tile=None):
    """Runs the thread program with changed statements or tiles."""
    machine, nest, sizes = machine_of("mi350"), nest_of("direct", "mi350"), WORK.checks[0]
    own, bound = spelled(nest), bind(nest.spec, sizes)
    made = program(own, machine)
    (launch,) = made.launches
    body = change(launch.body) if change else launch.body
    shared = tuple(map(of_tile, launch.shared)) if of_tile else launch.shared
    assert (body, shared) != (launch.body, launch.shared) or not (change or of_tile)
    made = replace(made, groups=((None, (replace(launch, body=body, shared=shared),)),))
    known = reference(nest.spec, sizes, 7)
    tensors = {
        p.name: to_device(known.inputs[p.name], p.dtype)
        if p.role == "input"
        else poisoned(p, bound)
        for p in parameters(nest)
    }
    interpret(made, sizes, tensors, instructions(machine), machine.on_chip_bytes)


@pytest.mark.parametrize(
    ("change", "of_tile", "kind"),
    [
        (without_waits, None, "copy in flight"),
        (None, lambda t: replace(t, padding=8, panel=0), "layout"),
        (None, lambda t: replace(t, swizzle=Swizzle(2, 4, 3).of_elements(2)), "layout"),
    ],
)
def test_a_fault_of_the_thread_program_is_found_and_named(change, of_tile, kind):
    interpreted()
    with pytest.raises(ThreadFault) as seen:
        interpreted(change, of_tile)
    assert seen.value.kind == kind


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        (f"{LINES}\nswizzle(x, bytes=64)", "no `swizzle` and no `pad`"),
        (f"{LINES}\npad(w, bytes=16)", "no `swizzle` and no `pad`"),
        (f"{LINES}\ncopy(y, by=lds)", "tensors that are loaded"),
        (LINES.replace("copy(x, by=lds)", "copy(x, by=bulk)"), "lds"),
    ],
)
def test_decisions_that_do_not_go_with_it_are_refused(lines, allowed):
    with pytest.raises(KernelError) as seen:
        lowered(machine_of("mi350"), lines)
    assert allowed in seen.value.allowed and seen.value.place


TRANSPOSED = parse_spec(
    "def linear(x: bf16[M, K], w: bf16[K, N]) -> bf16[M, N]:\n"
    '    """Multiply."""\n    y[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)\n    return y\n'
)


@pytest.mark.parametrize(
    ("lines", "spec", "why"),
    [
        (LINES.replace("stages=2", "stages=3"), WORK.spec, "2 stages: a wait is for all copies"),
        (LINES.replace("copy(w, by=lds)\n", ""), WORK.spec, "all loads of a loop, and `w` is not"),
        (LINES, TRANSPOSED, "`w` is not copied .* contiguous along one axis K"),
        (LINES.replace("size=64", "size=16"), WORK.spec, "tiles of .* bytes, a copy of a warp"),
        (
            LINES.replace("pipeline(x, stages=2)\npipeline(w, stages=2)\n", ""),
            WORK.spec,
            "loads of loops with 2 stages",
        ),
    ],
)
def test_what_cannot_be_copied_so_is_refused_with_what_can(lines, spec, why):
    machine = machine_of("mi350")
    with pytest.raises(BackendError, match=why) as seen:
        lines = (
            lines.replace("tile(k, size=32)", "tile(k, size=16)") if "size=16" in lines else lines
        )
        backend().emit(lowered(machine, lines, spec), machine)
    assert seen.value.stage == "emit" and "drop copy(" in seen.value.reason


def copies_proposed(name, lines, target="mi350"):
    """The schedules that edits of a case about copies give."""
    work, machine = work_of(name), machine_of(target)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{lines}\n")
    found = neighbours(work.spec, schedule, machine, work.tune)
    return [e.apply(schedule) for e in found if e.decision.verb == "copy"]


@pytest.mark.parametrize("target", TARGETS)
def test_edits_propose_it_for_all_that_a_loop_loads(target):
    without = re.sub(r"copy\(.*\)\n", "", LINES)
    both = canonical(parse_schedule(f"schedule(linear)\n{LINES}\n"))
    (made,) = copies_proposed("direct", without, target)
    (dropped,) = copies_proposed("direct", LINES, target)
    assert made == both and dropped == canonical(parse_schedule(f"schedule(linear)\n{without}\n"))
    machine = machine_of(target)
    source = backend().emit(lower(WORK.spec, made, machine, WORK.tune), machine)
    assert source == emitted("direct", target)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("rows", CASES["rows"][1]),  # no matmul
        ("staged", CASES["staged"][1]),  # w is not contiguous along k
        ("direct", re.sub(r"copy\(.*\)\n", "", LINES).replace("stages=2", "stages=3")),
        ("direct", re.sub(r"(copy|pipeline)\(.*\)\n", "", LINES)),
    ],
)
def test_edits_do_not_propose_what_is_refused(name, lines):
    assert not copies_proposed(name, lines)


def test_the_time_model_counts_four_times_as_many_requests_of_four_bytes():
    large, times = {"M": 4096, "K": 4096, "N": 4096}, {}
    for target in TARGETS:
        machine = machine_of(target)
        for lines in (LINES, LINES.replace("copy(", "# copy(")):
            nest = lowered(machine, lines, sizes=large)
            timing = backend().model(nest, machine, large, {})
            times[target, lines == LINES] = timing.us
    assert times["mi300", True] > times["mi300", False]
    assert times["mi350", True] <= times["mi350", False]


def test_lds_of_a_block_is_that_of_all_stages(tmp_path):
    nest, machine = nest_of("direct", "mi350"), machine_of("mi350")
    file = backend().build(emitted("direct", "mi350"), nest, machine, tmp_path).file
    (launch,) = building.launches(file)["groups"][0]["launches"]
    taken = machine.model.on_chip_bytes(nest.launches[0], machine, WORK.tune)
    assert launch["shared"].count("8192") == 2 and taken == 16384
