"""A result lies over an input only where no element is read after it is written."""

import pytest

from backends.program.inplace import overwrites
from ir.parse.parse import parse_spec
from ir.partition.partition import partition


def network(*lines, inputs="x: f32[8], m: f32[8]", outputs="y: f32[8]"):
    names = ", ".join(o.partition(":")[0] for o in outputs.split("; "))
    types = ", ".join(o.partition(": ")[2] for o in outputs.split("; "))
    body = "".join(f"    {line}\n" for line in lines)
    return partition(
        parse_spec(f'def f({inputs}) -> ({types}):\n    """f"""\n{body}    return {names}\n'), {}
    )


def test_what_is_computed_element_by_element_may():
    made = network("y[c] = x[c] * 0.9 + m[c] * 0.1")
    assert overwrites(made, "y", "x") and overwrites(made, "y", "m")


def test_a_chain_leads_to_it():
    assert overwrites(network("a[c] = x[c] * 0.9", "y[c] = a[c] + m[c] * 0.1"), "y", "x")


def test_what_does_not_read_it_may():
    assert overwrites(network("y[c] = m[c] * 0.1", inputs="m: f32[8]"), "y", "x")


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (["y[c] = x[7 - c] * 0.9 + m[c]"], {}),
        (["s[()] = sum(x[c], c)", "y[c] = m[c] * s[()]"], {}),
        (
            ["y[c] = x[c] + m[c]", "z[c, d] = x[c] * w[d]"],
            dict(inputs="x: f32[8], m: f32[8], w: f32[4]", outputs="y: f32[8]; z: f32[8, 4]"),
        ),
        (["y[c] = x[c] + m[c]", "z[c] = x[c]"], dict(outputs="y: f32[8]; z: f32[8]")),
        (
            [
                "a[c] = x[c] * 2.0",
                "y[c] = a[c] + m[c]",
                "t[()] = sum(a[c], c)",
                "z[c] = m[c] * t[()]",
            ],
            dict(outputs="y: f32[8]; z: f32[8]"),
        ),
        (["y[c] = x[c] + m[c]", "z[c] = y[c] * 2.0"], dict(outputs="y: f32[8]; z: f32[8]")),
        (
            ["y[c] = x[c] + m[c]", "t[()] = sum(y[c], c)", "z[c] = x[c] * t[()]"],
            dict(outputs="y: f32[8]; z: f32[8]"),
        ),
    ],
)
def test_what_others_still_read_may_not(lines, more):
    assert not overwrites(network(*lines, **more), "y", "x")


def test_what_no_step_computes_may_not():
    assert not overwrites(network("y[c] = x[c] + m[c]"), "x", "m")
