"""Named choices of a partition: each has a usual answer that the caller can override.

    one:KERNEL      whether some equations are one kernel, of that name, or several
    channels_last   whether convolutions read and write their tensors channels last
    flat_chains     whether the tensors between TF32 convolutions are zero-padded planes (`flat_chains.py`)

A name depends on the equations alone, so equal parts of a network get equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ONE, CHANNELS_LAST, FLAT_CHAINS = "one:", "channels_last", "flat_chains"


@dataclass(frozen=True, slots=True)
class Choices:
    """The answers to a partition's choices.

    given: overrides, by name. A choice without an override takes its usual answer; a name that
        never comes up has no effect.
    asked: whether choices without an override come up, too. Each then needs a trial schedule, which
        takes time.
    made: the choices that came up, with their answers.
    """

    given: Mapping[str, bool] = field(default_factory=dict)
    asked: bool = True
    made: dict[str, bool] = field(default_factory=dict)

    def __call__(self, name: str, usual: Callable[[], bool]) -> bool:
        """Answers a choice and records the answer."""
        self.made[name] = self.given[name] if name in self.given else usual()
        return self.made[name]


def flipped(made: Mapping[str, bool], name: str) -> Choices:
    """All recorded choices of a partition, with one of them negated."""
    return Choices({**made, name: not made[name]})
