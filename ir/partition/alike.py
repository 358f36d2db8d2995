"""A key for kernels that differ only in which slice of a tensor they read or write."""

from __future__ import annotations

from dataclasses import replace

from ir.spec import Expr, Number, Read, Spec
from ir.visit import rebuilt


def first_parts(spec: Spec) -> Spec:
    """before: def h_4786678c(w: f32[6, 8, 8], ...): y[i, j] = w[5, i, j]
    after:  def kernel(w: f32[6, 8, 8], ...):     y[i, j] = w[0, i, j]

    Kernels that differ only in constant positions and names become equal, such as the layers of a
    recurrent network; so do those that store a whole tensor, or a part of a larger one. A good schedule
    for one is good for the others.
    """
    equations = tuple(replace(e, value=_first(e.value)) for e in spec.equations)
    outputs = tuple(replace(t, part=None) for t in spec.outputs)
    return replace(spec, name="kernel", doc="", equations=equations, outputs=outputs)


def _first(expr: Expr) -> Expr:
    made = rebuilt(expr, _first)
    if not isinstance(made, Read):
        return made
    return replace(made, at=tuple(Number(0) if isinstance(p, Number) else p for p in made.at))
