"""Operators: what makes a new candidate of old ones. One file each; found by name here."""

from __future__ import annotations

from search.context import Operator
from search.operator.crossover import Crossover
from search.operator.mutate import Mutate
from search.operator.study import CMA
from search.operator.tune import Tune


def local_operators() -> dict[str, Operator]:
    """Those that need no model, by name."""
    walk = Mutate("walk", most=4, looks=1, by_name=True)  # without the estimate
    plain = Tune("tpe", looks=1, width=0, tries=200, by_name=True)
    cma = Tune("tune:cma", sampler=CMA, width=0)
    made = (Mutate("step", most=1), Mutate(), Crossover(), walk, Tune(), cma, plain)
    return {operator.name: operator for operator in made}
