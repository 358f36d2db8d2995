"""Producers as decided: the text is right thread by thread, by boxes and by copies of their own."""

from __future__ import annotations

import pytest

from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import BULK_CASES, backend, work_of
from backends.measure import compare, reference
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from testing.slow import slow


def decided(name, more):
    work = work_of(name)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{BULK_CASES[name]}\n{more}\n")
    return lower(work.spec, schedule, machine_of("h200"), work.tune)


@pytest.mark.parametrize(
    "more, words",
    [
        ("roles(y, producers=32)", ("__launch_bounds__(288, 1)", "k_full_1, (BULK ? 1 : 32)")),
        slow("roles(y, producers=128, registers=24)", ("release_registers<(BULK ? 24 : 88)>",)),
    ],
)
def test_producers_are_as_decided_and_results_are_right(more, words, tmp_path):
    machine, nest = machine_of("h200"), decided("produced", more)
    source = backend().emit(nest, machine)
    assert all(word in source for word in words), source
    built = backend().build(source, nest, machine, tmp_path)
    assert built.figures["spills"] == 0
    for sizes in (work_of("produced").checks[-1], dict(M=200, K=136, N=264)):
        known = reference(nest.spec, sizes, 7)
        found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)
        backend()._interpreted(nest, machine, sizes, known.inputs)


@pytest.mark.parametrize(
    "more, why",
    [
        ("roles(y, producers=48)", "no number of threads that start copies"),
        ("roles(y, producers=32, registers=24)", "cannot be decided"),
        ("roles(y, producers=128, registers=20)", "cannot be decided"),
        ("roles(acc, producers=32)", "copies nothing in bulk|no launch stores"),
    ],
)
def test_what_are_no_roles_is_refused(more, why):
    with pytest.raises(KernelError, match=why):
        decided("produced", more)
