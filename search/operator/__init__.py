"""Operators: what makes a new candidate of old ones. One file each; found by name here."""

from __future__ import annotations

from search.context import Operator
from search.operator.crossover import Crossover
from search.operator.mutate import Mutate


def local_operators() -> dict[str, Operator]:
    """Those that need no model, by name."""
    made = (Mutate("step", most=1), Mutate(), Crossover())
    return {operator.name: operator for operator in made}
