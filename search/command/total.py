"""The total of a module: every step of it, each as long as its kernel's best candidate takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ir.network import Network
from search import quantity
from search.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Total:
    """A network on a target. name: the module's.  steps: its calls of kernels.  lacking: kernels
    without a correct candidate.  first_us, best_us: sums over the steps, None where a kernel has
    none.  time_kind: of the best; several are joined by "and".  left: operators that PyTorch
    computes between kernels, whose time is in no sum."""

    name: str
    target: str
    steps: int
    kernels: int
    lacking: tuple[str, ...]
    first_us: float | None
    best_us: float | None
    time_kind: str
    left: tuple[str, ...] = ()

    def table(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "target": self.target,
            "steps": self.steps,
            "kernels": self.kernels,
            "lacking": list(self.lacking),
            "left_to_torch": list(self.left),
            "first_us": self.first_us,
            "best_us": self.best_us,
            "time_kind": self.time_kind or None,
        }

    def text(self) -> str:
        """A line for a person."""
        steps = f"{self.steps} step{'s' * (self.steps != 1)}"
        kernels = f"{self.kernels} kernel{'s' * (self.kernels != 1)}"
        head = f"{self.name} on {self.target}: {steps} by {kernels}"
        if self.left:
            head += f", and {', '.join(self.left)} by PyTorch, in no sum"
        if self.best_us is None:
            return f"{head}; no sum of times, without a correct {', '.join(self.lacking)}"
        first = f" (first: {quantity.time(self.first_us)})" if self.first_us is not None else ""
        return f"{head}; sum of best times {quantity.time(self.best_us)}, {self.time_kind}{first}"


def total(
    target: str, network: Network, outcomes: Sequence[Outcome], left: Sequence[str] = ()
) -> Total:
    """The total of a network. outcomes: of searches, some perhaps for other targets.  left:
    operators that are left to PyTorch."""
    best, first, kinds = {}, {}, set()
    for outcome in outcomes:
        name = outcome.settings.kernel
        if outcome.settings.target != target or outcome.evaluation is None:
            continue
        best[name] = outcome.evaluation.us
        first[name] = outcome.first_us
        kinds.add(outcome.evaluation.time_kind)
    names = [step.spec.name for step in network.steps]
    return Total(
        name=network.name,
        target=target,
        steps=len(names),
        kernels=len(set(names)),
        lacking=tuple(name for name in dict.fromkeys(names) if name not in best),
        first_us=_sum(first.get(name) for name in names),
        best_us=_sum(best.get(name) for name in names),
        time_kind=" and ".join(sorted(kinds)),
        left=tuple(left),
    )


def _sum(times: Iterable[float | None]) -> float | None:
    found = list(times)
    return None if None in found else sum(found)
