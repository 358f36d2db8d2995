"""A scan of flipped input that is flipped back becomes a reverse scan with the same results."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.partition.reverse_scans import with_reverse_scans
from ir.print import equation_text
from ir.reference.reference import evaluate

SCAN = "s[a, b]: [3, 7] = cumsum(x[a, 6 - b], b)"
BACK = "y[i, j]: [3, 7] = s[i, 6 - j]"


def spec_of(*lines, outputs="y", result="f32[3, 7]"):
    body = "\n".join(f"    {line}" for line in (*lines, f"return {outputs}"))
    inputs = "x: f32[3, 7], m: f32[3, 7]" if "m[" in body else "x: f32[3, 7]"
    head = f"{inputs}) -> {result}"
    return parse_spec(f'def f({head}:\n    """F."""\n{body}\n')


def same(spec, made):
    rng = np.random.default_rng(7)
    given = {t.name: rng.random([int(n.value) for n in t.shape]) for t in spec.inputs}
    found = [evaluate(one, given, {})["y"] for one in (spec, made)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("scan", "reads", "now"),
    [
        (SCAN, BACK, "y[i, j] = cumsum(x[i, j], j, reverse=True)"),
        (
            SCAN.replace("x[a, 6 - b]", "x[a, b]"),
            BACK,
            "y[i, j] = cumsum(x[i, 6 - j], j, reverse=True)",
        ),
        (
            SCAN.replace("x[a, 6 - b]", "x[a, 6 - b] * m[a, 6 - b]"),
            BACK.replace("6 - j", "-1 * j + 6"),
            "y[i, j] = cumsum(x[i, j] * m[i, j], j, reverse=True)",
        ),
        (
            SCAN.replace("cumsum", "cumprod"),
            BACK,
            "y[i, j] = cumprod(x[i, j], j, reverse=True)",
        ),
    ],
)
def test_a_scan_that_is_read_from_the_end_is_a_reverse_one(scan, reads, now):
    spec = spec_of(scan, reads)
    made = with_reverse_scans(spec)
    assert [equation_text(e).replace(": [3, 7]", "") for e in made.equations] == [now]
    same(spec, made)


@pytest.mark.parametrize(
    ("scan", "reads"),
    [
        (SCAN, "y[i, j]: [3, 7] = s[i, j]"),
        (SCAN, "y[i, j]: [3, 7] = s[2 - i, 6 - j]"),  # rows from the end, too
        (SCAN, "y[i, j]: [3, 7] = pad(s[i, 5 - j], 0.0)"),
        (SCAN, "y[i, j]: [3, 7] = s[i, 6 - j] + 1.0"),
        (SCAN.replace(", b)", ", b, exclusive=True)"), BACK),
    ],
)
def test_others_stay(scan, reads):
    spec = spec_of(scan, reads)
    assert with_reverse_scans(spec) == spec


def test_a_scan_that_others_read_stays():
    lines = (SCAN, BACK, "z[i, j]: [3, 7] = s[i, j] * 2.0")
    spec = spec_of(*lines, outputs="y, z", result="(f32[3, 7], f32[3, 7])")
    assert with_reverse_scans(spec) == spec
    spec = spec_of(SCAN, BACK, outputs="y, s", result="(f32[3, 7], f32[3, 7])")
    assert with_reverse_scans(spec) == spec


def test_it_is_one_kernel():
    (step,) = partition(spec_of(SCAN, BACK), {}).steps
    assert [equation_text(e) for e in step.spec.equations] == [
        "y[i, j] = cumsum(x[i, j], j, reverse=True)"
    ]
