"""Policies are found by their text, and keep their contract in any state."""

import random
import subprocess
import sys
from copy import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.errors import KernelError
from search.policy import NAMES, POLICIES, grid, policy
from search.policy.islands import Islands
from search.policy.map_elites import MapElites
from search.policy.states import states


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_is_found_by_its_name(name):
    assert isinstance(policy(name), POLICIES[name.partition(":")[0]])
    assert policy(name) == policy(name)


def test_a_wording_sets_parameters():
    assert policy("islands,count=3,every=5") == Islands(count=3, every=5)
    assert policy("map_elites:gradient,crossed=0") == MapElites("gradient", 0.0)
    assert policy("mcts,value=mean").value == "mean"


@pytest.mark.parametrize(
    "wording, what, allowed",
    [
        ("lucky", "no policy `lucky`", "epsilon_greedy, evolutionary, greedy, islands"),
        ("", "no policy ``", "mcts, random"),
        ("map_elites:best", "no policy `map_elites:best`", "map_elites:curiosity"),
        ("greedy:best", "no policy `greedy:best`", "greedy"),
        ("islands,size=4", "policy `islands` has no parameter `size`", "count, every"),
        ("greedy,step=3", "policy `greedy` has no parameter `step`", "width"),
        ("islands,count", "`count` is no `parameter=value` of policy `islands`", "count, every"),
        ("islands,", "`` is no `parameter=value` of policy `islands`", "count, every"),
        ("islands,count=", "`count` of policy `islands` is ``", "a whole number from 2 to 64"),
        ("islands,count=1", "`count` of policy `islands` is `1`", "a whole number from 2 to 64"),
        ("islands,count=2.5", "is `2.5`", "a whole number"),
        ("epsilon_greedy,epsilon=nan", "is `nan`", "a number from 0 to 1"),
        ("epsilon_greedy,epsilon=lots", "is `lots`", "a number from 0 to 1"),
        ("mcts,value=worst", "`value` of policy `mcts` is `worst`", "best, mean"),
        ("islands,count=3,count=4", "`count` is given twice", ""),
        ("map_elites,selection=uniform", "has no parameter `selection`", "crossed"),
    ],
)
def test_a_wrong_wording_is_refused_with_what_is_allowed(wording, what, allowed):
    with pytest.raises(KernelError) as caught:
        policy(wording)
    assert what in caught.value.what
    assert allowed in caught.value.allowed
    assert caught.value.where == "--policy"


def test_a_near_miss_is_named_and_for_another_name_the_page():
    with pytest.raises(KernelError, match="docs/search.md"):
        policy("lucky")
    with pytest.raises(KernelError, match="did you mean `islands`"):
        policy("island")
    with pytest.raises(KernelError, match="did you mean `every`"):
        policy("islands,evry=3")


def test_where_the_archive_package_is_not_installed_map_elites_says_so(monkeypatch):
    monkeypatch.setattr(grid, "find_spec", lambda name: None)
    with pytest.raises(KernelError, match="package `ribs` is not installed") as caught:
        policy("map_elites")
    assert caught.value.hint == "install it, or choose another policy"
    assert policy("islands")


def test_the_archive_package_is_imported_only_when_it_is_needed():
    code = "import sys, search.policy as p; p.policy('mcts'); assert 'ribs' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": _path()})


def _path():
    return ":".join(p for p in sys.path if p) or "."


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(state=states(), count=st.integers(1, 9), seed=st.integers(0, 99))
def test_in_any_state_parents_are_in_the_graph_and_nothing_is_kept(name, state, count, seed):
    before = dict(state.outcomes), len(state.graph)
    chosen = policy(name)
    rng = random.Random(seed)
    again = copy(rng)
    again.setstate(rng.getstate())
    asked = list(chosen.ask(state, count, rng))
    chosen.ask(state, count, random.Random(seed + 1))
    assert list(chosen.ask(state, count, again)) == asked
    assert rng.getstate() == again.getstate()
    assert (dict(state.outcomes), len(state.graph)) == before
    assert len(asked) >= 1
    for proposal in asked:
        assert proposal.parents and all(key in state.graph for key in proposal.parents)
        assert len(set(proposal.parents)) == len(proposal.parents) <= 2


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"greedy"}))
@given(state=states(), count=st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_a_generation_is_filled(name, state, count):
    assert len(policy(name).ask(state, count, random.Random(0))) >= count
