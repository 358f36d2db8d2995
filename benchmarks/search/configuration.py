"""Configurations of a search: a policy, without some operators, with what earlier runs taught."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ir.errors import KernelError
from search.core.settings import POLICY
from search.loop.context import Operator
from search.loop.state import Policy
from search.operator import UNUSUAL, local_operators
from search.policy import NAMES, policy

EXTRAS = ("memory", "lessons")  # what `+` adds
POLICIES = "policies"  # the group of all policies; OPERATORS:POLICY leaves each operator out
OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is varied."""

    policy: str  # its wording
    without: tuple[str, ...] = ()  # operators
    extras: tuple[str, ...] = ()  # of EXTRAS

    def __str__(self) -> str:
        varied = (*(f"~{n}" for n in self.without), *(f"+{n}" for n in self.extras))
        return "".join((self.policy, *varied))

    def operators(self, preferences: Mapping[str, float]) -> dict[str, Operator]:
        """Those that a search of this configuration has."""
        made = local_operators(preferences)
        return {name: operator for name, operator in made.items() if name not in self.without}


USUAL = Configuration(POLICY, UNUSUAL)  # what `evolve` does unless told otherwise


def configuration(wording: str) -> Configuration:
    """The configuration of a wording: POLICY, POLICY~OPERATOR, POLICY+memory, in any number.

    KernelError where there is no such policy, operator or extra.
    """
    words, *extras = wording.split("+")
    named, *without = words.split("~")
    policy(named)
    for given, allowed in ((without, varied()), (extras, EXTRAS)):
        for name in given:
            if name not in allowed:
                raise KernelError(
                    f"`{name}` of the configuration `{wording}` is not known",
                    where="--configurations",
                    allowed=", ".join(allowed),
                )
    return Configuration(named, tuple(without), tuple(extras))


def configurations(wordings: Sequence[str]) -> tuple[Configuration, ...]:
    """Those of some wordings and groups, each once, in their order."""
    found: dict[Configuration, None] = {}
    for wording in wordings:
        group, _, named = wording.partition(":")
        if wording == POLICIES:
            found |= dict.fromkeys(map(Configuration, _policies()))
        elif group == OPERATORS:
            whole = configuration(named)
            left = (Configuration(whole.policy, (name,)) for name in varied())
            found |= dict.fromkeys((whole, *left))
        else:
            found[configuration(wording)] = None
    return tuple(found)


def varied() -> tuple[str, ...]:
    """The operators that can be left out: those that a budget chooses among."""
    made = local_operators().items()
    return tuple(name for name, o in made if not getattr(o, "by_name", False))


def _policies() -> Iterator[str]:
    """A name of each policy: the first, where it has several."""
    seen: list[Policy] = []
    for name in NAMES:
        if (made := policy(name)) not in seen:
            seen.append(made)
            yield name
