"""The form of equations: equal for equations that differ only in names of tensors and indices."""

from __future__ import annotations

from collections.abc import Mapping

from ir.contraction import indices
from ir.digest import text_digest
from ir.spec import Equation, Expr, Spec
from ir.verify import facts
from ir.visit import reindexed, rereading


def form_digest(spec: Spec) -> str:
    """A digest that is equal for specs of one signature that differ only in names of indices and
    intermediate tensors, and in the order of independent equations."""
    return text_digest(repr(_forms(spec)))


def form(spec: Spec, e: Equation, tensors: Mapping[str, str] | None = None) -> object:
    """An equation with its indices numbered in order of appearance, and their ranges.

    tensors: other names for the tensors that it reads.
    """
    left = [i for x in e.at for i in indices(x)]
    order = dict.fromkeys((*left, *indices(e.value), *e.reduced))
    names = {name: f"i{n}" for n, name in enumerate(order)}
    ranges = facts(spec).ranges

    def said(expr: Expr) -> Expr:
        plain = reindexed(expr, lambda name: names.get(name, name))
        return rereading(plain, tensors or {})

    spans = tuple((said(ranges[i].low), said(ranges[i].high)) for i in order)
    return tuple(map(said, e.at)), said(e.value), spans, e.accumulate


def _forms(spec: Spec) -> list[object]:
    """The forms of the equations, starting from the outputs; tensors are numbered in that order."""
    made = {e.target: e for e in spec.equations}
    order: dict[str, str] = {}
    todo = [t.name for t in reversed(spec.outputs)]
    while todo:
        name = todo.pop()
        if name in made and name not in order:
            order[name] = f"t{len(order)}"
            todo.extend(reversed(made[name].sources()))
    return [form(spec, made[name], order) for name in order]
