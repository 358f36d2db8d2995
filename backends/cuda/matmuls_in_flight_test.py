"""A matmul whose operand A is computed in registers is in flight while the next one is loaded: the compiler
keeps it so, and the kernel is right."""

from __future__ import annotations

import subprocess

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import backend
from backends.gpu.cubins.code import cuobjdump
from backends.measure import compare, reference
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.workload import LIBRARY

SCHEDULE = """schedule(rmsnorm_matmul)
hoist(r, into=y)
tile(m, size=128)
tile(n, size=256)
tile(k, size=64)
place(m.outer, level=grid)
place(n.outer, level=grid)
place(k.outer, level=loop)
fuse(ss, into=acc)
compute(acc, unit=matrix)
precision(acc, dtype=bf16)
pipeline(x, stages=3)
pipeline(w, stages=3)
copy(x, by=bulk)
copy(w, by=bulk)
threads(y, count=256)
"""


def test_the_wait_is_an_iteration_later(tmp_path):
    text = (LIBRARY / "rmsnorm_matmul.kir").read_text(encoding="utf-8")
    work, machine = parse_workload(text, "rmsnorm_matmul"), machine_of("h200")
    nest = lower(work.spec, parse_schedule(SCHEDULE), machine, work.tune)
    source = backend().emit(nest, machine)
    built = backend().build(source, nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    (image,) = tmp_path.glob("*.cubin")
    words = [str(cuobjdump()), "-sass", str(image)]
    sass = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    # A matmul that the compiler serializes is waited for where it was issued.
    assert "WARPGROUP.DEPBAR.LE gsb0, 0x1" in sass
    assert sass.count("WARPGROUP.DEPBAR") < sass.count("HGMMA")
    for sizes in (work.checks[-1], dict(M=130, K=136, N=264)):
        known = reference(nest.spec, sizes, 7)
        found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)
        backend()._interpreted(nest, machine, sizes, known.inputs)
