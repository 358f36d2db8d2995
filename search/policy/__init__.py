"""Policies: they choose parents and operators. One file each; this module finds them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ir.errors import KernelError
from ir.source import near
from search.loop.state import Policy
from search.policy.epsilon_greedy import EpsilonGreedy
from search.policy.evolutionary import Evolutionary
from search.policy.greedy import Greedy
from search.policy.islands import Islands
from search.policy.map_elites import SELECTIONS, MapElites
from search.policy.mcts import Mcts
from search.policy.parameters import OPTION, values
from search.policy.random_walk import RandomWalk
from search.policy.tpe import Tpe

POLICIES: Mapping[str, type] = {
    "epsilon_greedy": EpsilonGreedy,
    "evolutionary": Evolutionary,
    "greedy": Greedy,
    "islands": Islands,
    "map_elites": MapElites,
    "mcts": Mcts,
    "random": RandomWalk,
    "tpe": Tpe,
}
VARIANTS: Mapping[str, Callable[..., Policy]] = {
    f"map_elites:{selection}": partial(MapElites, selection) for selection in SELECTIONS
}
NAMES = tuple(sorted((*POLICIES, *VARIANTS)))


def policy(wording: str) -> Policy:
    """The policy of a text: a name, or `name,parameter=value,...`. Raises KernelError for an
    unknown name or parameter, or an invalid value."""
    name, *settings = wording.split(",")
    if name not in NAMES:
        raise KernelError(
            f"no policy `{name}`",
            where=OPTION,
            allowed=", ".join(NAMES),
            hint=near(name, NAMES, "docs/search.md says what each does"),
        )
    kind = POLICIES[name.partition(":")[0]]
    return (VARIANTS.get(name) or kind)(**values(name, kind, settings))
