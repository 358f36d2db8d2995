"""Kernels that are right for normally drawn inputs alone, and honest ones, on other draws."""

import math

import numpy as np
import pytest

from backends.backend import BackendError
from backends.measure import check_draws, draw_sizes, reference
from ir.parse.parse import parse_spec
from ir.reference.draws import draws
from ir.reference.reference import evaluate_storage
from ir.reference.rounding import round_to
from testing.samples.samples import KERNELS, spec_of, workload

SOFTMAX, NORM, PFFN, RMS = map(workload, ("softmax", "layer_norm", "pffn", "rmsnorm_matmul"))
EPS = 1e-6


class Kernel:
    """A backend whose kernel is a function of the inputs by name."""

    def __init__(self, function, outputs):
        self.function, self.outputs = function, outputs

    def run(self, built, nest, machine, sizes, inputs):
        with np.errstate(all="ignore"):
            found = self.function(**inputs)
        return {t.name: round_to(found[t.name], t.dtype) for t in self.outputs}


def passes(spec, sizes, function, seed=3):
    kernel = Kernel(function, spec.outputs)
    check_draws(kernel, None, None, None, spec, sizes, seed)
    return True


def reason(w, function):
    with pytest.raises(BackendError) as caught:
        passes(w.spec, w.checks[-1], function)
    assert caught.value.stage == "check"
    return caught.value.reason


def softmax(x, safe=True):
    e = np.exp(x - (x.max(1, keepdims=True) if safe else np.float32(0)))
    return {"y": e / e.sum(1, keepdims=True)}


def layer_norm(x, g, b, two_passes=True, eps=1e-5):
    mean = x.mean(1, keepdims=True, dtype=np.float32)
    variance = ((x - mean) ** 2).mean(1, keepdims=True, dtype=np.float32)
    if not two_passes:
        variance = (x * x).mean(1, keepdims=True, dtype=np.float32) - mean * mean
    return {"y": (x - mean) / np.sqrt(variance + np.float32(eps)) * g + b}


def gelu(x):
    erf = np.vectorize(math.erf)
    return (0.5 * x * (1 + erf(x * 0.7071067811865476))).astype(np.float32)


def pffn(x, w1, b1, g1, w2, g2, hoisted=False, rounded=np.float16):
    x, w1, b1, g1, w2, g2 = (a.astype(np.float32) for a in (x, w1, b1, g1, w2, g2))
    h = gelu(np.einsum("bnd,bdk->bnk", x, w1) + b1[:, None])
    r1 = 1 / np.sqrt((h * h).mean(2, keepdims=True) + np.float32(EPS))
    operand = (h * g1 if hoisted else h * r1 * g1).astype(rounded).astype(np.float32)
    z = np.einsum("bnk,bke->bne", operand, w2) * (r1 if hoisted else 1)
    r2 = 1 / np.sqrt((z * z).mean(2, keepdims=True) + np.float32(EPS))
    return {"y": z * r2 * g2}


def changed(function, **options):
    return lambda **inputs: function(**inputs, **options)


@pytest.mark.parametrize(
    ("w", "function"),
    [
        (SOFTMAX, softmax),
        (NORM, layer_norm),
        (PFFN, pffn),
        (PFFN, changed(pffn, hoisted=True, rounded=np.float32)),
    ],
)
def test_an_honest_kernel_passes(w, function):
    assert passes(w.spec, w.checks[-1], function)


def test_a_softmax_without_the_maximum_is_refused():
    text = reason(SOFTMAX, changed(softmax, safe=False))
    assert text.startswith("of the draw `shifted`, at M=64, K=128: output `y`") and "nan" in text


def test_a_variance_as_a_difference_of_squares_is_refused():
    assert "of the draw `shifted`" in reason(NORM, changed(layer_norm, two_passes=False))


@pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-3])
def test_another_eps_is_refused(eps):
    assert "of the draw `" in reason(NORM, changed(layer_norm, eps=eps))


def test_operands_of_f16_that_are_not_normalised_are_refused():
    text = reason(PFFN, changed(pffn, hoisted=True))
    assert text.startswith("of the draw `large`")


def test_a_kernel_that_fails_otherwise_says_so_itself():
    def broken(**inputs):
        raise BackendError("run", "the device is gone")

    with pytest.raises(BackendError) as caught:
        passes(SOFTMAX.spec, SOFTMAX.checks[0], broken)
    assert (caught.value.stage, caught.value.reason) == ("run", "the device is gone")


@pytest.mark.parametrize("kernel", KERNELS)
def test_plain_arithmetic_with_other_roundings_passes(kernel):
    """As a kernel that rounds after each equation, otherwise than the reference did."""
    w, rng = workload(kernel), np.random.default_rng(11)
    sizes = draw_sizes(w.spec, w.checks)
    assert passes(
        w.spec, sizes, lambda **inputs: evaluate_storage(w.spec, inputs, sizes, noise=rng)
    )
    assert passes(w.spec, sizes, lambda **inputs: evaluate_storage(w.spec, inputs, sizes))


# -- what plain arithmetic loses --------------------------------------------------------------

STEEP = spec_of("e[m, k] = exp(x[m, k])", "s[m] = sum(e[m, k], k)", "y[m, k] = e[m, k] / s[m]")
SIZES = {"M": 4, "K": 8}


