"""Dimensions of size 1 are dropped where the result cannot differ."""

from ir.parse.parse import parse_spec
from ir.partition.squeezed import squeezed


def test_only_what_a_padded_read_may_leave_stays():
    spec = parse_spec('''def f(x: f32[1, 4], w: f32[1, 4]) -> f32[1, 4]:
    """F."""
    m[i, j]: [1, 4] = pad(x[i + 0, j - 1], 0.0) + w[0, j]
    y[i, j] = m[i, j] * 2.0
    return y
''')
    made = squeezed(spec)
    assert [len(t.shape) for t in made.inputs] == [2, 1]
    assert [len(e.at) for e in made.equations] == [1, 1]


def test_a_spec_without_such_dimensions_is_itself():
    spec = parse_spec('def f(x: f32[3]) -> f32[3]:\n    """F."""\n    y[i] = x[i]\n    return y\n')
    assert squeezed(spec) is spec
