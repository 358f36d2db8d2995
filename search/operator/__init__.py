"""Operators: what makes a new candidate of old ones. One file each; found by name here."""

from __future__ import annotations

from collections.abc import Mapping

from search.context import Operator
from search.operator.crossover import Crossover
from search.operator.mutate import Mutate
from search.operator.rewrite import Rewrite
from search.operator.study import CMA
from search.operator.tune import Tune

MODEL_OPERATORS = ("universal", "combine")  # that ask models, of one parent and of two
UNUSUAL = ("rewrite",)  # shown to be no gain (docs/search_ablation.md): used where they are named


def local_operators(preferences: Mapping[str, float] | None = None) -> dict[str, Operator]:
    """Those that need no model, by name. preferences: how much likelier a verb's edits are."""
    prefer = tuple(sorted((preferences or {}).items()))
    walk = Mutate("walk", most=4, looks=1, by_name=True)  # without the estimate
    plain = Tune("tpe", looks=1, width=0, tries=200, by_name=True)
    cma = Tune("tune:cma", sampler=CMA, width=0)
    changes = (Mutate("step", most=1, prefer=prefer), Mutate(prefer=prefer), Crossover())
    made = (*changes, Rewrite(), walk, Tune(), cma, plain)
    return {operator.name: operator for operator in made}
