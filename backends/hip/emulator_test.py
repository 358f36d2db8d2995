"""The emulator finds and names faults; exchanges and matrix instructions match the hardware."""

from __future__ import annotations

import numpy as np
import pytest

from backends.backend import BackendError
from backends.gpu.matrix.fragments import fragments, multiply
from backends.hip import emulator
from backends.hip.instructions import transposed, with_functions
from backends.hip.spelling import mfma
from backends.hip.testing.samples import (
    backend,
    emitted,
    emulated,
    machine_of,
    nest_of,
    source_of,
    work_of,
)
from backends.measure import check
from backends.shared.arrays import to_device
from machines.gpu.matrix_instructions import of_machine
from testing.slow import slow_but

TYPES = {"f32": "float", "tf32": "float", "f64": "double", "i32": "i32"}
MFMA = {
    f"{target}-{row.name}-{row.a.dtype}-{row.b.dtype}": (target, row)
    for target in ("mi300", "mi350")
    for row in with_functions(machine_of(target))
    if not row.block  # scaled_test.py tests those with scales
}


def ran(body, folder, **given):
    y = np.zeros(256, np.float32)
    emulated(source_of(body, threads=given.get("threads", 64)), folder, y, **given)
    return y


@pytest.mark.parametrize("backwards", emulator.ORDERS)
def test_work_items_exchange_through_lds(tmp_path, backwards):
    body = """
      float* const t = shared_at<float>(0);
      t[thread] = thread;
      __syncthreads();
      y_ptr[thread] = t[255 - thread];"""
    found = ran(body, tmp_path, threads=256, shared=1024, reversed_order=backwards)
    np.testing.assert_array_equal(found, 255 - np.arange(256))


