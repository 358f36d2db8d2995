"""Packed copies of inputs, and transposed tensors between launches."""

import numpy as np
import pytest

from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.nest.nest import Load, Scan
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.spec import Index
from ir.variant.pack import dimensions
from testing.samples.right import require_formed_right
from testing.samples.samples import (
    SMALL,
    WITH_TF32,
    decisions,
    lowered,
    spec_of,
    statements,
    workload,
)

SIZES = {"M": 21, "K": 70, "N": 18}
MATMUL = spec_of(
    "acc[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: f32[M, K], w: f32[K, N]",
    result="f32[M, N]",
)
TILES = (
    "tile(m, size=16)",
    "tile(n, size=16)",
    "tile(k, size=16)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)


@pytest.mark.parametrize("machine", [SMALL, WITH_TF32])
def test_an_input_is_copied_in_a_launch_of_its_own(machine):
    nest = require_formed_right(
        lowered(MATMUL, *TILES, "pack(w, order=n_k)", sizes=SIZES, machine=machine), SIZES
    )
    copy, product = nest.launches
    assert [p.name for p in copy.parameters] == ["w", "w_nk"]
    assert [p.name for p in product.parameters] == ["x", "w_nk", "y"]
    (load,) = statements(nest, Load, "w_nk")
    assert [one.axis for one in load.region] == ["n", "k"]


def test_what_lies_between_launches_is_computed_in_another_order():
    lines = (*TILES, "precision(acc, dtype=tf32x3)", "kernel(acc_bl)", "pack(acc_bl, order=k_n)")
    nest = require_formed_right(lowered(MATMUL, *lines, sizes=SIZES, machine=WITH_TF32), SIZES)
    shapes = {p.name: p.shape for p in nest.launches[0].parameters}
    assert shapes["acc_bl"] == tuple(reversed(shapes["acc_bh"]))


@pytest.mark.parametrize("sizes", workload("conv2d").checks)
def test_images_are_copied_with_their_channels_last(sizes):
    spec = workload("conv2d").spec
    assert dimensions(spec, "x") == ("b", "c", "p", "q")
    lines = (
        "pack(x, order=b_p_q_c)",
        "pack(w, order=o_i_j_c)",
        "tile(b, size=1)",
        "tile(p, size=1)",
        "place(b.outer, level=grid)",
        "place(p.outer, level=grid)",
        "tile(c, size=8)",
        "tile(q, size=4)",
    )
    nest = require_formed_right(lowered(spec, *lines, sizes=sizes, machine=WITH_TF32), sizes)
    assert [launch.parameters[-1].name for launch in nest.launches] == ["w_oijc", "x_bpqc", "y"]


def test_a_copy_runs_along_indices_of_its_own_which_follow_those_of_its_reader():
    spec = spec_of("y[m] = sum(w[k, m + 1], k)", inputs="w: f32[K, M + 1]", result="f32[M]")
    sizes = {"M": 5, "K": 7}
    nest = require_formed_right(lowered(spec, "pack(w, order=m_k)", sizes=sizes), sizes)
    assert nest.variant.equations[0].at == (Index("w_mk_m"), Index("w_mk_k"))
    lines = ("pack(w, order=m_k)", "tile(k, size=2)", "tile(w_mk_m, size=4)")
    tiles = dict(require_formed_right(lowered(spec, *lines, sizes=sizes), sizes).launches[0].tiles)
    assert tiles == {"w_mk_k": 2, "w_mk_m": 4}


def test_a_copy_is_rounded_for_the_products_that_read_it():
    spec = spec_of(
        "acc[m, n] = sum(x[m, k] * w[k, n], k)",
        "y[m, n] = acc[m, n] + w[0, n]",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    lines = ("pack(w, order=n_k, dtype=tf32)", "pack(x, order=m_k, dtype=tf32)")
    nest = lowered(spec, *TILES, *lines, sizes=SIZES, machine=WITH_TF32)
    values = {v.name: v.dtype for launch in nest.launches for v in launch.values}
    assert values["w_nk"] == values["x_mk"] == "tf32"
    assert [p.name for p in nest.launches[-1].parameters] == ["w", "x_mk", "w_nk", "y"]
    inputs = random_inputs(spec, SIZES, np.random.default_rng(3))
    exact = evaluate(spec, inputs, SIZES)["y"]
    found = interpret(nest, inputs, SIZES, rounded=False)["y"]
    np.testing.assert_allclose(found, exact, 1e-10, 1e-10)
    once = interpret(nest, inputs, SIZES, rounded=True)["y"]
    plain = lowered(spec, *TILES, "precision(acc, dtype=tf32)", sizes=SIZES, machine=WITH_TF32)
    np.testing.assert_array_equal(once, interpret(plain, inputs, SIZES, rounded=True)["y"])


def test_one_rounded_copy_leaves_the_other_operand_to_the_product():
    lines = ("pack(w, order=n_k, dtype=tf32)", "precision(acc, dtype=tf32)")
    nest = require_formed_right(
        lowered(MATMUL, *TILES, *lines, sizes=SIZES, machine=WITH_TF32), SIZES
    )
    values = {v.name: v.dtype for v in nest.launches[-1].values}
    assert (values["w_nk"], values["x"]) == ("tf32", "f32")


@pytest.mark.parametrize(
    ("machine", "lines", "message"),
    [
        (SMALL, ("pack(w, order=n_k, dtype=bf16)",), "is not rounded to bf16"),
        (WITH_TF32, ("pack(z, order=n, dtype=tf32)",), "`z` is no operand of a product"),
        (
            WITH_TF32,
            ("precision(acc, dtype=tf32x3)", "pack(acc_bl, order=k_n, dtype=tf32)"),
            "`acc_bl` is computed here, so its layout rounds nothing",
        ),
    ],
)
def test_what_is_not_rounded_is_refused(machine, lines, message):
    spec = spec_of(
        "acc[m, n] = sum(x[m, k] * w[k, n], k)",
        "y[m, n] = acc[m, n] + z[n]",
        inputs="x: f32[M, K], w: f32[K, N], z: f32[N]",
        result="f32[M, N]",
    )
    with pytest.raises(KernelError, match=message):
        lowered(spec, *TILES, *lines, sizes=SIZES, machine=machine)


def test_only_inputs_of_f32_are_rounded():
    spec = spec_of(
        "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
        "y[m, n] = acc[m, n] + 1.0",
        inputs="x: bf16[M, K], w: bf16[K, N]",
        result="f32[M, N]",
    )
    with pytest.raises(KernelError, match="`w` is bf16, so no copy of it is rounded"):
        lowered(spec, "pack(w, order=n_k, dtype=tf32)", sizes=SIZES, machine=WITH_TF32)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pack(y, order=n_m)", "`y` is an output"),
        ("pack(w, order=k_n)", "`order=k_n` is no other order of `w`, whose dimensions are k, n"),
        ("pack(w, order=n)", "`order=n` is no other order"),
        ("pack(v, order=n_k)", "`v` is no tensor"),
        ("pack(w)", "`pack` needs `order=`"),
    ],
)
def test_what_is_no_other_order_is_refused(line, message):
    with pytest.raises(KernelError, match=message):
        lowered(MATMUL, line, sizes=SIZES)


