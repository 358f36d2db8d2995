"""Configurations of a search: a policy, without some operators, with the results of earlier
runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ir.errors import KernelError
from search.core.settings import POLICY
from search.loop.context import Operator
from search.loop.state import Policy
from search.operator import UNUSUAL, local_operators
from search.policy import NAMES, policy

EXTRAS = ("memory", "lessons")  # What `+` adds.
# The group of all policies. OPERATORS:POLICY leaves out each operator in turn.
POLICIES = "policies"
OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The varied part of a search."""

    policy: str  # As text.
    without: tuple[str, ...] = ()  # Operators.
    extras: tuple[str, ...] = ()  # Members of EXTRAS.

    def __str__(self) -> str:
        varied = (*(f"~{n}" for n in self.without), *(f"+{n}" for n in self.extras))
        return "".join((self.policy, *varied))

    def operators(self, preferences: Mapping[str, float]) -> dict[str, Operator]:
        """Returns the operators of a search of this configuration."""
        made = local_operators(preferences)
        return {name: operator for name, operator in made.items() if name not in self.without}


USUAL = Configuration(POLICY, UNUSUAL)  # The default of `evolve`.


def configuration(wording: str) -> Configuration:
    """Parses a configuration: POLICY, POLICY~OPERATOR, POLICY+memory, with any number of each.

    Raises KernelError for an unknown policy, operator or extra.
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
    """Parses configurations and groups. Each appears once, in their order."""
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
    """Returns the operators that can be left out: those that a budget chooses among."""
    made = local_operators().items()
    return tuple(name for name, o in made if not getattr(o, "by_name", False))


def _policies() -> Iterator[str]:
    """Yields a name of each policy: the first, if it has several."""
    seen: list[Policy] = []
    for name in NAMES:
        if (made := policy(name)) not in seen:
            seen.append(made)
            yield name
