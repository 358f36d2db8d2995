"""Which reductions are made in two stages, and what comes of it."""

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from machines.gpu.two_pass import two_pass
from testing.samples.right import require_right
from testing.samples.samples import WITH_TF32, WITH_THREADS, spec_of

TOTAL = spec_of("y[()] = sum(x[m, k], m, k)", result="f32[()]")
CHANNELS = spec_of(
    "s[c] = sum(x[n, c, k], n, k)",
    "y[n, c, k] = x[n, c, k] - s[c]",
    inputs="x: f32[N, C, K]",
    result="f32[N, C, K]",
)
PRODUCT = spec_of(
    "y[m, n] = sum(x[m, k] * w[k, n], k)",
    inputs="x: f16[M, K], w: f16[K, N]",
    result="f32[M, N]",
)
STORED = parse_spec(
    '''
def f(x: f32[N, C, K]) -> (f32[N, C, K], f32[C]):
    """F."""
    y[n, c, k] = x[n, c, k] * 2.0
    s[c] = sum(y[n, c, k], n, k)
    return y, s
'''.lstrip()
)
VECTOR = spec_of("y[m] = sum(x[m, k] * w[k], k)", inputs="x: f32[M, K], w: f32[K]", result="f32[M]")


def splits(spec, **sizes):
    found = two_pass(spec, WITH_THREADS, sizes)
    return {d.subject: (d.option("over"), d.option("parts")) for d in found if d.verb == "split_k"}


def test_a_total_is_split_along_the_index_that_does_not_lie_side_by_side():
    assert splits(TOTAL, M=1000, K=1000) == {"y": ("m", 256)}


def test_a_long_total_has_more_parts_that_programs_take_one_after_another():
    assert splits(TOTAL, M=1 << 14, K=1 << 12) == {"y": ("m", 1024)}
    assert splits(TOTAL, M=1 << 16, K=1 << 16) == {"y": ("m", 2048)}


def test_a_sum_over_rows_that_share_an_operand_has_few_parts():
    spec = spec_of(
        "y[()] = sum(x[m, k] * g[k], m, k)", inputs="x: f32[M, K], g: f32[K]", result="f32[()]"
    )
    sizes = {"M": 1 << 16, "K": 1 << 16}
    found = two_pass(spec, WITH_THREADS, sizes)
    (split,) = (d for d in found if d.verb == "split_k")
    assert split.number("parts") == splits(TOTAL, **sizes)["y"][1] // 8


def test_where_the_other_index_is_too_short_the_last_one_is_split():
    assert splits(TOTAL, M=2, K=1 << 20) == {"y": ("k", 256)}


def test_parts_make_up_for_the_programs_that_are_lacking():
    assert splits(CHANNELS, N=64, C=32, K=4096) == {"s": ("n", 8)}


@pytest.mark.parametrize("sizes", [dict(M=2048, N=2048, K=1 << 16), dict(M=64, N=64, K=256)])
def test_a_product_with_many_tiles_or_a_short_sum_is_not_split(sizes):
    assert not splits(PRODUCT, **sizes)


def test_a_product_with_few_tiles_and_a_long_sum_is():
    assert splits(PRODUCT, M=16, N=16, K=1 << 17) == {"y": ("k", 256)}


def test_parts_of_a_product_are_whole_steps_where_about_as_many_are():
    assert splits(PRODUCT, M=16, N=16, K=100_000) == {"y": ("k", 250)}  # of 400
    assert splits(PRODUCT, M=16, N=16, K=100_003) == {"y": ("k", 256)}


def test_a_small_total_is_not_split():
    assert not splits(TOTAL, M=10, K=50)


def test_a_product_with_a_vector_is_split_as_a_sum():
    assert splits(VECTOR, M=16, K=1 << 17) == {"y": ("k", 16)}


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        (TOTAL, dict(M=300, K=700)),
        (TOTAL, dict(M=2, K=300_000)),
        (CHANNELS, dict(N=6, C=3, K=30_000)),
        (PRODUCT, dict(M=5, N=7, K=30_000)),
        (VECTOR, dict(M=5, K=100_000)),
    ],
)
def test_two_stages_give_the_same(spec, sizes):
    schedule = autoschedule(spec, WITH_THREADS, sizes)
    nest = lower(spec, schedule, WITH_THREADS, sizes)
    assert schedule.of("split_k") and len(nest.launches) == 2
    given = random_inputs(spec, sizes, np.random.default_rng(3))
    found, expected = interpret(nest, given, sizes)["y"], evaluate(spec, given, sizes)["y"]
    np.testing.assert_allclose(found, expected, 1e-9, 1e-7)


def test_what_a_reduction_in_two_passes_reads_is_stored_by_a_launch_of_its_own():
    sizes = dict(N=64, C=3, K=30_000)
    schedule = autoschedule(STORED, WITH_THREADS, sizes)
    assert schedule.of("split_k") and schedule.find("kernel", "y")
    require_right(lower(STORED, schedule, WITH_THREADS, sizes), dict(N=5, C=3, K=70))


def test_a_convolution_over_rounded_copies_has_parts_too():
    spec = spec_of(
        "y[b, o, p]: [2, 32, 8] = sum(pad(x[b, c, p + i - 1], 0.0) * w[o, c, i], c=1024, i=3)",
        inputs="x: f32[2, 1024, 8], w: f32[32, 1024, 3]",
        result="f32[2, 32, 8]",
    )
    tried = []

    def cost(nest):
        tried.append(nest.schedule)
        return 1.0

    autoschedule(spec, WITH_TF32, {}, {"y"}, cost)
    both = [s for s in tried if s.of("split_k") and s.of("pack")]
    assert {d.option("parts") for s in both for d in s.of("split_k")} == {8}
    require_right(lower(spec, both[0], WITH_TF32, {}), {})
