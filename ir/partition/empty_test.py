"""Tensors without elements: no kernel computes them, and their readers get identity elements."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from ir.errors import KernelError
from ir.network import Outside
from ir.parse.parse import parse_spec
from ir.partition.empty import without_empty
from ir.partition.partition import partition
from ir.reference.stepwise import evaluate
from ir.spec import Number, Spec
from ir.visit import rebuilt

EMPTY = 7  # a size that denotes 0 in the texts below, as the language has no size 0


def spec(text: str) -> Spec:
    """A spec with sizes of 0."""
    made = parse_spec(text)

    def visit(expr):
        return Number(0) if expr == Number(EMPTY) else rebuilt(expr, visit)

    def sized(t):
        return replace(t, shape=tuple(map(visit, t.shape)))

    equations = tuple(
        replace(e, value=visit(e.value), sizes=tuple(map(visit, e.sizes))) for e in made.equations
    )
    return replace(
        made,
        inputs=tuple(map(sized, made.inputs)),
        outputs=tuple(map(sized, made.outputs)),
        equations=equations,
    )


def test_a_spec_with_elements_is_itself():
    made = parse_spec('def f(x: f32[3]) -> f32[3]:\n    """F."""\n    y[i] = x[i]\n    return y\n')
    assert without_empty(made) is made


def test_empty_results_have_no_kernel():
    network = partition(
        spec('''def f(x: f32[7, 4], w: f32[4, 3], b: f32[3]) -> (f32[7, 3], f32[3]):
    """F."""
    p[i, k] = sum(x[i, j] * w[j, k], j)
    y[i, k] = p[i, k] + b[k]
    z[k] = b[k] * 2.0
    return y, z
'''),
        {},
    )
    assert len(network.steps) == 1
    assert {b.name for b in network.inputs} == {"x", "w", "b"}
    assert network.outputs == (("y", (0, 3)), ("z", (3,)))
    given = {"x": np.zeros((0, 4)), "w": np.ones((4, 3)), "b": np.arange(3.0)}
    y, z = evaluate(network, given)
    assert y.shape == (0, 3) and z.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("reduction", "identity"),
    [("sum", 0.0), ("prod", 1.0), ("max", -inf), ("min", inf)],
)
def test_a_reduction_over_nothing_is_its_identity_element(reduction, identity):
    network = partition(
        spec(f'''def f(x: f32[7, 4], b: f32[4]) -> f32[4]:
    """F."""
    s[j] = {reduction}(x[i, j], i)
    y[j] = s[j] + b[j]
    return y
'''),
        {},
    )
    (found,) = evaluate(network, {"x": np.zeros((0, 4)), "b": np.ones(4)})
    assert found.tolist() == [identity + 1] * 4


@pytest.mark.parametrize(("reduction", "identity"), [("any", False), ("all", True)])
def test_truth_over_nothing(reduction, identity):
    network = partition(
        spec(f'''def f(x: b8[7, 4]) -> b8[4]:
    """F."""
    y[j] = {reduction}(x[i, j], i)
    return y
'''),
        {},
    )
    (found,) = evaluate(network, {"x": np.zeros((0, 4), bool)})
    assert found.tolist() == [identity] * 4


def test_a_mean_of_nothing_is_no_number():
    network = partition(
        spec('''def f(x: f32[7, 4], b: f32[4]) -> f32[4]:
    """F."""
    s[j] = sum(x[i, j], i)
    y[j] = s[j] / 7 + b[j]
    return y
'''),
        {},
    )
    assert not any(
        n == Number(0) for s in network.steps for e in s.spec.equations for n in e.value.walk()
    )
    (found,) = evaluate(network, {"x": np.zeros((0, 4)), "b": np.ones(4)})
    assert np.isnan(found).all()


def test_the_padding_of_an_empty_tensor_is_all_that_is_read():
    network = partition(
        spec('''def f(x: f32[7, 4]) -> f32[2, 4]:
    """F."""
    y[i, j]: [2, 4] = pad(x[i - 1, j], 3.0)
    return y
'''),
        {},
    )
    (found,) = evaluate(network, {"x": np.zeros((0, 4))})
    assert (found == 3).all() and found.shape == (2, 4)


def test_nothing_is_added_to_zeros():
    network = partition(
        spec('''def f(x: f32[7], to: i64[7], b: f32[4]) -> f32[4]:
    """F."""
    s[to[i]] += x[i]
    y[j] = s[j] + b[j]
    return y
'''),
        {},
    )
    given = {"x": np.zeros(0), "to": np.zeros(0, np.int64), "b": np.arange(4.0)}
    assert evaluate(network, given)[0].tolist() == [0, 1, 2, 3]


def test_what_is_left_to_a_call_from_outside_has_elements():
    text = '''def f(x: f32[7, 4], s: f32[7, 4]) -> (f32[7, 4], f32[7, 4]):
    """F."""
    r[i, j] = x[i, j] * 2.0
    y[i, j] = s[i, j] + 1.0
    return r, y
'''
    with pytest.raises(KernelError, match="`sin` is left to PyTorch.*no elements"):
        partition(spec(text), {}, outside=[Outside("sin", ("r",), ("s",))])
