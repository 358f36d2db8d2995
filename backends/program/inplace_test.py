"""A result lies over an input only where no element is read after it is written."""

import pytest

from backends.program.inplace import overwrites
from backends.registry import backend_for, served_by
from backends.registry import target as machine_of
from ir.lower.lower import lower
from ir.nest.nest import Loop, Store
from ir.network import Network, Step
from ir.parse.parse import parse_spec
from ir.parse.schedule import parse_schedule
from ir.partition.partition import partition


def specified(*lines, inputs="x: f32[8], m: f32[8]", outputs="y: f32[8]"):
    names = ", ".join(o.partition(":")[0] for o in outputs.split("; "))
    types = ", ".join(o.partition(": ")[2] for o in outputs.split("; "))
    body = "".join(f"    {line}\n" for line in lines)
    return parse_spec(f'def f({inputs}) -> ({types}):\n    """f"""\n{body}    return {names}\n')


def network(*lines, **more):
    return partition(specified(*lines, **more), {})


def test_what_is_computed_element_by_element_may():
    made = network("y[c] = x[c] * 0.9 + m[c] * 0.1")
    assert overwrites(made, "y", "x") and overwrites(made, "y", "m")


def test_a_chain_leads_to_it():
    assert overwrites(network("a[c] = x[c] * 0.9", "y[c] = a[c] + m[c] * 0.1"), "y", "x")


def test_what_does_not_read_it_may():
    assert overwrites(network("y[c] = m[c] * 0.1", inputs="m: f32[8]"), "y", "x")


NORM = (  # a norm's result, and what it leaves behind
    "s[c] = sum(x[b, c], b)",
    "y[c] = s[c] * 0.1 + m[c] * 0.9",
    "z[b, c] = x[b, c] - s[c] / 64",
)
SIZES = dict(inputs="x: f32[64, 8], m: f32[8]", outputs="y: f32[8]; z: f32[64, 8]")


def test_results_beside_it_may_have_other_sizes():
    assert overwrites(network(*NORM, **SIZES), "y", "m")


@pytest.mark.parametrize(
    "last", ["cumsum(x[b, c], b)", "where(b == 0, 0.0, pad(z[b - 1, c], 0.0)) + x[b, c]"]
)
def test_they_may_not_where_the_kernel_repeats_what_it_does(last):
    spec = specified(*NORM[:2], f"z[b, c] = {last}", **SIZES)
    step = Step(spec, ("x", "m"), ("y", "z"))
    outputs = (("y", (8,)), ("z", (64, 8)))
    assert not overwrites(Network("f", (), (step,), outputs), "y", "m")


def stores(statements, loops=()):
    """The stores of a block, each with the indices of the loops around it."""
    for s in statements:
        if isinstance(s, Loop):
            yield from stores(s.body, (*loops, s.index))
        elif isinstance(s, Store):
            yield s, loops


# A partition calls the indices of a norm's channels `i`, and of its rows `j`.
SCHEDULES = [
    "",
    "tile(i, size=1); place(i.outer, level=grid)",
    "tile(j, size=8); place(j.outer, level=grid)",
    "tile(j, size=8); place(j.outer, level=loop)",
    "tile(i, size=2); tile(j, size=8); place(i.outer, level=grid); place(j.outer, level=grid)",
    "tile(i, size=2); tile(j, size=8); place(i.outer, level=loop); place(j.outer, level=loop)",
]


@pytest.mark.parametrize("target", ["h200", "cpu", "npu"])
@pytest.mark.parametrize("text", SCHEDULES)
def test_each_element_is_stored_once_however_a_kernel_is_scheduled(text, target):
    spec = network(*NORM, **SIZES).steps[0].spec
    lines = "".join(f"{line}\n" for line in text.split("; "))
    machine = machine_of(target)
    schedule = parse_schedule(f"schedule({spec.name})\n{lines}")
    nest = lower(spec, schedule, served_by(machine, backend_for(machine)), {})
    found = 0
    for launch in nest.launches:
        for block in (launch.once, launch.body):
            for store, loops in stores(block):
                if store.tensor == spec.outputs[0].name:
                    found += 1
                    assert set(loops) <= {"i"}
                    if block is launch.body:
                        assert {a.index for a in launch.grid} - {"i"} <= set(store.once)
    assert found == 1


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (["y[c] = x[7 - c] * 0.9 + m[c]"], {}),
        (["s[()] = sum(x[c], c)", "y[c] = m[c] * s[()]"], {}),
        (["y[c] = x[c] + m[c]", "z[c] = x[c]"], dict(outputs="y: f32[8]; z: f32[8]")),
        (
            [
                "a[c] = x[c] * 2.0",
                "y[c] = a[c] + m[c]",
                "t[()] = sum(a[c], c)",
                "z[c] = m[c] * t[()]",
            ],
            dict(outputs="y: f32[8]; z: f32[8]"),
        ),
        (["y[c] = x[c] + m[c]", "z[c] = y[c] * 2.0"], dict(outputs="y: f32[8]; z: f32[8]")),
        (
            ["y[c] = x[c] + m[c]", "t[()] = sum(y[c], c)", "z[c] = x[c] * t[()]"],
            dict(outputs="y: f32[8]; z: f32[8]"),
        ),
    ],
)
def test_what_others_still_read_may_not(lines, more):
    assert not overwrites(network(*lines, **more), "y", "x")


def test_what_no_step_computes_may_not():
    assert not overwrites(network("y[c] = x[c] + m[c]"), "x", "m")