@pytest.mark.parametrize("distance", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("kind", ["float", "i64", "bf16"])
def test_exchanges_at_xor_distances(tmp_path, distance, kind):
    found = ran(f"  y_ptr[thread] = shuffle_xor({kind}(thread), {distance});", tmp_path)
    np.testing.assert_array_equal(found[:64], np.arange(64) ^ distance)


def test_a_scan_over_a_wavefront(tmp_path):
    body = """
      float run[2] = {1.0f, 2.0f}, carry = 10.0f;
      const auto join = [](float a, float b) { return a + b; };
      scan<2, 1, 16, 4>(run, carry, join);
      y_ptr[thread] = run[1]; y_ptr[64 + thread] = carry;"""
    found = ran(body, tmp_path)
    place = np.arange(64) // 4 % 16
    np.testing.assert_array_equal(found[:64], 10 + 3 * (place + 1))
    np.testing.assert_array_equal(found[64:128], 10 + 3 * 16)


FAULTS = {  # a body, the differences of its launch from one wavefront, and the message
    "no barrier": (
        "float* const t = shared_at<float>(0); t[thread] = 1; __syncthreads(); t[thread] = 2;"
        "y_ptr[thread] = t[thread ^ 65];",
        dict(threads=128, shared=512),
        r"k: race, block 0, thread \d+: (reads|writes) byte \d+ of LDS, which another thread touched",
    ),
    "two writers": (
        "shared_at<float>(0)[thread / 2] = 1;",
        dict(shared=128),
        r"race, block 0, thread \d+: writes byte",
    ),
    "LDS overrun": (
        "shared_at<float>(0)[thread + 1] = 1;",
        dict(shared=256),
        "LDS overrun, block 0, thread 63: byte 259 of 256 of LDS",
    ),
    "store beyond a tensor": (
        "y_ptr[4 * thread + 4] = 1;",
        {},
        "out of bounds, block 0, thread 63: writes byte 1024 of `x0`, which has 1024",
    ),
    "load before a tensor": (
        "y_ptr[thread] = y_ptr[int(thread) - 9];",
        {},
        "out of bounds, block 0, thread 0: reads byte -36 of `x0`",
    ),
    "divergent barrier": (
        "if (thread < 70) __syncthreads();",
        dict(threads=128),
        "divergent barrier, block 0, thread 0: 58 of 128 threads ended before it",
    ),
    "divergent exchange": (
        "if (thread < 7) y_ptr[thread] = shuffle_xor(1.0f, 32);",
        {},
        "divergent exchange, block 0, thread 7: threads of its wavefront are elsewhere",
    ),
    "uninitialised LDS": (
        "y_ptr[thread] = shared_at<float>(0)[thread];",
        dict(shared=256),
        "uninitialised, block 0, thread 0: reads byte 0 of LDS",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_named(name, tmp_path):
    body, given, said = FAULTS[name]
    with pytest.raises(BackendError, match=said) as seen:
        ran(f"  {body}", tmp_path, **given)
    assert seen.value.stage == "check"
    np.testing.assert_array_equal(ran("  y_ptr[thread] = 2;", tmp_path)[:64], 2)  # it continues


def test_reversed_order_begins_with_the_last(tmp_path):
    body = "shared_at<float>(0)[thread + 1] = 1;"
    with pytest.raises(BackendError, match="thread 63"):
        ran(body, tmp_path, shared=4, reversed_order=True)
    with pytest.raises(BackendError, match="thread 0"):
        ran(body, tmp_path, shared=4)


@pytest.mark.parametrize("name", ["staged", "ring", "persistent"])
def test_a_missing_barrier_of_an_emitted_kernel_is_found(name, tmp_path):
    nest, machine, sizes = nest_of(name), machine_of("mi300"), work_of(name).checks[-1]
    source = emitted(name)
    at = source.index(
        "__syncthreads();",
        source.index("for (int k_at" if name != "persistent" else "for (int tile"),
    )
    source = source[:at] + source[at:].replace("__syncthreads();", ";", 1)
    built = backend().build(source, nest, machine, tmp_path)
    with pytest.raises(BackendError, match="_0: (race|uninitialised), block"):
        check(backend(), built, nest, machine, nest.spec, sizes, seed=1)


def test_operands_in_the_wrong_registers_give_wrong_results(tmp_path):
    nest, machine, work = nest_of("staged"), machine_of("mi300"), work_of("staged")
    source = emitted("staged")
    wrong = source.replace(
        "part_2[m_i][k_i], part_2[m_i][k_i + 1]", "part_2[m_i][k_i + 1], part_2[m_i][k_i]"
    )
    assert wrong != source
    built = backend().build(wrong, nest, machine, tmp_path)
    with pytest.raises(BackendError, match="`y`"):
        check(backend(), built, nest, machine, work.spec, work.checks[-1], seed=1)


@pytest.mark.parametrize("name", slow_but(lambda name: name in list(MFMA)[::2], MFMA))
def test_a_matrix_instruction_has_the_published_layout(name, tmp_path):
    """Each element of A by itself against all of B, by the layouts of the table."""
    target, row = MFMA[name]
    lies = fragments(row)
    counts = [lies.a[1].size, lies.b[1].size, lies.c[1].size]
    kinds = [TYPES.get(x.dtype, x.dtype) for x in (row.a, row.b, row.c)]
    define = "__gfx950__" if target == "mi350" else "__gfx942__"
    names = [
        [f"{x}[{n}]" for n in range(count)]
        for x, count in zip("cab", (counts[2], *counts[:2]), strict=True)
    ]
    body = f"""
      {kinds[0]} a[{counts[0]}]; {kinds[1]} b[{counts[1]}]; {kinds[2]} c[{counts[2]}];
      for (int n = 0; n < {counts[0]}; ++n) a[n] = a_ptr[(blockIdx.x * 64 + thread) * {counts[0]} + n];
      for (int n = 0; n < {counts[1]}; ++n) b[n] = b_ptr[thread * {counts[1]} + n];
      for (int n = 0; n < {counts[2]}; ++n) c[n] = thread + n;
      {mfma(row.name)}({", ".join(x for part in names for x in part)});
      for (int n = 0; n < {counts[2]}; ++n) y_ptr[(blockIdx.x * 64 + thread) * {counts[2]} + n] = c[n];"""
    parameters = (
        f"{kinds[2]}* __restrict__ y_ptr, const {kinds[0]}* __restrict__ a_ptr, "
        f"const {kinds[1]}* __restrict__ b_ptr"
    )
    source = f"#define {define} 1\n" + source_of(body, parameters)
    number = row.m * row.k
    a = np.zeros((number, 64, counts[0]), np.float32)
    a.reshape(number, -1)[np.arange(number), np.arange(number)] = 3
    b = np.arange(64 * counts[1]).reshape(64, counts[1]) % 13 - 6.0
    c = np.arange(64)[:, None] + np.arange(counts[2]) + 0.0
    y = to_device(np.zeros((number, 64, counts[2])), row.c.dtype)
    emulated(source, tmp_path, y, to_device(a, row.a.dtype), to_device(b, row.b.dtype), grid=number)
    for n in range(number):
        np.testing.assert_array_equal(
            y[n], multiply(lies, a[n], b.astype(np.float32), c.astype(np.float32))
        )


def test_a_transposed_result_lies_as_operand_a_does():
    rows = [i for i in of_machine(machine_of("mi300")) if i.name == "v_mfma_f32_16x16x16_f16"]
    made = fragments(transposed(rows[0]))
    assert str(made.c) == "((16,4),4):((1,64),16)" == str(made.a)
