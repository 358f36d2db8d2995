"""Operators: what makes a new candidate of old ones. One file each; found by name here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from search.loop.context import Operator
from search.operator.crossover import Crossover
from search.operator.mutate import Mutate
from search.operator.near import Near
from search.operator.port import Port
from search.operator.rewrite import Rewrite
from search.operator.study import CMA, lacking
from search.operator.tune import Tune

MODEL_OPERATORS = ("universal", "combine")  # that ask models, of one parent and of two
TUNERS = ("tune:tpe", "tune:cma")
UNUSUAL = ("rewrite",)  # shown to be no gain (docs/search_ablation.md): used where they are named


def local_operators(preferences: Mapping[str, float] | None = None) -> dict[str, Operator]:
    """Those that need no model, by name. preferences: how much likelier a verb's edits are."""
    prefer = tuple(sorted((preferences or {}).items()))
    walk = Mutate("walk", most=4, looks=1, by_name=True)  # without the estimate
    plain = Tune("tpe", looks=1, width=0, tries=12, narrows=True, by_name=True)
    cma = Tune("tune:cma", sampler=CMA, width=0)
    changes = (Mutate("step", most=1, prefer=prefer), Mutate(prefer=prefer), Near(), Crossover())
    made: tuple[Operator, ...] = (*changes, Rewrite(), Port(), walk, Tune(), cma, plain)
    return {operator.name: operator for operator in made}


def usual(names: Iterable[str]) -> tuple[str, ...]:
    """Those of some operators that a search has where its user names none: not those that were
    shown to be no gain, nor those that lack a package here."""
    absent = (*UNUSUAL, *(TUNERS if lacking() else ()))
    return tuple(name for name in names if name not in absent)
