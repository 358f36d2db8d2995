"""Clusters of a command: where candidates are evaluated with `--cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from search.cli.arguments import LOCAL
from search.cli.suite import Problem
from search.core.candidate import Candidate
from search.evaluator.cluster import Cluster, slot_resources
from search.evaluator.local import LocalEvaluator
from search.evaluator.remote import RemoteEvaluator
from search.evaluator.stages import Bench

# Makes an evaluator with a number of workers; None: as many as possible.
Evaluating = Callable[[Sequence[Bench], int | None], LocalEvaluator | RemoteEvaluator]


@dataclass(frozen=True, slots=True)
class OnCluster:
    """A cluster for a command."""

    cluster: Cluster
    # largest number of slots; None: as many as fit, which varies with the nodes
    workers: int | None

    def require(self, problem: Problem) -> dict[str, float]:
        """The resources of a slot for a problem. Raises KernelError if no node can have one."""
        local = self.cluster.address == LOCAL
        nodes, device = self.cluster.nodes(), _needs_device(problem)
        return slot_resources(nodes, problem.settings.target, device, local)

    def evaluating(self, problem: Problem, say: Callable[[str], None]) -> Evaluating:
        """Evaluators for a problem. say: shows a line."""
        resources = self.require(problem)

        def made(benches: Sequence[Bench], workers: int | None) -> RemoteEvaluator:
            return RemoteEvaluator(benches, self.cluster, resources, workers, say)

        return made

    def follow(
        self,
        evaluator: LocalEvaluator | RemoteEvaluator,
        lost: Callable[[Candidate, str], None],
    ) -> None:
        """Reports losses of an evaluator. lost: see `RemoteEvaluator`."""
        if isinstance(evaluator, RemoteEvaluator):
            evaluator.lost = lost


@contextmanager
def reached(address: str, workers: int | None, problems: Sequence[Problem]) -> Iterator[OnCluster]:
    """The cluster at an address, as a context. workers: see `OnCluster`.

    Raises KernelError if it does not answer, or if none of its nodes can evaluate one of the
    problems.
    """
    from search.evaluator.ray_cluster import connected  # takes a second to import

    with closing(connected(address, workers)) as cluster:
        found = OnCluster(cluster, workers)
        for problem in problems:
            found.require(problem)
        yield found


def _needs_device(problem: Problem) -> bool:
    """Whether times are measured on a device, and not on the cores of any node."""
    return any(
        "measured" in one.backend.manifest.time_kind
        and not one.backend.available(one.machine).get("own_cores")
        for one in problem.served.values()
    )
