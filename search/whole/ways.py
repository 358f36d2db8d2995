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

MOST = 6  # ways that are tried besides the usual one
LEAST_SHARE = 0.02  # least share of the time of a call that a choice concerns
NEAR = 1.5  # largest ratio of times between another way's kernels and those that they replace

# Makes the network of a call and the network before calls, by some choices, which it records in
# `Choices`
Networks = Callable[[Kernels, Choices], tuple[Network, Network | None]]


@dataclass(frozen=True, slots=True)
class Way:
    """A partition of a call."""

    choices: Mapping[str, bool]  # the choices that came up, and their results
    call: Network
    before: Network | None  # computes constants; None if there are none

    @property
    def calls(self) -> Counter[str]:
        """The number of runs of each kernel in a call, by name."""
        return Counter(step.spec.name for step in self.call.steps)

    def us(self, times: Mapping[str, float]) -> float:
        """The microseconds of a call: the sum over its steps. times: of kernels, by name."""
        return sum(count * times[name] for name, count in self.calls.items())

    def closeness(self, other: Way, times: Mapping[str, float]) -> float:
        """The time of this way's different kernels, over that of the other's; infinite if those
        take almost no part of the other's call."""
        mine, theirs = self.calls - other.calls, other.calls - self.calls
        new, old = (sum(n * times[name] for name, n in part.items()) for part in (mine, theirs))
        return new / old if old >= LEAST_SHARE * other.us(times) > 0.0 else float("inf")


def way(networks: Networks, kernels: Kernels, choices: Choices | None = None) -> Way:
    """The way that choices give. Raises KernelError if a kernel does not lower, BackendError if it
    cannot be emitted."""
    made = choices or Choices()
    call, before = networks(kernels, made)
    for spec in (*call.kernels(), *(before.kernels() if before else ())):
        kernels.emit(spec)  # a partition need not have tried all of them
    return Way(dict(made.made), call, before)


def another(networks: Networks, kernels: Kernels, choices: Choices) -> Way | None:
    """The way that choices give; None if the target cannot run it."""
    try:
        return way(networks, kernels, choices)
    except (KernelError, BackendError):
        return None


def other_ways(usual: Way, networks: Networks, kernels: Kernels) -> list[Way]:
    """The ways that differ from the usual one in one choice and have similar estimated times, the
    fastest ratio first."""
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
