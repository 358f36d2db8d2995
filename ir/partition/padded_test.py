"""Starts of recurrences that the padding of a read replaces."""

from ir.parse.parse import parse_spec
from ir.partition.padded import with_padded_starts
from ir.print import spec_text

HEAD = 'def f(x: f16[8, 4, 16], w: f16[16, 16]) -> f16[8, 4, 16]:\n    """F."""\n'
SUM = "    a[t, b, j] = sum(f32(before[t, b, k]) * f32(w[j, k]), k)\n"
LAST = "    h[t, b, j] = f16(tanh(a[t, b, j] + f32(x[t, b, j])))\n    return h\n"


def spec(start):
    return parse_spec(f"{HEAD}    before[t, b, k] = {start}\n{SUM}{LAST}")


def test_a_start_of_zeros_goes_and_the_product_reads_the_state():
    made = with_padded_starts(spec("where(t == 0, f16(0.0), pad(h[t - 1, b, k], 0.0))"))
    assert [e.target for e in made.equations] == ["a", "h"]
    assert "sum(f32(pad(h[t + -1, b, k], 0.0)) * f32(w[j, k]), k)" in spec_text(made).replace(
        "t - 1", "t + -1"
    )


def test_from_the_last_step_too():
    made = with_padded_starts(spec("where(t == 7, f16(0.0), pad(h[t + 1, b, k], 0.0))"))
    assert [e.target for e in made.equations] == ["a", "h"]


def test_other_starts_stay():
    for start in (
        "where(t == 0, f16(1.0), pad(h[t - 1, b, k], 0.0))",  # another number
        "where(t == 1, f16(0.0), pad(h[t - 1, b, k], 0.0))",  # a step that there is one before
        "where(t == 0, x[0, b, k], pad(h[t - 1, b, k], 0.0))",
    ):
        known = spec(start)
        assert with_padded_starts(known) is known
