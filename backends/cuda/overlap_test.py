"""A matmul one iteration later: the compiled code computes exponentials while it is in flight."""

import subprocess

import pytest

from backends.backend import BackendError
from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import backend
from backends.gpu.cubins.code import cuobjdump
from backends.gpu.model.model import modelled
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import LIBRARY

SIZES = dict(H=16, M=4096, N=4096, D=128)
SCHEDULE = """schedule(attention)
tile(h, size=1)
tile(m, size=128)
tile(n, size=128)
place(h.outer, level=grid)
place(m.outer, level=grid)
place(n.outer, level=loop)
fuse(l, into=o)
online(mx, into=o)
compute(s, unit=matrix)
compute(o, unit=matrix)
precision(o, dtype=bf16)
pipeline(k, stages=3)
pipeline(v, stages=3)
copy(k, by=bulk)
copy(v, by=bulk)
threads(y, count=256)
"""
WORK = parse_workload((LIBRARY / "attention.kir").read_text(encoding="utf-8"), "attention")


def nest_of(*lines):
    schedule = parse_schedule(SCHEDULE + "".join(f"{line}\n" for line in lines))
    return lower(WORK.spec, schedule, machine_of("h200"), SIZES)


def test_exponentials_are_computed_while_it_is_in_flight(tmp_path):
    nest, machine = nest_of("overlap(o)"), machine_of("h200")
    built = backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    (image,) = tmp_path.glob("*.cubin")
    words = [str(cuobjdump()), "-sass", str(image)]
    sass = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    between = sass.split("WARPGROUP.DEPBAR.LE gsb0, 0x1")[-1].split(
        "WARPGROUP.DEPBAR.LE gsb0, 0x0"
    )[0]
    assert between.count("MUFU.EX2") >= 64 and "HGMMA" not in between


def test_no_matmul_is_serialized_where_one_is_ahead(tmp_path):
    nest, machine = nest_of("overlap(o, ahead=1)"), machine_of("h200")
    backend().build(backend().emit(nest, machine), nest, machine, tmp_path)
    (image,) = tmp_path.glob("*.cubin")
    words = [str(cuobjdump()), "-sass", str(image)]
    sass = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    # The compiler waits behind each instruction, where it serializes them.
    assert sass.count("WARPGROUP.DEPBAR.LE gsb0, 0x0") < sass.count("HGMMA") // 4


def test_a_matmul_that_is_alone_in_its_loop_is_refused():
    with pytest.raises(KernelError, match="no loop multiplies something before `s`") as seen:
        nest_of("overlap(s)")
    assert seen.value.allowed == "o"


def test_a_loop_that_copies_nothing_in_bulk_is_refused():
    by_threads = SCHEDULE.replace("copy(k, by=bulk)\n", "").replace("copy(v, by=bulk)\n", "")
    schedule = parse_schedule(by_threads + "overlap(o)\n")
    nest = lower(WORK.spec, schedule, machine_of("h200"), SIZES)
    with pytest.raises(BackendError, match="copies nothing in bulk"):
        backend().emit(nest, machine_of("h200"))


def test_the_time_model_hides_it():
    machine = machine_of("h200")
    plain, later = (
        modelled(nest_of(*lines), machine, backend().rules, SIZES, {}).figures[
            "attention_0.alone_us"
        ]
        for lines in ((), ("overlap(o)",))
    )
    assert later < plain
