"""Which operands may be rounded to a float of smaller range, and which are refused."""

from dataclasses import replace

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.schedule import Decision
from ir.variant.narrow import in_range, require_range
from ir.variant.variant import formulate
from ir.verify import facts
from testing.samples.samples import (
    SMALL,
    WITH_REGISTERS,
    WITH_TF32,
    WITH_THREADS,
    decisions,
    lowered,
    spec_of,
    workload,
)

HOIST = "hoist(r1, into=y)"
PRODUCTS = ("compute(u, unit=matrix)", "compute(z, unit=matrix)")
HOISTED = Decision("hoist", "r1", (("into", "y"),))
F16 = Decision("precision", "z", (("dtype", "f16"),))
TF32 = Decision("precision", "z", (("dtype", "tf32"),))
PFFN = workload("pffn").spec
HALVES = "x: f16[M, K], g: f16[K], w: f16[K, N]"
NORMED = ("s[m] = sum(f32(x[m, k]) ** 2, k)", "r[m] = f16(rsqrt(s[m] + 1e-06))")


def refused(spec, *lines, machine=WITH_TF32, given=None) -> KernelError:
    with pytest.raises(KernelError) as caught:
        require_range(spec, decisions(spec, *lines), machine, given)
    return caught.value


def accepted(spec, *lines, machine=WITH_TF32, given=None) -> bool:
    return require_range(spec, decisions(spec, *lines), machine, given) is None


def attention(dtype: str, *, scaled: str = "p[h, m, n] = exp(a[h, m, n] - mx[h, m])"):
    """Attention that divides its weights before they are multiplied."""
    return spec_of(
        "a[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)",
        "mx[h, m] = max(a[h, m, n], n)",
        scaled,
        "l[h, m] = sum(p[h, m, n], n)",
        "c[h, m] = 1.0 / l[h, m]",
        "o[h, m, d] = sum(p[h, m, n] * c[h, m] * f32(v[h, n, d]), n)",
        "y[h, m, d] = o[h, m, d]",
        inputs=f"q: {dtype}[H, M, D], k: {dtype}[H, N, D], v: {dtype}[H, N, D]",
        result=f"{dtype}[H, M, D]",
    )


# -- what a hoisted factor leaves ------------------------------------------------------------


def test_without_its_normalising_factor_an_operand_is_not_rounded_to_f16():
    found = refused(PFFN, HOIST, "precision(z, dtype=f16)")
    assert "`z` may not round `h[b, n, k] * f32(g1[k])` to f16" in found.what
    assert "hoist(r1, into=y)" in found.what and "65504" in found.what
    assert found.allowed == "tf32, tf32x3, f32"
    assert found.hint == "drop hoist(r1, into=y), or precision(z, dtype=f16)"
    assert found.place.line == 3


def test_lowering_refuses_it_too():
    with pytest.raises(KernelError, match="largest f16"):
        lowered("pffn", HOIST, *PRODUCTS, "precision(z, dtype=f16)", machine=WITH_TF32)


@pytest.mark.parametrize("dtype", ["tf32", "tf32x3", "f32"])
def test_formats_of_the_range_of_f32_stay_legal(dtype):
    assert accepted(PFFN, HOIST, *PRODUCTS, f"precision(z, dtype={dtype})")


def test_bf16_stays_legal():
    spec = workload("rmsnorm_matmul").spec
    assert accepted(spec, "hoist(r, into=y)", "precision(acc, dtype=bf16)")


def test_without_the_hoisting_it_is_the_operand_of_the_equations():
    assert accepted(PFFN, "precision(z, dtype=f16)")


def test_of_other_products_nothing_changes():
    assert accepted(PFFN, HOIST, "precision(u, dtype=f16)")


def test_the_refused_kernel_was_wrong_for_large_inputs_and_the_legal_ones_are_not():
    """f16 operands of the nest, by the interpreter, as a device rounds them."""
    sizes = workload("pffn").checks[-1]
    rng = np.random.default_rng(1)
    large = random_inputs(PFFN, sizes, rng, scale=16.0)

    def finite(nest: LoopNest) -> bool:
        return bool(np.isfinite(interpret(nest, large, sizes, rounded=True)["y"]).all())

    assert finite(lowered("pffn", *PRODUCTS, "precision(z, dtype=f16)", machine=WITH_TF32))
    assert finite(lowered("pffn", HOIST, *PRODUCTS, "precision(z, dtype=tf32)", machine=WITH_TF32))
    legal = lowered("pffn", HOIST, *PRODUCTS, "precision(z, dtype=tf32)", machine=WITH_TF32)
    launches = tuple(
        replace(
            launch,
            values=tuple(
                replace(v, dtype="f16") if v.dtype == "tf32" else v for v in launch.values
            ),
        )
        for launch in legal.launches
    )
    assert not finite(replace(legal, launches=launches))


