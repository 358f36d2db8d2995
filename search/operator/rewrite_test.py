"""Rewrite makes candidates with equations that are new to the graph."""

import random

import numpy as np
import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.rewrites import REWRITES
from ir.rewrites.form import form_digest
from search.core.candidate import Candidate
from search.core.graph import Graph
from search.core.testing import CHIP
from search.loop.context import Context, GaveUp, Parent, nest_digest
from search.operator.crossover import Crossover
from search.operator.rewrite import Rewrite

SPEC = parse_spec(
    '''def scores(q: f32[M, D], k: f32[N, D], c: f32[M]) -> f32[M, N]:
    """Softmax of scaled products."""
    s[m, n] = sum(q[m, d] * k[n, d] * c[m], d)
    e[m, n] = exp(s[m, n])
    t[m] = sum(e[m, n], n)
    y[m, n] = e[m, n] / t[m]
    return y
'''
)
SIZES = {"M": 32, "N": 48, "D": 16}


def candidate(spec, schedule=None):
    made = schedule or autoschedule(spec, CHIP, SIZES)
    return Candidate(spec_text(spec), str(made), "chip", "tongue")


FIRST = candidate(SPEC)


def context(graph=None, parent=FIRST):
    if graph is None:
        graph = Graph()
        graph.add(FIRST, nest_digest(FIRST, CHIP, SIZES))
    return Context(SPEC, CHIP, SIZES, (Parent(parent),), graph)


@pytest.mark.parametrize("seed", range(4))
def test_a_child_has_other_equations_that_compute_the_same(seed):
    child = Rewrite().propose(context(), random.Random(seed))
    made = parse_spec(child.variant)
    assert form_digest(made) != form_digest(SPEC)
    assert (made.inputs, made.outputs) == (SPEC.inputs, SPEC.outputs)
    nest = lower(made, parse_schedule(child.schedule), CHIP, SIZES)
    inputs = random_inputs(SPEC, SIZES, np.random.default_rng(seed))
    found = interpret(nest, inputs, SIZES)["y"]
    np.testing.assert_allclose(found, evaluate(SPEC, inputs, SIZES)["y"], 1e-9, 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_its_note_names_the_rewrites_and_what_they_made(seed):
    child = Rewrite().propose(context(), random.Random(seed))
    steps = child.origin.note.removesuffix("; scheduled anew").split("; ")
    assert 1 <= len(steps) <= Rewrite().most
    assert all(step.partition("(")[0] in REWRITES for step in steps)


def test_no_variant_is_made_twice_and_then_it_gives_up():
    here = context()
    operator = Rewrite(most=1, tries=3, looks=1)
    rng = random.Random(0)
    seen = {form_digest(SPEC)}
    while isinstance(child := operator.propose(here, rng), Candidate):
        digest = form_digest(parse_spec(child.variant))
        assert digest not in seen
        seen.add(digest)
        here.graph.add(child, nest_digest(child, CHIP, SIZES))
        assert len(seen) < 200
    assert len(seen) > 8
    assert "no rewrite leads" in child.reason


def test_other_names_are_no_other_variant():
    renamed = parse_spec(spec_text(SPEC).replace("t[m]", "total[m]"))
    graph = Graph()
    other = candidate(renamed)
    graph.add(FIRST, "one")
    graph.add(other, "two")
    here = context(graph, other)
    child = Rewrite(most=1).propose(here, random.Random(1))
    assert form_digest(parse_spec(child.variant)) != form_digest(SPEC)


def test_the_parents_schedule_goes_with_the_equations_where_it_lowers():
    kept = Rewrite(looks=1, most=1)
    made = [kept.propose(context(), random.Random(seed)) for seed in range(10)]
    assert any(c.schedule == FIRST.schedule for c in made)
    assert any(c.schedule != FIRST.schedule for c in made)


def test_where_nothing_applies_it_says_so():
    lines = "    y[m] = x[m] + 1.0\n    return y\n"
    spec = parse_spec(f'def f(x: f32[M]) -> f32[M]:\n    """Doc."""\n{lines}')
    first = candidate(spec, autoschedule(spec, CHIP, {"M": 8}))
    graph = Graph()
    graph.add(first)
    here = Context(spec, CHIP, {"M": 8}, (Parent(first),), graph)
    assert isinstance(Rewrite().propose(here, random.Random(0)), GaveUp)


def test_crossover_takes_decisions_of_a_parent_with_other_equations():
    other = Rewrite(looks=1, most=1).propose(context(), random.Random(2))
    graph = context().graph
    graph.add(other, nest_digest(other, CHIP, SIZES))
    tiled = candidate(SPEC, plain(SPEC, CHIP, SIZES))
    graph.add(tiled, nest_digest(tiled, CHIP, SIZES))
    for pair in ((other, tiled), (tiled, other)):
        here = Context(SPEC, CHIP, SIZES, tuple(map(Parent, pair)), graph)
        made = [Crossover().propose(here, random.Random(seed)) for seed in range(6)]
        children = [c for c in made if isinstance(c, Candidate)]
        assert children
        for child in children:
            assert child.variant == pair[0].variant
            assert child.origin.parents == tuple(p.key for p in pair)
            lower(parse_spec(child.variant), parse_schedule(child.schedule), CHIP, SIZES)
