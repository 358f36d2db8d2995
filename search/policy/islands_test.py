"""Islands evolve separately, except for the migration of their best."""

import random
from collections import defaultdict

from search.policy.islands import Islands
from search.policy.states import made, names

LINES = [
    ("root", 9.0, ""),
    ("a", 1.0, "root"),
    ("b", 2.0, "root"),
    ("c", 3.0, "root"),
    ("d", None, "root"),
    ("e", 4.0, "a"),
]
TAGS = {"a": "island 0", "b": "island 1", "c": "island 1", "d": "island 2", "e": "island 0"}


def parents(policy, state, count=300):
    """The names of the parents of each island's children."""
    found = defaultdict(set)
    for proposal in policy.ask(state, count, random.Random(2)):
        found[proposal.tag].update(names(state, proposal.parents))
    return found


def test_parents_are_of_the_island_or_roots():
    found = parents(Islands(count=3, every=5), made(LINES, tags=TAGS, generation=1))
    assert found["island 0"] == {"a", "e", "root"}
    assert found["island 1"] == {"b", "c", "root"}
    assert found["island 2"] == {"root"}


def test_the_best_of_each_has_a_child_on_the_next_now_and_then():
    state = made(LINES, tags=TAGS, generation=5)
    asked = Islands(count=3, every=5).ask(state, 3, random.Random(0))
    sent = {p.tag: names(state, p.parents) for p in asked}
    assert sent == {"island 1": ["a"], "island 2": ["b"], "island 0": ["root"]}


def test_who_has_a_child_on_an_island_lives_there():
    lines = [*LINES, ("f", None, "a")]
    state = made(lines, tags=TAGS | {"f": "island 2"}, generation=1)
    assert parents(Islands(count=3, every=5), state)["island 2"] == {"a", "root"}


def test_islands_take_turns_even_where_there_are_more_than_proposals():
    seen = set()
    for generation in range(1, 5):
        state = made(LINES, generation=generation)
        seen |= {p.tag for p in Islands(count=8).ask(state, 2, random.Random(0))}
    assert len(seen) == 8


def test_only_the_fastest_of_an_island_are_drawn():
    lines = [("root", 9.0, "")] + [(str(n), float(n), "root") for n in range(1, 9)]
    tags = {str(n): "island 0" for n in range(1, 9)}
    found = parents(Islands(count=2, every=7, population=2), made(lines, tags=tags))
    assert found["island 0"] == {"1", "2"}


def test_two_parents_are_two():
    state = made(LINES, tags=TAGS)
    asked = Islands(crossed=1.0, every=9).ask(state, 40, random.Random(0))
    pairs = [p.parents for p in asked if len(p.parents) == 2]
    assert pairs and all(one != two for one, two in pairs)