def test_a_hoisted_divisor_leaves_probabilities_that_f16_holds():
    assert accepted(attention("f16"), "hoist(c, into=y)", "precision(o, dtype=f16)")


def test_exponentials_without_their_maximum_are_not_bounded():
    spec = attention("f16", scaled="p[h, m, n] = exp(2.0 * a[h, m, n] - mx[h, m])")
    assert "`p[h, m, n]`" in refused(spec, "hoist(c, into=y)", "precision(o, dtype=f16)").what


def test_an_input_that_is_left_alone_is_held_as_it_is():
    spec = spec_of(
        *NORMED,
        "a[m, n] = sum(f32(x[m, k]) * r[m] * f32(w[k, n]), k)",
        "y[m, n] = a[m, n]",
        inputs="x: f16[M, K], w: f16[K, N]",
        result="f16[M, N]",
    )
    assert accepted(spec, "hoist(r, into=y)", "precision(a, dtype=f16)")


# -- floats of 16 bits without casts ----------------------------------------------------------


def test_a_sum_of_f16_without_its_factor_is_one_of_f32():
    spec = spec_of(
        *NORMED,
        "a[m, n] = sum(x[m, k] * r[m] * w[k, n], k)",
        "y[m, n] = a[m, n]",
        inputs="x: f16[M, K], w: f16[K, N]",
        result="f16[M, N]",
    )
    assert facts(spec).tensors["a"].dtype == "f16"
    formed = formulate(spec, decisions(spec, "hoist(r, into=y)"))
    assert facts(formed).tensors["a"].dtype == "f32"
    nest = lowered(spec, "hoist(r, into=y)", "kernel(a)", sizes={"M": 4, "K": 8, "N": 4})
    stored = {p.name: p.dtype for launch in nest.launches for p in launch.parameters}
    assert stored["a"] == "f32"


def test_a_product_of_three_in_the_other_order_is_of_f32():
    spec = spec_of(
        "t[d, n] = sum(x[i, d] * y0[i, n], i)",
        "y[m, n] = sum(w[m, d] * t[d, n], d)",
        inputs="x: f16[I, D], y0: f16[I, N], w: f16[M, D]",
        result="f16[M, N]",
    )
    formed = formulate(spec, decisions(spec, "associate(t)"))
    assert facts(formed).tensors["t_again"].dtype == "f32"
    assert accepted(spec, "precision(y, dtype=f16)")
    assert "`t_again[" in refused(spec, "associate(t)", "precision(y, dtype=f16)").what


# -- other verbs --------------------------------------------------------------------------------


def test_a_product_of_three_in_the_other_order_has_operands_of_its_own():
    spec = workload("wukong_fm").spec
    assert accepted(spec, "precision(out, dtype=f16)")
    assert "associate(t)" in refused(spec, "associate(t)", "precision(out, dtype=f16)").hint


def test_online_exponentials_stay_below_one():
    lines = ("hoist(c, into=y)", "online(mx, into=o)", "fuse(l, into=o)", "precision(o, dtype=f16)")
    assert accepted(attention("f16"), *lines)


def test_what_is_rescaled_while_a_maximum_grows_is_bounded_or_refused():
    spec = spec_of(
        "mx[m] = max(x[m, k], k)",
        "p[m, k] = exp(x[m, k] - mx[m])",
        "h[k] = f32(g[k]) * 1000.0",
        "a[m, n] = sum(p[m, k] * h[k] * f32(w[k, n]), k)",
        "y[m, n] = a[m, n]",
        inputs="x: f32[M, K], g: f16[K], w: f16[K, N]",
        result="f32[M, N]",
    )
    assert accepted(spec, "precision(a, dtype=f16)")
    assert "online" in refused(spec, "online(mx, into=a)", "precision(a, dtype=f16)").what


def test_precision_takes_floats_only():
    spec = spec_of(
        "a[m, n] = sum(f32(i[k]) * x[m, k] * w[k, n], k)",
        "y[m, n] = a[m, n]",
        inputs="x: f32[M, K], w: f32[K, N], i: i8[K]",
        result="f32[M, N]",
    )
    with pytest.raises(KernelError, match="may not be rounded to i8"):
        lowered(spec, "precision(a, dtype=i8)", sizes={"M": 2, "K": 2, "N": 2})


# -- rewritten equations --------------------------------------------------------------------------


