"""Choices: where a partition can go two ways, which it goes, each by a name.

    one:KERNEL      whether equations are one kernel, of that name, or several
    channels_last   whether convolutions have the channels of their tensors last
    flat_chains     whether what is between convolutions in TF32 is computed in planes with zeros (`ir/partition/flat_chains.py`)

A name depends on the equations alone, so equal parts of a network go the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ONE, CHANNELS_LAST, FLAT_CHAINS = "one:", "channels_last", "flat_chains"


@dataclass(frozen=True, slots=True)
class Choices:
    """Which way a partition goes.

    given: by name; what is not among it goes the usual way, and a name that never comes up is of no
    effect.  asked: whether others are to come up, too. What a choice is about is scheduled for that, which takes time.
    made: those that came up, as they went.
    """

    given: Mapping[str, bool] = field(default_factory=dict)
    asked: bool = True
    made: dict[str, bool] = field(default_factory=dict)

    def __call__(self, name: str, usual: Callable[[], bool]) -> bool:
        """Which way a choice goes."""
        self.made[name] = self.given[name] if name in self.given else usual()
        return self.made[name]


def flipped(made: Mapping[str, bool], name: str) -> Choices:
    """All of a partition's choices as they went, but for one."""
    return Choices({**made, name: not made[name]})
