"""Operators: what makes a new candidate of old ones. One file each; found by name here."""

from __future__ import annotations

from collections.abc import Mapping

from search.context import Operator
from search.operator.crossover import Crossover
from search.operator.mutate import Mutate

OPERATORS: Mapping[str, Operator] = {
    "step": Mutate("step", most=1),
    "mutate": Mutate(),
    "crossover": Crossover(),
}
