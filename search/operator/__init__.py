"""Operators: they make a new candidate from earlier ones. One file each; this module finds them by
name."""

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

MODEL_OPERATORS = ("universal", "combine")  # ask models; with one and with two parents
TUNERS = ("tune:tpe", "tune:cma")
UNUSUAL = ("rewrite",)  # without a gain in docs/search_ablation.md, so used only if named


def local_operators(preferences: Mapping[str, float] | None = None) -> dict[str, Operator]:
    """The operators that ask no model, by name. preferences: factors on the probability of edits,
    by verb."""
    prefer = tuple(sorted((preferences or {}).items()))
    walk = Mutate("walk", most=4, looks=1, by_name=True)  # does not use the estimate
    plain = Tune("tpe", looks=1, width=0, tries=12, narrows=True, by_name=True)
    cma = Tune("tune:cma", sampler=CMA, width=0)
    changes = (Mutate("step", most=1, prefer=prefer), Mutate(prefer=prefer), Near(), Crossover())
    made: tuple[Operator, ...] = (*changes, Rewrite(), Port(), walk, Tune(), cma, plain)
    return {operator.name: operator for operator in made}


def usual(names: Iterable[str]) -> tuple[str, ...]:
    """The operators of a search whose user names none. It leaves out those without a gain, and
    those whose packages are missing."""
    absent = (*UNUSUAL, *(TUNERS if lacking() else ()))
    return tuple(name for name in names if name not in absent)
