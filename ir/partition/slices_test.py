"""A kernel that reads a slice of a larger tensor computes the same, and reads nothing outside the
slice."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.slices import as_one, read_from
from ir.print import equation_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.spec import Part

PART = Part(1, 3, 12)


def spec_of(*lines, inputs="x: f32[4, 5, 7]", result="f32[4, 5, 7]"):
    body = "".join(f"    {line}\n" for line in lines)
    return parse_spec(f'def f({inputs}) -> {result}:\n    """F."""\n{body}    return y\n')


def moved(spec, name="x", part=PART):
    """The spec that reads the larger tensor, whose part gives what the spec gives."""
    made = read_from(spec, name, part)
    if made is None:
        return None
    given = random_inputs(spec, {}, np.random.default_rng(3))
    (larger,) = (t for t in made.inputs if t.name == name)
    axis, size = part.axis, given[name].shape[part.axis]
    shape = [int(n.value) for n in larger.shape]
    whole = np.full(shape, np.nan)
    at = (slice(None),) * axis + (slice(part.first, part.first + size),)
    whole[at] = given[name]
    for t in spec.outputs:
        expected, found = (
            evaluate(spec, given, {})[t.name],
            evaluate(made, {**given, name: whole}, {}),
        )
        np.testing.assert_array_equal(found[t.name], expected)
    return made


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (("y[n, c, h] = exp(x[n, c, h])",), {}),
        (("y[n, h, c] = x[n, c, h] * c",), dict(result="f32[4, 7, 5]")),
        (("y[n, h] = sum(x[n, c, h], c)",), dict(result="f32[4, 7]")),
        (("m[n, c] = max(x[n, c, h], h)", "y[n, c, h] = x[n, c, h] - m[n, c]"), {}),
        (("y[n, c, h] = sum(pad(x[n, c, h + r - 1], 0.0), r=3)",), {}),
        (("y[n, c, h]: [4, 2, 7] = x[n, 2 * c + 1, h]",), dict(result="f32[4, 2, 7]")),
        (("y[n, h] = x[n, 4, h]",), dict(result="f32[4, 7]")),
        (("y[n, c, h] = x[n, 4 - c, h]",), {}),
        (
            ("y[n, c] = x[idx[n], c, c]",),
            dict(inputs="x: f32[4, 5, 7], idx: i32[4]", result="f32[4, 5]"),
        ),
        (
            (
                "y[n, o, h]: [4, 9, 7] = where(o < 4, pad(z[n, o, h], 0.0), pad(x[n, o - 4, h], 0.0))",
            ),
            dict(inputs="x: f32[4, 5, 7], z: f32[4, 4, 7]", result="f32[4, 9, 7]"),
        ),
        (
            ("y[n, o, h]: [4, 9, 7] = where(o < 5, pad(x[n, o, h], 0.0), 1.0)",),
            dict(result="f32[4, 9, 7]"),
        ),
    ],
)
def test_what_lies_within_its_borders_is_read_there(lines, more):
    made = moved(spec_of(*lines, **more))
    assert made is not None and made.inputs[0].shape[1].value == 12


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (("y[n, c, h] = sum(pad(x[n, c + r - 1, h], 0.0), r=3)",), {}),
        (("y[n, o, h]: [4, 9, 7] = pad(x[n, o, h], 0.0)",), dict(result="f32[4, 9, 7]")),
        (
            ("y[n, o, h]: [4, 9, 7] = where(o < 6, pad(x[n, o, h], 0.0), 1.0)",),
            dict(result="f32[4, 9, 7]"),
        ),
        (
            ("y[n, o, h]: [4, 9, 7] = where(o < 3, 1.0, pad(x[n, o - 4, h], 0.0))",),
            dict(result="f32[4, 9, 7]"),
        ),
    ],
)
def test_what_is_read_beyond_its_borders_stays(lines, more):
    assert moved(spec_of(*lines, **more)) is None


def test_a_sorted_table_stays():
    spec = spec_of("y[n] = bucketize(z[n], x)", inputs="z: f32[4], x: f32[6]", result="i64[4]")
    assert read_from(spec, "x", Part(0, 2, 12)) is None


def test_parts_that_follow_each_other_are_one_read():
    spec = spec_of(
        "t[n, o, h]: [4, 9, 7] = where(o < 4, pad(z[n, o, h], 0.0), pad(x[n, o - 4, h], 0.0))",
        "y[n, o, h] = t[n, o, h] * 2.0",
        inputs="z: f32[4, 4, 7], x: f32[4, 5, 7]",
        result="f32[4, 9, 7]",
    )
    made = moved(moved(spec, "z", Part(1, 2, 12)), "x", Part(1, 6, 12))
    one = as_one(made, "z", "x")
    assert [t.name for t in one.inputs] == ["z"]
    assert [equation_text(e) for e in one.equations] == [
        "t[n, o, h] = z[n, o + 2, h]",
        "y[n, o, h] = t[n, o, h] * 2.0",
    ]
    whole = np.random.default_rng(0).standard_normal((4, 12, 7))
    found = evaluate(one, {"z": whole}, {})["y"]
    np.testing.assert_array_equal(found, 2 * whole[:, 2:11])


def test_parts_in_another_order_stay_two_reads():
    spec = spec_of(
        "y[n, o, h]: [4, 9, 7] = where(o < 4, pad(z[n, o, h], 0.0), pad(x[n, o - 4, h], 0.0))",
        inputs="z: f32[4, 4, 7], x: f32[4, 5, 7]",
        result="f32[4, 9, 7]",
    )
    made = moved(moved(spec, "z", Part(1, 8, 12)), "x", Part(1, 2, 12))
    one = as_one(made, "z", "x")
    whole = np.random.default_rng(0).standard_normal((4, 12, 7))
    found = evaluate(one, {"z": whole}, {})["y"]
    np.testing.assert_array_equal(found, np.concatenate([whole[:, 8:], whole[:, 2:7]], 1))
