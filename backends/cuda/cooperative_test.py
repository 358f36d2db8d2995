"""Cooperative launches: all steps of a recurrence in one launch, whose blocks meet at a grid barrier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backends.backend import BackendError
from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import CASES, backend, emitted, nest_of, work_of
from backends.gpu.source.launches import calls, metadata
from backends.gpu.threads import thread as to
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.measure import compare, reference
from backends.shared.arrays import poisoned, to_device
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec
from ir.sizes import bind
from machines.gpu.matrix_instructions import family

MACHINE = machine_of("h200")
SIZES = [dict(T=5, B=40, H=48), dict(T=1, B=3, H=7), dict(T=3, B=16, H=33), dict(T=4, B=64, H=128)]
SMALL = SIZES[0]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_steps_in_one_launch_give_what_they_give_one_after_the_other(sizes, tmp_path):
    nest = nest_of("cooperative")
    known = reference(nest.spec, sizes, 7)
    for found in (
        emulated(emitted("cooperative"), nest, MACHINE, sizes, known.inputs, tmp_path),
        backend()._interpreted(nest, MACHINE, sizes, known.inputs),
    ):
        compare(nest.spec, sizes, "h", found["h"], known)


def test_steps_from_the_last_to_the_first(tmp_path):
    text = (
        'def f(x: f32[T, B, H], w: f16[H, H]) -> f16[T, B, H]:\n    """F."""\n'
        "    a[t, b, j] = sum(f32(pad(h[t + 1, b, k], 0.0)) * f32(w[j, k]), k)\n"
        "    h[t, b, j] = f16(tanh(a[t, b, j] + x[t, b, j]))\n    return h\n"
    )
    spec, sizes = parse_spec(text), dict(T=4, B=20, H=32)
    lines = (
        "schedule(f)\ntile(t, size=1)\ntile(b, size=16)\ntile(j, size=16)\nplace(t.outer, level=grid)\n"
        "place(b.outer, level=grid)\nplace(j.outer, level=grid)\ncompute(a, unit=matrix)\ncooperative(h)\n"
    )
    nest = lower(spec, parse_schedule(lines), MACHINE, sizes)
    known = reference(spec, sizes, 3)
    found = emulated(backend().emit(nest, MACHINE), nest, MACHINE, sizes, known.inputs, tmp_path)
    compare(spec, sizes, "h", found["h"], known)


def test_there_are_two_launches_of_which_one_needs_all_blocks_at_once():
    own = backend().spelled(nest_of("cooperative"))
    made = list(calls(metadata(backend().program(own, MACHINE)), dict(work_of("cooperative").tune)))
    assert [(c.cooperative, bool(c.arguments)) for c in made] == [(False, True), (True, True)]
    assert made[1].grid == 4 * 8  # tiles of rows and columns


def test_weights_are_copied_before_the_steps_and_the_state_in_each():
    source = emitted("cooperative")
    before, steps = source.split("for (int t_step = 0; t_step < T; ++t_step) {")
    assert before.count("w_ptr +") == 4 and "w_ptr +" not in steps
    assert "h_ptr +" not in before and "between_blocks h_ptr" in before
    assert steps.index("x_ptr +") < steps.index("acquire_all<128>(")
    assert steps.index("acquire_all<128>(") < steps.index("h_ptr +")
    assert steps.count("for (int k_issue") == 1  # that of all four gates


def test_a_block_awaits_those_of_its_rows():
    """A state is read at all columns of the rows that a block computes."""
    (waits,) = (line for line in emitted("cooperative").splitlines() if "acquire_all" in line)
    assert "tile / cdiv(H, 16) * cdiv(H, 16), cdiv(H, 16));" in waits
    assert "(t_step - 1) * (cdiv(B, 16) * cdiv(H, 16))" in waits


# -- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, change, why",
    [
        ("cooperative", ("tile(b, size=16)", "tile(b, size=1)"), "do not run at once"),
        ("cooperative", ("cooperative(h)", "cooperative(h)\npersistent(h, programs=1)"), "more than one"),
        ("recurrent", ("kernel(gx)", "kernel(gx)\ncooperative(h)"), "several launches"),
        ("rows", ("threads(y", "cooperative(y)\nthreads(y"), "no step of a recurrence"),
    ],
)  # fmt: skip
def test_blocks_that_cannot_run_all_steps_are_refused(name, change, why):
    work = work_of(name)
    decided = CASES[name].replace(*change)
    schedule = parse_schedule(f"schedule({work.spec.name})\n{decided}\n")
    with pytest.raises(KernelError, match=why):
        lower(work.spec, schedule, MACHINE, work.tune)


def test_more_blocks_than_processors_are_refused_at_a_call():
    own = backend().spelled(nest_of("cooperative"))
    given = metadata(backend().program(own, MACHINE))
    with pytest.raises(BackendError, match="is made for .* up to 132"):
        list(calls(given, dict(T=4, B=1024, H=128)))


# -- planted faults ---------------------------------------------------------------------------------


def changed(block, change):
    found = []
    for s in block:
        if (other := change(s)) is not None:
            found += other
        elif isinstance(s, to.Guard):
            found.append(replace(s, body=changed(s.body, change)))
        else:
            found.append(s)
    return tuple(found)


def without(kind):
    return lambda s: [] if isinstance(s, kind) else None


FAULTS = {
    "flags are not awaited": (without(to.AwaitRaised), faults.FLAG, "was not awaited|no block has"),
    "no flag is raised": (without(to.Raise), faults.DEADLOCK, "nothing raises"),
    "no fence": (without(to.DeviceFence), faults.FENCE, "no fence is between what is written"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_between_blocks_is_named(name):
    change, kind, what = FAULTS[name]
    nest = nest_of("cooperative")
    made = backend().program(backend().spelled(nest), MACHINE)
    (clear, (none, (last,))) = made.groups
    wrong = replace(made, groups=(clear, (none, (replace(last, body=changed(last.body, change)),))))
    sizes = bind(nest.spec, SMALL)
    known = reference(nest.spec, SMALL, 1)
    arrays = {
        p.name: to_device(known.inputs[p.name], p.dtype)
        if p.role == "input"
        else poisoned(p, sizes)
        for p in made.tensors
    }
    table = (*family("mma_sync"), *family("wgmma"))
    with np.errstate(all="ignore"), pytest.raises(ThreadFault, match=what) as found:
        interpret(wrong, sizes, arrays, table, 1 << 18)
    assert found.value.kind == kind
