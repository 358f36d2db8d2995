"""What `hoist` rewrites, and when it is refused."""

import numpy as np
import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.print import equation_text, expression_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.variant.variant import depends, formulate, pointwise
from ir.visit import inline
from testing.samples.samples import decisions, spec_of, workload

SCALED = spec_of(
    "r[m] = g[m] + 1.0",
    "a[m] = sum(x[m, k] * r[m], k)",
    "y[m] = a[m] * 2.0",
    inputs="x: f32[M, K], g: f32[M]",
    result="f32[M]",
)


def hoisted(spec, *lines):
    return formulate(spec, decisions(spec, *lines))


def fault(spec, *lines) -> KernelError:
    with pytest.raises(KernelError) as caught:
        hoisted(spec, *lines)
    return caught.value


def test_a_factor_moves_from_the_sum_to_what_reads_it():
    found = hoisted(SCALED, "hoist(r, into=y)")
    assert [equation_text(e) for e in found.equations] == [
        "r[m] = g[m] + 1.0",
        "a[m] = sum(x[m, k], k)",
        "y[m] = a[m] * r[m] * 2.0",
    ]


def test_a_factor_is_found_through_the_equations_between_and_those_are_dropped():
    spec = workload("rmsnorm_matmul").spec
    found = hoisted(spec, "hoist(r, into=y)")
    assert [e.target for e in found.equations] == ["ss", "r", "acc", "y"]
    assert equation_text(found.equations[-1]) == "y[m, n] = silu(acc[m, n] * r[m])"


@pytest.mark.parametrize("name, factor, into", [("rmsnorm_matmul", "r", "y")])
def test_a_variant_equals_its_spec(name, factor, into):
    w = workload(name)
    found = hoisted(w.spec, f"hoist({factor}, into={into})")
    for sizes in w.checks:
        inputs = random_inputs(w.spec, sizes, np.random.default_rng(3))
        expected, after = evaluate(w.spec, inputs, sizes), evaluate(found, inputs, sizes)
        np.testing.assert_allclose(after["y"], expected["y"], 1e-9, 1e-9)


def test_the_factor_follows_the_indices_of_the_read():
    spec = spec_of(
        "r[m] = g[m] + 1.0",
        "a[m, n] = sum(x[m, k] * r[m] * x[n, k], k)",
        "y[m, n] = a[n, m] + 0.0",
        inputs="x: f32[M, K], g: f32[M]",
        result="f32[M, M]",
    )
    found = hoisted(spec, "hoist(r, into=y)")
    assert equation_text(found.equations[-1]) == "y[m, n] = a[n, m] * r[n] + 0.0"


def test_every_equation_that_reads_the_sum_reads_it_times_the_factor():
    spec = spec_of(
        "r[m] = g[m] + 1.0",
        "a[m] = sum(x[m, k] * r[m], k)",
        "b[m] = a[m] * 2.0",
        "y[m] = a[m] + b[m]",
        inputs="x: f32[M, K], g: f32[M]",
        result="f32[M]",
    )
    found = hoisted(spec, "hoist(r, into=b)")
    assert [equation_text(e) for e in found.equations[1:]] == [
        "a[m] = sum(x[m, k], k)",
        "b[m] = a[m] * r[m] * 2.0",
        "y[m] = a[m] * r[m] + b[m]",
    ]


def test_a_sum_that_is_an_output_keeps_its_factor():
    spec = parse_spec(
        "def f(x: f32[M, K], g: f32[M]) -> (f32[M], f32[M]):\n"
        '    """F."""\n    r[m] = g[m] + 1.0\n    a[m] = sum(x[m, k] * r[m], k)\n'
        "    b[m] = a[m] * 2.0\n    return a, b\n"
    )
    assert "a" in str(fault(spec, "hoist(r, into=b)"))


def test_only_a_factor_is_hoisted():
    spec = spec_of(
        "r[m] = g[m] + 1.0",
        "a[m] = sum(x[m, k] + r[m], k)",
        "y[m] = a[m] * 2.0",
        inputs="x: f32[M, K], g: f32[M]",
        result="f32[M]",
    )
    found = fault(spec, "hoist(r, into=y)")
    assert "`r` is not a factor of a sum that `y` reads" in str(found)
    assert found.hint == "hoist takes a factor that lacks the summed index"


def test_a_factor_with_the_summed_index_is_not_hoisted():
    spec = spec_of(
        "r[k] = g[k] + 1.0",
        "a[m] = sum(x[m, k] * r[k], k)",
        "y[m] = a[m] * 2.0",
        inputs="x: f32[M, K], g: f32[K]",
        result="f32[M]",
    )
    assert "is not a factor of a sum" in str(fault(spec, "hoist(r, into=y)"))


def test_a_factor_of_a_maximum_is_not_hoisted():
    spec = spec_of(
        "r[m] = g[m] + 1.0",
        "a[m] = max(x[m, k] * r[m], k)",
        "y[m] = a[m] * 2.0",
        inputs="x: f32[M, K], g: f32[M]",
        result="f32[M]",
    )
    assert "is not a factor of a sum" in str(fault(spec, "hoist(r, into=y)"))


def test_hoist_goes_into_an_equation():
    found = fault(SCALED, "hoist(r, into=x)")
    assert "no equation defines `x`" in str(found)
    assert found.allowed == "r, a, y"


def test_a_sum_of_the_factor_alone_keeps_it():
    spec = spec_of(
        "r[m] = sum(x[m, k], k)",
        "y[m] = r[m] * 1.0",
        result="f32[M]",
    )
    assert "is not a factor" in str(fault(spec, "hoist(r, into=y)"))


def test_depends_follows_any_number_of_equations():
    spec = workload("rmsnorm_matmul").spec
    assert depends(spec, "y", "ss") and depends(spec, "acc", "x") and depends(spec, "r", "r")
    assert not depends(spec, "ss", "r") and not depends(spec, "acc", "y")


def test_inlining_puts_the_right_side_in_place_of_a_read_at_its_positions():
    spec = spec_of("t[m, k] = x[m, k] * 2.0", "y[m, k] = t[m, 0] + t[m, k]")
    found = inline(spec.equations[1].value, spec.equations[0])
    assert expression_text(found) == "x[m, 0] * 2.0 + x[m, k] * 2.0"


def test_reductions_scans_and_scatters_are_not_pointwise():
    kinds = {
        "y[m] = sum(x[m, k], k)": False,
        "y[m, k] = cumsum(x[m, k], k)": False,
        "y[m, k] = x[m, k]": True,
    }
    for text, expected in kinds.items():
        result = "f32[M]" if text.startswith("y[m] ") else "f32[M, K]"
        assert pointwise(spec_of(text, result=result).equations[0]) is expected
    scatter = spec_of("y[i[k]] += v[k]", inputs="v: f32[K], i: i32[K]", result="f32[M]")
    assert not pointwise(scatter.equations[0])
