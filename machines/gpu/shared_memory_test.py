"""Shared memory of matmuls: slots of prefetched tiles, and tiles that only pass through."""

from dataclasses import replace

import pytest

from ir.sizes import bind
from machines.gpu.shared_memory import shared_bytes, shared_parts, staged_values
from testing.samples.samples import WITH_THREADS, lowered, spec_of

SIZES = {"M": 256, "N": 256, "K": 256}
TILED = (
    "tile(m, size=64)",
    "tile(n, size=32)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)
LOOP = ("tile(k, size=64)", "place(k.outer, level=loop)", "pipeline(w, stages=4)")
REGISTERS = replace(
    WITH_THREADS,
    units={
        **WITH_THREADS.units,
        "matrix": replace(WITH_THREADS.units["matrix"], reads="register"),
    },
)
NORMED = spec_of(
    "e[m, k] = exp(f32(x[m, k]))",
    "acc[m, n] = sum(e[m, k] * f32(w[k, n]), k)",
    "y[m, n] = acc[m, n] * 2.0",
    inputs="x: bf16[M, K], w: bf16[K, N]",
    result="f32[M, N]",
)
X, W = 2 * 64 * 64, 2 * 64 * 32


def parts(kernel, *lines, machine=WITH_THREADS, sizes=None) -> dict[str, int]:
    nest = lowered(kernel, *lines, sizes=sizes or SIZES, machine=machine)
    return shared_parts(nest.launches[-1], machine, bind(nest.spec, sizes or SIZES))


@pytest.mark.parametrize(("machine", "slots"), [(WITH_THREADS, 4), (REGISTERS, 3)])
def test_all_operands_in_a_loop_are_loaded_as_far_ahead_as_one(machine, slots):
    found = parts("matmul_bias_gelu", *TILED, *LOOP, machine=machine)
    assert found == {"x": slots * X, "w": slots * W}


def test_what_operands_are_computed_from_is_loaded_ahead_by_those_that_read_shared_memory():
    lines = (*TILED, *LOOP, "precision(acc, dtype=bf16)")
    assert parts(NORMED, *lines) == {"x": 3 * X, "w": 4 * W}


def test_computed_operands_pass_through_shared_memory_on_the_way_to_registers():
    lines = (*TILED, *LOOP, "precision(acc, dtype=bf16)")
    found = parts(NORMED, *lines, machine=REGISTERS)
    assert found.pop("w") == 3 * W and list(found.values()) == [X]


def test_without_a_loop_operands_share_what_they_pass_through():
    whole = {"x": 2 * 64 * 256, "w": 2 * 256 * 32}
    assert parts("matmul_bias_gelu", *TILED) == whole
    assert parts("matmul_bias_gelu", *TILED, machine=REGISTERS) == {"x": whole["x"]}


TAPS = "acc[o, l] = sum(x[l + i, c] * w[i, c, o], c, i=3)"
TAPPED = ("tile(i, size=1)", "place(i.outer, level=loop)", "compute(acc, unit=matrix)")
IN_LOOP = ("tile(c, size=32)", "place(c.outer, level=loop)")
ONE_X, ONE_W = 4 * 64 * 32, 4 * 32 * 32


@pytest.mark.parametrize("tiled", [(), IN_LOOP])
def test_taps_have_as_many_slots_as_their_loop_loads_ahead(tiled):
    """Filter taps and tiles of channels run as one loop."""
    spec = spec_of(
        TAPS,
        "y[o, l] = acc[o, l] * 2.0",
        inputs="x: f32[L + 2, C], w: f32[3, C, O]",
        result="f32[O, L]",
    )
    lines = (*tiled, *TAPPED, "pipeline(x, stages=3)", "pipeline(w, stages=3)")
    found = parts(spec, *lines, sizes={"C": 64 if tiled else 32, "O": 32, "L": 64})
    assert found == {"x": 3 * ONE_X, "w": 3 * ONE_W}


def test_taps_that_are_written_out_in_a_loop_that_loads_ahead_have_slots_each():
    spec = spec_of(
        TAPS,
        "y[o, l] = acc[o, l] * 2.0",
        inputs="x: f32[L + 2, C], w: f32[3, C, O]",
        result="f32[O, L]",
    )
    lines = (*IN_LOOP, *TAPPED, "load(w, at=c.outer)", "pipeline(w, stages=3)")
    found = parts(spec, *lines, sizes={"C": 64, "O": 32, "L": 64})
    assert found == {"x": 3 * 2 * ONE_X, "w": 3 * ONE_W}


def test_what_lies_in_shared_memory_is_what_is_loaded_for_products():
    nest = lowered("matmul_bias_gelu", *TILED, *LOOP, sizes=SIZES, machine=REGISTERS)
    assert staged_values(nest.launches[0]) == {"x", "w"}


def test_launches_that_differ_in_threads_take_the_same_and_those_with_other_stages_do_not():
    nest = lowered("matmul_bias_gelu", *TILED, *LOOP, sizes=SIZES, machine=REGISTERS)
    sizes = bind(nest.spec, SIZES)
    plain = nest.launches[0]
    more = replace(plain, threads=2 * (plain.threads or 128))
    deep = replace(plain, values=tuple(replace(v, stages=5) for v in plain.values))
    assert plain != more and hash(plain) != hash(more)
    taken = [shared_bytes(one, REGISTERS, sizes) for one in (plain, more, deep)]
    assert taken[0] == taken[1] < taken[2]
    assert shared_bytes(plain, REGISTERS, sizes) == taken[0]
    parts = shared_parts(plain, REGISTERS, sizes)
    parts.clear()  # it is the caller's own
    assert shared_bytes(plain, REGISTERS, sizes) == taken[0]