def test_a_rewrite_that_takes_a_factor_out_leaves_an_operand_that_is_not_given():
    before = (*NORMED, "h[m, k] = f32(x[m, k]) * f32(g[k])", "c[m] = f32(r[m])")
    given = spec_of(
        *before,
        "a[m, n] = sum(h[m, k] * c[m] * f32(w[k, n]), k)",
        "y[m, n] = a[m, n]",
        inputs=HALVES,
        result="f16[M, N]",
    )
    other = spec_of(
        *before,
        "u[m, n] = sum(h[m, k] * f32(w[k, n]), k)",
        "y[m, n] = c[m] * u[m, n]",
        inputs=HALVES,
        result="f16[M, N]",
    )
    line = "precision(u, dtype=f16)"
    assert accepted(other, line)
    found = refused(other, line, given=given)
    assert "the given equations have no such operand" in found.what
    assert found.hint == f"drop {line}"


def test_what_a_rewrite_leaves_as_it_was_may_be_rounded():
    text = "a[m, n] = sum(f32(x[m, k]) * h[k] * f32(w[k, n]), k)"
    given = spec_of(
        "h[k] = f32(g[k]) * 2.0",
        text,
        "y[m, n] = a[m, n] * 2.0 + a[m, n]",
        inputs=HALVES,
        result="f16[M, N]",
    )
    other = spec_of(
        "h[k] = f32(g[k]) * 2.0", text, "y[m, n] = a[m, n] * 3.0", inputs=HALVES, result="f16[M, N]"
    )
    assert accepted(other, "precision(a, dtype=f16)", given=given)


# -- nothing proposes it --------------------------------------------------------------------------


def test_no_edit_leads_to_what_is_refused():
    sizes = workload("pffn").checks[-1]
    hoisted = decisions(PFFN, HOIST, *PRODUCTS)
    found = neighbours(PFFN, hoisted, WITH_TF32, sizes)
    assert Edit(None, TF32) in found and Edit(None, F16) not in found
    rounded = decisions(PFFN, *PRODUCTS, "precision(z, dtype=f16)")
    assert Edit(None, HOISTED) not in neighbours(PFFN, rounded, WITH_TF32, sizes)
    plain = neighbours(PFFN, decisions(PFFN, *PRODUCTS), WITH_TF32, sizes)
    assert Edit(None, F16) in plain and Edit(None, HOISTED) in plain


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS, WITH_TF32, WITH_THREADS])
@pytest.mark.parametrize("name", ["pffn", "wukong_fm"])
def test_the_first_schedule_is_in_range(name, machine):
    w = workload(name)
    schedule = autoschedule(w.spec, machine, w.checks[-1])
    assert lower(w.spec, schedule, machine, w.checks[-1]).launches


def test_a_first_schedule_rounds_to_tf32_where_f16_is_refused():
    assert in_range(PFFN, (HOISTED,), (F16,), WITH_TF32) == (TF32,)
    assert in_range(PFFN, (HOISTED,), (F16,), SMALL) == ()
    assert in_range(PFFN, (), (F16,), SMALL) == (F16,)


def test_a_cast_that_is_written_is_the_specs_own():
    spec = parse_spec('''
def f(
    x: f16[M, K],
    g: f16[K],
    w: f16[K, N],
) -> f16[M, N]:
    """Scale rounded numbers."""
    h[m, k] = f16(f32(x[m, k]) * f32(g[k]))
    c[m] = 1.0 / f32(M + m)
    a[m, n] = sum(f32(h[m, k]) * c[m] * f32(w[k, n]), k)
    y[m, n] = a[m, n]
    return y
''')
    assert accepted(spec, "hoist(c, into=y)", "precision(a, dtype=f16)")


def test_a_declared_range_shows_that_a_format_holds_what_hoisting_leaves():
    """The factor that is hoisted out leaves sums of what the spec bounds."""
    equations = (
        "r[m] = 1.0 / (1.0 + abs(f32(g[m])))\n"
        "    a[m, n] = sum(x[m, k] * r[m] * f32(w[k, n]), k)\n    y[m, n] = f16(a[m, n])\n"
    )

    def spec(ranges):
        return parse_spec(
            "def ranged(x: f32[M, K], g: f16[M], w: f16[K, N]) -> f16[M, N]:\n"
            f'    """Scaled rows."""\n{ranges}    {equations}    return y\n'
        )

    lines = ("hoist(r, into=y)", "precision(a, dtype=f16)")
    assert "largest f16" in refused(spec(""), *lines).what
    assert accepted(spec("    range(x, -100.0, 100.0)\n"), *lines)
    assert "largest f16" in refused(spec("    range(x, -1e5, 1.0)\n"), *lines).what
