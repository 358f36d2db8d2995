"""Tuning learns from the trials, and its study has times of one kind only."""

import os
import random
import subprocess
import sys

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.errors import KernelError
from ir.parse.parse import parse_schedule
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.loop.context import Context, GaveUp, Parent, nest_digest
from search.operator import local_operators, study
from search.operator.study import CMA, TPE, StudyParameter, Trial, asked
from search.operator.tune import Tune

FIRST, PLAIN = (
    Candidate(spec_text(SPEC), str(made(SPEC, CHIP, SIZES)), "chip", "tongue")
    for made in (autoschedule, plain)
)
AXES = {
    "a": StudyParameter(9, True),
    "b": StudyParameter(9, True),
    "unit": StudyParameter(3, False),
}
START = {"a": 4, "b": 4, "unit": 0}


def trials(count, value):
    rng = random.Random(5)
    drawn = [{n: rng.randrange(axis.count) for n, axis in AXES.items()} for _ in range(count)]
    return [Trial(setting, value(setting)) for setting in drawn]


def some(sampler, told, count=40, seed=1):
    settings = asked(sampler, AXES, told, START, seed)
    return [next(settings) for _ in range(count)]


@pytest.mark.parametrize("sampler", [TPE, CMA])
def test_what_is_asked_is_near_what_was_good(sampler):
    told = trials(60, lambda s: (s["a"] - 7) ** 2 + (s["b"] - 1) ** 2 + 1.0)
    found = some(sampler, told)
    assert sum(s["a"] for s in found) / len(found) > 5.5
    assert sum(s["b"] for s in found) / len(found) < 2.5


def test_failures_are_avoided():
    told = trials(60, lambda s: None if s["unit"] else 1.0)
    units = [s["unit"] for s in some(TPE, told)]
    assert units.count(0) > len(units) / 2


def test_all_failures_or_no_trial_at_all_is_a_start():
    for sampler in (TPE, CMA):
        for told in ([], trials(5, lambda s: None)):
            assert len(some(sampler, told, 3)) == 3


def test_cma_is_over_ordinal_parameters_only():
    assert all(set(s) == {"a", "b"} for s in some(CMA, trials(8, lambda s: 1.0 + s["a"])))
    assert list(asked(CMA, {"unit": StudyParameter(3, False)}, [], START, 1)) == []


@pytest.mark.parametrize("sampler", [TPE, CMA])
def test_the_same_trials_and_seed_ask_the_same(sampler):
    told = trials(30, lambda s: 1.0 + s["a"])
    assert some(sampler, told, 5) == some(sampler, told, 5)
    assert some(sampler, told, 5) != some(sampler, told, 5, seed=2)


def test_without_optuna_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    study._optuna.cache_clear()
    with pytest.raises(KernelError, match="`optuna` is not installed"):
        next(asked(TPE, AXES, [], START, 1))
    study._optuna.cache_clear()


def context(*tried):
    """The first candidate as the parent, after these outcomes."""
    graph, outcomes = Graph(), {}
    for candidate, outcome in ((FIRST, time(5.0)), *tried):
        graph.add(candidate, nest_digest(candidate, CHIP, SIZES))
        outcomes[candidate.key] = outcome
    return Context(SPEC, CHIP, SIZES, (Parent(FIRST, outcomes[FIRST.key]),), graph, outcomes)


def time(us):
    return Evaluation(us, "modelled", "emulator")


@pytest.mark.parametrize("name", ["tune:tpe", "tune:cma", "tpe"])
def test_a_child_is_new_and_the_same_for_the_same_generator(name):
    here = context((PLAIN, Failure("check", "wrong", "")))
    operator = local_operators()[name]
    one, two = (operator.propose(here, random.Random(3)) for _ in range(2))
    assert isinstance(one, Candidate) and one == two and one.origin.note
    assert one.key not in here.graph
    assert nest_digest(one, CHIP, SIZES)


def test_the_narrow_sweep_leaves_the_other_decisions():
    child = Tune(width=1).propose(context(), random.Random(0))
    differing = set(parse_schedule(child.schedule).decisions) ^ set(
        parse_schedule(FIRST.schedule).decisions
    )
    verbs = {(d.verb, d.subject) for d in differing if d.verb in ("tile", "compute", "pipeline")}
    assert len({s for v, s in verbs if v == "tile"}) <= 1
    assert differing


def test_the_estimate_chooses_but_is_not_told(monkeypatch):
    told = []

    def recording(sampler, axes, trials, start, seed):
        told.extend(trials)
        return asked(sampler, axes, trials, start, seed)

    monkeypatch.setattr("search.operator.tune.asked", recording)
    here = context((PLAIN, time(9.0)))
    child = Tune().propose(here, random.Random(1))
    assert [t.value for t in told] == [5.0, 9.0]
    one = Tune(looks=1).propose(here, random.Random(1))
    assert here.expected_us(child) <= here.expected_us(one)


def test_candidates_of_other_equations_or_with_a_source_are_no_trials(monkeypatch):
    told = []
    monkeypatch.setattr(
        "search.operator.tune.asked", lambda *given: iter(told.extend(given[2]) or ())
    )
    own = Candidate(FIRST.variant, PLAIN.schedule, "chip", "tongue", source="edited")
    found = Tune().propose(context((own, time(1.0))), random.Random(1))
    assert isinstance(found, GaveUp) and [t.value for t in told] == [5.0]


def test_where_no_setting_of_all_parameters_is_legal_fewer_are_swept(monkeypatch):
    widths = []

    def recording(sampler, axes, trials, start, seed):
        widths.append(len(axes))
        if len(axes) > 2:
            return iter(())
        return asked(sampler, axes, trials, start, seed)

    monkeypatch.setattr("search.operator.tune.asked", recording)
    child = Tune(width=0, narrows=True).propose(context(), random.Random(1))
    assert isinstance(child, Candidate)
    assert widths == [widths[0] >> n for n in range(len(widths))]
    assert widths[-1] in (1, 2) and widths[0] > 4
    assert isinstance(Tune(width=8).propose(context(), random.Random(1)), GaveUp)


def test_the_plain_one_has_no_estimate_sweeps_everything_and_no_budget_chooses_it():
    operator = local_operators()["tpe"]
    assert (operator.looks, operator.width, operator.by_name) == (1, 0, True)


def test_half_a_second_of_imports_that_samplers_do_not_need_is_left_out():
    """In a new process, because another test may have imported it."""
    lines = (
        "import sys",
        "from search.operator import study",
        "study.load().join()",
        "assert {'optuna', 'cmaes'} <= set(sys.modules)",
        "assert 'scipy.stats' not in sys.modules",
        "import scipy.stats",  # other importers find it
    )
    found = os.pathsep.join(p or os.getcwd() for p in sys.path)
    environment = {**os.environ, "PYTHONPATH": found}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment, check=True)
