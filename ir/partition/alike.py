"""A key for kernels that differ only in which slice of a tensor they read or write."""

from __future__ import annotations

from dataclasses import replace

from ir.spec import Expr, Number, Read, Spec
from ir.visit import rebuilt


def first_parts(spec: Spec) -> Spec:
    """Returns the spec under a common name, with every constant position set to 0.

    before: def h_4786678c(w: f32[6, 8, 8], ...): y[i, j] = w[5, i, j]
    after:  def kernel(w: f32[6, 8, 8], ...):     y[i, j] = w[0, i, j]

    Two kernels with equal results differ only in names and constant positions, like the layers of a
    recurrent network. A kernel that stores a whole tensor equals one that stores a slice of a
    larger tensor. A schedule that is good for one of them is good for the others.
    """
    equations = tuple(replace(e, value=_first(e.value)) for e in spec.equations)
    outputs = tuple(replace(t, part=None) for t in spec.outputs)
    return replace(spec, name="kernel", doc="", equations=equations, outputs=outputs)


def _first(expr: Expr) -> Expr:
    made = rebuilt(expr, _first)
    if not isinstance(made, Read):
        return made
    return replace(made, at=tuple(Number(0) if isinstance(p, Number) else p for p in made.at))
