"""Operators: what makes a new candidate of old ones. One file each; found by name here."""

from __future__ import annotations

from search.context import Operator
from search.operator.crossover import Crossover
from search.operator.mutate import Mutate


def local_operators() -> dict[str, Operator]:
    """Those that need no model, by name."""
    walk = Mutate("walk", most=4, looks=1, by_name=True)  # at random, without the estimate
    made = (Mutate("step", most=1), Mutate(), Crossover(), walk)
    return {operator.name: operator for operator in made}
