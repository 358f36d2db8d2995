"""How tiles lie in shared memory as decided: the text is right on the CPU, and what no instruction reads
is refused."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import BULK_CASES, CASES, WIDENED, backend, work_of
from backends.gpu.threads.interpreter.interpret import interpret
from backends.measure import compare, reference
from backends.parameters import parameters
from backends.shared.arrays import poisoned, to_device
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from ir.sizes import bind
from testing.slow import slow

LEGAL = [  # a case, a machine, decisions, and what the source then has
    ("staged", "h200", "swizzle(x, bytes=32)\nswizzle(w, bytes=64)", "matrix<16>"),
    slow("produced", "h200", "swizzle(x, bytes=64)\nswizzle(w, bytes=32)", "matrix<16>"),
    ("streamed", "h200", "swizzle(k, bytes=64)\nswizzle(q, bytes=32)", "panel<16>"),
    ("eight", "a100", "swizzle(w, bytes=32)", "panel<32>"),
    ("staged", "a100", "pad(x, bytes=16)\nswizzle(w, bytes=64)", "panel<32>"),
    slow("staged", "a100", "pad(x, bytes=32)\npad(w, bytes=16)", "copy_async"),
    ("split", "h200", "pad(x, bytes=16)", "copy_async"),
]


def laid(name, machine, more):
    work = work_of(name)
    case = (CASES | BULK_CASES)[name] + WIDENED.get((name, machine), "")
    schedule = parse_schedule(f"schedule({work.spec.name})\n{case}\n{more}\n")
    return lower(work.spec, schedule, machine_of(machine), work.tune)


@pytest.mark.parametrize("name, target, more, word", LEGAL)
def test_a_tile_lies_as_decided_and_results_are_right(name, target, more, word, tmp_path):
    machine, nest, plain = machine_of(target), laid(name, target, more), laid(name, target, "")
    source = backend().emit(nest, machine)
    assert word in source and source != backend().emit(plain, machine)
    whole = [dict(M=200, K=136, N=264)] if name == "produced" else []
    for sizes in (work_of(name).checks[-1], *whole):
        known = reference(nest.spec, sizes, 7)
        found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)
        if target == "h200":  # thread by thread, with races and what lies where
            backend()._interpreted(nest, machine, sizes, known.inputs)


@pytest.mark.parametrize(
    "more, tiles",
    [
        ("swizzle(x, bytes=64)\nswizzle(w, bytes=128)", ()),
        ("swizzle(x, bytes=64)\npad(w, bytes=16)", ()),
        ("pad(x, bytes=16)", ("x",)),  # rows of 80 bytes: copies of two rows meet
        ("pad(x, bytes=128)", ("x",)),  # rows of 192 bytes: every second one begins in one bank
        ("pad(w, bytes=128)", ("w",)),
    ],
)
def test_bank_conflicts_follow_from_the_layout(more, tiles):
    machine, nest = machine_of("a100"), laid("staged", "a100", more)
    sizes = dict(nest.sizes) | {"M": 64, "N": 64, "K": 64}
    inputs = reference(nest.spec, sizes, 7).inputs
    program = backend().program(backend().spelled(nest), machine)
    held = {
        p.name: to_device(inputs[p.name], p.dtype)
        if p.role == "input"
        else poisoned(p, bind(nest.spec, sizes))
        for p in parameters(nest)
    }
    counts = interpret(program, sizes, held, backend().rows(machine), machine.on_chip_bytes, 0)
    found = {n.stem for la in program.launches for t in la.shared if counts.conflicts(n := t.name)}
    assert found & {"x", "w"} == set(tiles)


@pytest.mark.parametrize(
    "name, target, more, why",
    [
        ("staged", "h200", "pad(x, bytes=16)", "wgmma.*reads panels alone"),
        ("produced", "h200", "pad(x, bytes=16)", "not copied in bulk|reads panels alone"),
        ("staged", "h200", "swizzle(x, bytes=128)", "a row of `x` has 64 bytes"),
    ],
)
def test_what_nothing_reads_is_refused(name, target, more, why):
    with pytest.raises(BackendError, match=why):
        backend().emit(laid(name, target, more), machine_of(target))


@pytest.mark.parametrize(
    "more, why",
    [
        ("swizzle(x, bytes=48)", "no panels of 48 bytes"),
        ("pad(x, bytes=8)", "no paddings of 8 bytes"),
        ("pad(x, bytes=16)\nswizzle(x, bytes=64)", "rows with padding or panels"),
        ("pad(b, bytes=16)", "loaded into shared memory for no matmul"),
    ],
)
def test_what_is_no_layout_is_refused(more, why):
    with pytest.raises(KernelError, match=why):
        laid("staged", "h200", more)
