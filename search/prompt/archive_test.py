"""The archive of prompts draws versions with few children, then mostly the fittest."""

import random

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.prompt.archive import Prompts, Version, shown
from search.prompt.regions import MOST, first_regions

BETTER = Version(first_regions().with_files({"strategies.md": "Think.\n"}), "x", "simplify")
ROOT = Candidate("f", "root", "chip", "tongue")


def grown(*children):
    """A graph with (digest, us or None) as the root's children; the root takes 10 us."""
    graph, outcomes = Graph(), {ROOT.key: Evaluation(10.0, "simulated", "simulator")}
    graph.add(ROOT)
    for n, (digest, us) in enumerate(children):
        origin = Origin("universal", (ROOT.key,), prompt=digest)
        child = Candidate("f", str(n), "chip", "tongue", origin=origin)
        graph.add(child)
        lost = Failure("check", "wrong", "x")
        outcomes[child.key] = Evaluation(us, "simulated", "simulator") if us else lost
    return graph, outcomes


def test_a_version_is_as_fit_as_its_best_child():
    graph, outcomes = grown((BETTER.digest, 5.0), (BETTER.digest, None), (BETTER.digest, 20.0))
    found = shown(BETTER, graph, outcomes)
    assert (found.children, found.failed, found.gain) == (3, 1, pytest.approx(2.0))
    assert shown(Version(first_regions()), graph, outcomes).gain == 1.0


def test_each_version_gets_children_before_any_is_preferred():
    prompts = Prompts()
    first = next(iter(prompts.versions))
    assert prompts.add(BETTER) and not prompts.add(BETTER)
    assert prompts.draw(*grown(), random.Random(1)).digest == first
    for of_first, of_better, drawn in ((1, 0, BETTER.digest), (1, 2, first), (5, 2, BETTER.digest)):
        told = [(first, 9.0)] * of_first + [(BETTER.digest, 9.0)] * of_better
        assert prompts.draw(*grown(*told), random.Random(1)).digest == drawn
    graph, outcomes = grown(*[(first, 4.0)] * 3, *[(BETTER.digest, 9.0)] * 3)
    drawn = [prompts.draw(graph, outcomes, random.Random(n)).digest for n in range(60)]
    assert 40 < drawn.count(first) < 60


def test_a_region_is_never_empty_or_endless():
    for text in (" \n", "x" * (MOST + 1)):
        with pytest.raises(KernelError, match="region `strategies.md`"):
            first_regions().with_files({"strategies.md": text})
