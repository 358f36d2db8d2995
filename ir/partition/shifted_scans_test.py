"""A scan that is read some steps later becomes a scan of shifted terms with the same results."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.partition.shifted_scans import with_shifted_scans
from ir.print import equation_text
from ir.reference.reference import evaluate

CAT = "y[i, j]: [3, 8] = where(j < 1, 0.0, pad(s[i, j - 1], 0.0))"


def spec_of(*lines, result="f32[3, 8]"):
    body = "\n".join(f"    {line}" for line in (*lines, "return y"))
    inputs = "x: f32[3, 8], m: f32[3, 7]" if "m[" in body else "x: f32[3, 8]"
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
        (
            "s[a, b]: [3, 7] = cumsum(x[a, b], b)",
            CAT,
            "y[i, j]: [3, 8] = cumsum(pad(x[i, j - 1], 0.0), j)",
        ),
        (
            "s[a, b]: [3, 7] = cumsum(x[a, b] * m[a, b], b)",
            CAT,
            "y[i, j]: [3, 8] = cumsum(where(j >= 1, pad(x[i, j - 1], 0.0) * pad(m[i, j - 1], 0.0), 0), j)",
        ),
        (
            "s[a, b]: [3, 7] = cumprod(x[a, b], b)",
            "y[i, j]: [3, 8] = pad(s[i, j - 2], 1.0)",
            "y[i, j]: [3, 8] = cumprod(pad(x[i, j - 2], 1.0), j)",
        ),
        (
            "s[a, b]: [3, 7] = cummax(x[a, b], b)",
            CAT.replace("0.0", "-inf"),
            "y[i, j]: [3, 8] = cummax(pad(x[i, j - 1], -inf), j)",
        ),
    ],
)
def test_a_scan_that_is_read_later_is_one_of_shifted_terms(scan, reads, now):
    spec = spec_of(scan, reads)
    made = with_shifted_scans(spec)
    assert [equation_text(e) for e in made.equations] == [now]
    same(spec, made)


@pytest.mark.parametrize(
    ("scan", "reads"),
    [
        ("s[a, b]: [3, 7] = cumsum(x[a, b], b)", CAT.replace("0.0", "1.0")),  # no identity
        ("s[a, b]: [3, 7] = cumsum(x[a, b], b)", CAT.replace("j < 1", "j < 2")),
        ("s[a, b]: [3, 6] = cumsum(x[a, b], b)", CAT),  # the end is read, too
        ("s[a, b]: [2, 7] = cumsum(x[a, b], b)", CAT),  # fewer rows
        ("s[a, b]: [3, 7] = cumsum(x[a, b], b, exclusive=True)", CAT),
        ("s[a, b]: [3, 7] = cumsum(x[a, b], b)", "y[i, j]: [3, 8] = pad(s[i, j], 0.0)"),
        ("s[a, b]: [3, 7] = cumsum(x[a, b], b)", CAT + " + pad(s[i, j - 1], 0.0)"),
    ],
)
def test_others_stay(scan, reads):
    spec = spec_of(scan, reads)
    assert with_shifted_scans(spec) == spec


def test_a_scan_behind_a_concatenated_zero_is_one_kernel():
    spec = spec_of(
        "s[a, b]: [3, 7] = cumsum(x[a, b], b)",
        "z[c, d]: [3, 1] = 0.0",
        CAT.replace("1, 0.0,", "1, pad(z[i, j], 0.0),"),
    )
    (step,) = partition(spec, {}).steps
    assert [equation_text(e) for e in step.spec.equations] == [
        "y[i, j] = cumsum(pad(x[i, j - 1], 0.0), j)"
    ]
