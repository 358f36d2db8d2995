"""Golden texts of emitted kernels, one for each thing that emission knows how to do: each compiles
without spills for sm_80 and sm_90, and gives on the CPU what the reference gives."""

from __future__ import annotations

import subprocess

import pytest

from backends.cuda.spelling import FILTERS
from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import BULK_CASES, CASES, backend, emitted, nest_of, work_of
from backends.emit import Templates
from backends.gpu.cubins.code import cuobjdump
from backends.gpu.threads import thread
from backends.gpu.tile import SORTS
from backends.measure import compare, reference
from backends.registry import served_by, target
from testing.slow import in_turn, slow_but

# Sizes at which the DMA engine takes the tensors, beside odd ones.
BOXED = {
    "produced": [dict(M=200, K=136, N=264)],
    # Shares of several iterations, across the ends of tiles.
    "stream_k_by_roles": [dict(M=200, K=1048, N=264), dict(M=8, K=4096, N=8)],
    "clustered": [dict(M=200, K=136, N=264), dict(M=129, K=40, N=72), dict(M=8, K=8, N=8)],
    "pingpong": [dict(M=200, K=136, N=264)],
    "windowed": [dict(B=1, H=11, W=35, C=72, O=72, P=6, Q=18)],
    "fetched": [dict(H=2, M=96, N=96, D=64)],
    "overlapped": [dict(H=2, M=96, N=200, D=64)],
    "ahead": [dict(H=2, M=96, N=200, D=64)],
}


@pytest.mark.parametrize("name", [*CASES, *BULK_CASES])
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    golden(f"backends/cuda/golden/{name}.cu", emitted(name))


@pytest.mark.parametrize(
    ("name", "machine"), in_turn(CASES, ["h200", "a100"]), indirect=["machine"]
)
def test_an_emitted_kernel_compiles_without_spills(name, machine, tmp_path):
    nest = nest_of(name, machine.name)
    built = backend().build(emitted(name, machine.name), nest, machine, tmp_path)
    assert built.figures["spills"] == 0 and 0 < built.figures["registers"] <= 255
    assert built.figures["occupancy"] > 0
    assert built.figures[f"{nest.launches[0].name}.mix.store"] > 0


@pytest.mark.parametrize("name", BULK_CASES)
def test_a_kernel_with_roles_compiles_and_keeps_matmuls_in_flight(name, tmp_path):
    machine = served_by(target("h200"), backend())
    nest = nest_of(name)
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    image = next(tmp_path.glob("*.cubin"))
    text = subprocess.run(
        [str(cuobjdump()), "-sass", str(image)], capture_output=True, text=True, check=True
    ).stdout
    # Where the compiler serializes them, there is a wait after each.
    issues, waits = (text.count(word) for word in ("HGMMA", "WARPGROUP.DEPBAR"))
    assert 0 < waits < issues


@pytest.mark.parametrize(
    ("name", "machine"), in_turn(CASES, ["a100", "h200"]), indirect=["machine"]
)
def test_an_emitted_kernel_is_right_thread_by_thread(name, machine, tmp_path):
    nest, sizes = nest_of(name, machine.name), work_of(name).checks[-1]
    known = reference(nest.spec, sizes, 7)
    source = emitted(name, machine.name)
    found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
    for output, array in found.items():
        compare(nest.spec, sizes, output, array, known)


@pytest.mark.parametrize(
    "name", slow_but(lambda name: name in ("produced", "windowed"), BULK_CASES)
)
def test_a_kernel_with_roles_is_right_thread_by_thread(name, tmp_path):
    machine, nest = machine_of("h200"), nest_of(name)
    for sizes in (work_of(name).checks[-1], *BOXED[name]):
        known = reference(nest.spec, sizes, 7)
        found = emulated(emitted(name), nest, machine, sizes, known.inputs, tmp_path)
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)


def test_every_sort_of_name_and_node_has_a_spelling():
    made = Templates("cuda", filters=FILTERS)
    names = made.table("threads/names.j2", "NAMES")
    assert set(SORTS) - {"descriptor", "bulk"} <= set(names)
    statements = made.table("threads/statements.j2", "STATEMENTS")
    own = {s.__name__ for s in thread.Statement.__subclasses__()}
    others = {"WarpgroupMultiply", "WarpgroupWait", "TensorMultiply", "TensorLoad"}
    assert own - others <= set(statements)
