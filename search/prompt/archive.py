"""The archive of prompts: the versions of the regions, and the results of their children."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph
from search.prompt.regions import Regions, first_regions

ENOUGH = 3  # children after which a version is judged
WANDER = 0.25  # probability of drawing any version, regardless of results


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the evolving regions."""

    regions: Regions
    parent: str = ""  # digest of the version that it was made from; empty for the first
    move: str = ""  # the coach's move that made it; empty for the first

    @property
    def digest(self) -> str:
        """The digest of the regions, which the version's candidates carry."""
        return self.regions.digest


@dataclass(frozen=True, slots=True)
class Shown:
    """The results of a version's children."""

    children: int
    failed: int
    gain: float  # best speed-up of a child over its parent, at least 1


@dataclass(slots=True)
class Prompts:
    """All versions, in the order in which they were made."""

    versions: dict[str, Version] = field(
        default_factory=lambda: {first_regions().digest: Version(first_regions())}
    )

    def add(self, version: Version) -> bool:
        """Adds a version. Returns False if its texts are known."""
        if version.digest in self.versions:
            return False
        self.versions[version.digest] = version
        return True

    def draw(self, graph: Graph, outcomes: Mapping[str, Evaluated], rng: random.Random) -> Version:
        """Draws a version: the one with the fewest children until all have ENOUGH, then mostly the
        fittest."""
        every = list(self.versions.values())
        seen = {v.digest: shown(v, graph, outcomes) for v in every}
        young = [v for v in every if seen[v.digest].children < ENOUGH]
        if young:
            return min(young, key=lambda v: seen[v.digest].children)
        if rng.random() < WANDER:
            return rng.choice(every)
        return max(every, key=lambda v: seen[v.digest].gain)


def shown(version: Version, graph: Graph, outcomes: Mapping[str, Evaluated]) -> Shown:
    """The results of a version. Its fitness is the best gain of its children over their parents."""
    children = [c for c in graph if c.origin.prompt == version.digest and c.key in outcomes]
    gains, failed = [0.0], 0
    for child in children:
        after = outcomes[child.key]
        before = outcomes.get(child.origin.parents[0])
        if not isinstance(after, Evaluation):
            failed += 1
        elif isinstance(before, Evaluation):
            gains.append(math.log(before.us / after.us))
    return Shown(len(children), failed, math.exp(max(gains)))