def test_a_name_that_is_taken_is_refused():
    spec = spec_of(
        "w_nk[n, k] = w[k, n] + 1.0",
        "y[m, n] = sum(x[m, k] * w_nk[n, k], k)",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    with pytest.raises(KernelError, match="a second `w_nk`"):
        lowered(spec, "pack(w, order=n_k)", sizes=SIZES)


def test_the_search_is_offered_copies_on_machines_with_registers():
    found = {str(e) for e in neighbours(MATMUL, decisions(MATMUL, *TILES), WITH_TF32, SIZES)}
    assert {"+ pack(x, order=k_m)", "+ pack(w, order=n_k)"} <= found
    start = decisions(MATMUL, *TILES, "pack(w, order=n_k)")
    found = {str(e) for e in neighbours(MATMUL, start, WITH_TF32, SIZES)}
    assert "- pack(w, order=n_k)" in found
    assert "+ kernel(w_nk)" not in found
    assert "+ pack(w_nk, order=k_n)" not in found
    found = neighbours(MATMUL, decisions(MATMUL, *TILES), SMALL, SIZES)
    assert not any("pack" in str(e) for e in found)


def test_what_was_decided_on_a_copy_goes_with_it():
    start = decisions(MATMUL, *TILES, "pack(w, order=n_k)", "threads(w_nk, count=32)")
    found = Edit(start.find("pack", "w"), None).apply(start)
    assert set(found.decisions) == set(decisions(MATMUL, *TILES).decisions)


def test_a_scan_of_a_copy_runs_along_its_own_order():
    spec, sizes = workload("cumsum").spec, workload("cumsum").checks[1]
    lines = (
        "pack(x, order=k_m)",
        "tile(m, size=2)",
        "tile(k, size=4)",
        "place(m.outer, level=grid)",
    )
    nest = require_formed_right(lowered(spec, *lines, sizes=sizes, machine=WITH_TF32), sizes)
    (scan,) = statements(nest, Scan)
    launch = nest.launches[1]
    assert launch.value(scan.source.value).names == launch.value(scan.value).names
