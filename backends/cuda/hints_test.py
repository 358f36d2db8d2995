"""Hints to the caches: what the instructions say, and that results are the same."""

from __future__ import annotations

import subprocess

import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import BULK_CASES, CASES, backend, work_of
from backends.gpu.cubins.code import cuobjdump
from backends.measure import compare, reference
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from testing.slow import slow_but

HINTS = {  # decisions for a case
    "rows": "cache(x, hint=evict_first)\ncache(y, hint=no_allocate)",
    "staged": "cache(x, hint=evict_first)\ncache(w, hint=evict_last)\ncache(y, hint=evict_first)",
    "produced": "cache(x, hint=evict_first)\ncache(w, hint=evict_last)\ncache(y, hint=evict_last)",
    "streamed": "cache(q, hint=no_allocate)\ncache(k, hint=evict_last)\ncache(v, hint=no_allocate)",
}


def hinted(name, more=""):
    work = work_of(name)
    decided = f"{(CASES | BULK_CASES)[name]}\n{more or HINTS[name]}"
    schedule = parse_schedule(f"schedule({work.spec.name})\n{decided}\n")
    return lower(work.spec, schedule, machine_of("h200"), work.tune)


def instructions(name, folder):
    machine, nest = machine_of("h200"), hinted(name)
    backend().build(backend().emit(nest, machine), nest, machine, folder)
    (image,) = folder.glob("*.cubin")
    made = subprocess.run([str(cuobjdump()), "-sass", str(image)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.parametrize(
    "name, said",
    [
        ("rows", ("LDG.E.EF.", "STG.E.NA.")),
        ("staged", ("STG.E.EF.",)),
        ("streamed", ("LDG.E.NA.",)),
    ],
)
def test_instructions_say_what_the_schedule_does(name, said, tmp_path):
    text = instructions(name, tmp_path)
    assert all(word in text for word in said)


def test_copies_and_boxes_tell_the_cache(tmp_path):
    """A copy without a hint has no policy as operand."""
    for name in ("staged", "produced"):
        folder = tmp_path / name
        folder.mkdir()
        hinted_text = instructions(name, folder)
        word = "LDGSTS" if name == "staged" else "UTMALDG"
        moved = [line for line in hinted_text.splitlines() if word in line and "DEPBAR" not in line]
        assert moved and all("desc[" in line for line in moved)


@pytest.mark.parametrize("name", slow_but(lambda name: name == "staged", HINTS))
def test_results_are_the_same(name, tmp_path):
    machine, nest = machine_of("h200"), hinted(name)
    sizes = work_of(name).checks[-1]
    known = reference(nest.spec, sizes, 7)
    source = backend().emit(nest, machine)
    found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
    for output, array in found.items():
        compare(nest.spec, sizes, output, array, known)


def test_what_bypasses_l1_anyway_takes_no_such_hint():
    for name in ("staged", "produced"):
        with pytest.raises(KernelError, match="moved by nothing that takes the hint"):
            hinted(name, "cache(x, hint=no_allocate)")
