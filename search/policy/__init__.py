"""Policies: who becomes a parent, and by which operator. One file each; found by name here."""

from __future__ import annotations

from collections.abc import Mapping

from ir.errors import KernelError
from search.policy.evolutionary import Evolutionary
from search.policy.greedy import Greedy
from search.state import Policy

POLICIES: Mapping[str, Policy] = {
    "greedy": Greedy(),
    "evolutionary": Evolutionary(),
}


def policy(name: str) -> Policy:
    """The policy of a name; KernelError where there is none."""
    if name not in POLICIES:
        raise KernelError(
            f"no policy `{name}`", where="--policy", allowed=", ".join(sorted(POLICIES))
        )
    return POLICIES[name]
