"""Ways: the partitions of a call that a search may choose from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.backend import BackendError
from backends.compiled import Kernels
from ir.errors import KernelError
from ir.network import Network
from ir.partition.choices import Choices, flipped

MOST = 6  # that are tried beside the usual one
LEAST_SHARE = 0.02  # of the time of a call that a choice is about
NEAR = 1.5  # of the time of what it takes the place of: another way takes no more

# The network of a call and what is computed before calls, as choices go; they are noted in `Choices`
Networks = Callable[[Kernels, Choices], tuple[Network, Network | None]]


@dataclass(frozen=True, slots=True)
class Way:
    """A partition of a call."""

    choices: Mapping[str, bool]  # that came up, as they went
    call: Network
    before: Network | None  # computes constants; None where there are none

    @property
    def calls(self) -> Counter[str]:
        """How often a call runs each kernel, by name."""
        return Counter(step.spec.name for step in self.call.steps)

    def us(self, times: Mapping[str, float]) -> float:
        """Microseconds of a call: the sum over its steps. times: of kernels, by name."""
        return sum(count * times[name] for name, count in self.calls.items())

    def closeness(self, other: Way, times: Mapping[str, float]) -> float:
        """The time of what this way has in place of parts of another, over that of these; infinite where
        they take next to nothing of the other's call."""
        mine, theirs = self.calls - other.calls, other.calls - self.calls
        new, old = (sum(n * times[name] for name, n in part.items()) for part in (mine, theirs))
        return new / old if old >= LEAST_SHARE * other.us(times) > 0.0 else float("inf")


def way(networks: Networks, kernels: Kernels, choices: Choices | None = None) -> Way:
    """The way that choices give; KernelError where a kernel cannot be lowered, BackendError where it cannot be
    emitted."""
    made = choices or Choices()
    call, before = networks(kernels, made)
    for spec in (*call.kernels(), *(before.kernels() if before else ())):
        kernels.emit(spec)  # a partition need not have tried all of them
    return Way(dict(made.made), call, before)


def another(networks: Networks, kernels: Kernels, choices: Choices) -> Way | None:
    """The way that choices give; None where the target cannot run it so."""
    try:
        return way(networks, kernels, choices)
    except (KernelError, BackendError):
        return None


def other_ways(usual: Way, networks: Networks, kernels: Kernels) -> list[Way]:
    """The ways that differ from a usual one in one choice and are near it by the estimate, the nearest
    first."""
    times = {s.name: kernels.expected_us(s) for s in usual.call.kernels()}
    found: dict[Network, tuple[float, Way]] = {}
    for name in usual.choices:
        one = another(networks, kernels, flipped(usual.choices, name))
        if one is None or one.call == usual.call:
            continue
        times |= {s.name: kernels.expected_us(s) for s in one.call.kernels()}
        close = one.closeness(usual, times)
        if close <= NEAR:
            found.setdefault(one.call, (close, one))
    ranked = sorted(found.values(), key=lambda each: each[0])
    return [one for _, one in ranked[:MOST]]
