"""Nests held against the reference. For tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ir.nest.nest import LoopNest
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate

EXACT = 1e-10  # all floats in float64: what is left is the order of sums


def require_right(
    nest: LoopNest,
    sizes: Mapping[str, int],
    inputs: Mapping[str, np.ndarray] | None = None,
    exact: float = EXACT,
) -> LoopNest:
    """The nest, run in float64 with its programs in any order, must give the reference's results.

    inputs: random ones unless given.  exact: how far off a number may be, of it and by itself.
    Returns the nest.
    """
    given = inputs or random_inputs(nest.spec, sizes, np.random.default_rng(3))
    expected = evaluate(nest.spec, given, sizes)
    found = interpret(nest, given, sizes, rng=np.random.default_rng(5))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        where = f"{name} at {dict(sizes)}"
        np.testing.assert_allclose(found[name], array, exact, exact, err_msg=where)
    return nest


def require_formed_right(nest: LoopNest, sizes: Mapping[str, int]) -> LoopNest:
    """As `require_right`; so must the equations as the schedule leaves them."""
    inputs = random_inputs(nest.spec, sizes, np.random.default_rng(3))
    formed = evaluate(nest.variant, inputs, sizes)
    for name, array in evaluate(nest.spec, inputs, sizes).items():
        np.testing.assert_allclose(formed[name].reshape(array.shape), array, EXACT, EXACT)
    return require_right(nest, sizes, inputs)