def test_what_the_equations_themselves_lose_may_be_lost_or_kept():
    """A softmax that is written without its maximum."""
    assert not np.isfinite(reference(STEEP, SIZES, 3, "shifted").exact["y"]).any()
    assert passes(STEEP, SIZES, lambda x: softmax(x, safe=False))
    assert passes(STEEP, SIZES, softmax)


def test_where_they_do_not_lose_it_nothing_may_be_lost():
    def lost(x):
        return {"y": np.where(np.abs(x) > 20, np.nan, softmax(x)["y"])}

    with pytest.raises(BackendError, match="of the draw `large`"):
        passes(STEEP, SIZES, lost)


HALF = spec_of("y[m, k] = f32(x[m, k]) * 2.0", inputs="x: f16[M, K]", result="f16[M, K]")
SQUARE = spec_of("y[m, k] = f32(x[m, k]) ** 2", inputs="x: f16[M, K]", result="f16[M, K]")


def test_a_result_beyond_f16_is_infinite_or_at_its_end():
    at_end = [65504.0, np.inf]
    assert np.isinf(reference(SQUARE, SIZES, 3, "shifted").storage["y"]).all()
    for most in at_end:
        assert passes(
            SQUARE,
            SIZES,
            lambda x, most=most: {"y": np.clip(x.astype(np.float32) ** 2, -most, most)},
        )
    for wrong in (np.nan, 1000.0, -np.inf):
        with pytest.raises(BackendError, match="of the draw `shifted`"):
            passes(
                SQUARE,
                SIZES,
                lambda x, wrong=wrong: {
                    "y": np.where(np.abs(x) > 500, wrong, x.astype(np.float32) ** 2)
                },
            )


def test_another_order_of_products_may_err_by_a_part_of_what_overflows():
    """Where f16 holds a few sums only, those in which large terms happen to cancel."""
    w = workload("wukong_fm")

    def associated(x, y):
        x, y = x.astype(np.float32), y.astype(np.float32)
        first = round_to(np.einsum("bnd,bid->bni", x, x), "tf32")
        return {"out": np.einsum("bni,bik->bnk", first, y)}

    known = reference(w.spec, w.checks[-1], 3, "shifted").exact["out"]
    assert (np.abs(known) < 65504).mean() < 0.1
    assert passes(w.spec, w.checks[-1], associated)


def test_noise_is_of_the_precision_of_the_spec():
    half = spec_of("y[m, k] = f32(x[m, k]) * 3.0", inputs="x: bf16[M, K]", result="bf16[M, K]")
    for spec, unit in ((half, 2.0**-7), (spec_of("y[m, k] = x[m, k] * 3.0"), 2.0**-23)):
        known = reference(spec, SIZES, 3, "large")
        off = [np.abs(n["y"] / known.exact["y"] - 1).max() for n in known.noisy]
        assert unit / 8 < max(off) < 4 * unit
        assert len(set(off)) > 1


def test_integers_near_a_tie_may_be_either():
    spec = parse_spec(
        "def top(x: f32[M, K]) -> i32[M]:\n"
        '    """Where the largest sum is."""\n'
        "    s[m, k] = (x[m, k] + 1e9) * 1.0\n    y[m] = argmax(s[m, k], k)\n    return y\n"
    )
    known = reference(spec, SIZES, 3, "tiny")
    assert any((n["y"] != known.exact["y"]).any() for n in (known.storage, *known.noisy))
    assert passes(spec, SIZES, lambda x: {"y": np.argmax(x + np.float32(1e9), 1)})


def test_the_sizes_of_draws_are_the_largest_small_ones():
    spec, checks = workload("pffn").spec, workload("pffn").checks
    assert draw_sizes(spec, checks) == checks[-1]
    large = {"B": 16, "N": 200, "D": 256, "K": 160}
    assert draw_sizes(spec, (*checks, large)) == checks[-1]
    assert draw_sizes(spec, (large,)) == large


def test_every_kernel_of_the_library_has_draws():
    assert all(draws(workload(k).spec) for k in KERNELS)


def test_a_kernel_that_loses_what_is_not_a_number_is_refused():
    for name, lost in (("nan", np.nan_to_num), ("infinite", lambda x: np.clip(x, -1e6, 1e6))):
        spec = spec_of("y[m, k] = x[m, k] * 2.0")
        with pytest.raises(BackendError, match=f"of the draw `{name}`"):
            passes(spec, {"M": 8, "K": 8}, lambda x, lost=lost: {"y": lost(x) * 2})


def test_what_the_equations_select_away_may_be_left_out():
    """As masked keys of attention, which a kernel need not read."""
    spec = spec_of("s[m] = sum(where(k < 3, x[m, k], 0.0 * x[m, k]), k)", "y[m, k] = s[m] + 0.0")
    assert passes(
        spec,
        {"M": 8, "K": 8},
        lambda x: {"y": x[:, :3].sum(1)[:, None] + 0 * x[:, :1] + np.zeros((8, 8), np.float32)},
    )


def test_denormal_numbers_of_f32_may_be_taken_for_zero_and_those_of_f16_may_not():
    for spec, least, honest in (
        (spec_of("y[m, k] = x[m, k] * 2.0"), 2.0**-126, True),
        (HALF, 2.0**-14, False),
    ):

        def flushed(x, least=least):
            return {"y": np.where(np.abs(x) < least, 0, x.astype(np.float32)) * 2}

        if honest:
            assert passes(spec, SIZES, flushed)
        else:
            with pytest.raises(BackendError, match="of the draw `(tiny|denormal)`"):
                passes(spec, SIZES, flushed)
