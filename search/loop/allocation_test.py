"""Most evaluations go to the backend with the best expected time; the others keep a floor."""

import math

from hypothesis import given
from hypothesis import strategies as st

from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.loop.allocation import AHEAD, TRIED, Standing, shares, standing


def told(*times):
    """The progress of a backend whose first candidate is a seed; None: it failed."""
    graph, outcomes, seed = Graph(), {}, ()
    for number, us in enumerate(times):
        candidate = Candidate("spec", str(number), "chip", "tongue", origin=Origin("op", seed))
        graph.add(candidate)
        seed = seed or (candidate.key,)
        failure = Failure("check", "wrong", "off")
        outcomes[candidate.key] = failure if us is None else Evaluation(us, "modelled", "emulator")
    return standing("tongue", graph, outcomes)


def test_a_standing_is_the_best_time_and_what_it_lately_fell_by():
    assert told(10.0) == Standing("tongue", 0, 10.0)
    assert told(None, None) == Standing("tongue", 1, math.inf)
    assert told(10.0, 20.0, None).rate == 0.0 and told(10.0, 20.0, None).best_us == 10.0
    assert told(10.0, 5.0).rate == math.log(2)
    # Earlier gains decay, so of equal gains the later counts for more.
    assert told(10.0, 10.0, 10.0, 5.0).rate > told(10.0, 5.0, 5.0, 5.0).rate > 0
    # The first correct candidate is no gain, because there was nothing to compare it with.
    assert told(None, 5.0).rate == 0.0


def test_one_lucky_jump_counts_for_no_more_than_a_gain_may():
    assert told(1e6, 1.0).rate == 1.0


def test_first_each_has_as_many_children_as_any_other():
    fresh = [Standing("one", 0, 5.0), Standing("two", 0, 9.0), Standing("three", 0, math.inf)]
    assert shares(fresh[:2], 8) == {"one": 4, "two": 4}
    assert shares(fresh, 8) == {"one": 3, "two": 3, "three": 2}
    assert shares(fresh[:1], 8) == {"one": 8}


def test_then_the_faster_leads_unless_the_other_gains():
    fast, slow = Standing("fast", 4, 10.0), Standing("slow", 4, 20.0)
    assert shares([slow, fast], 8) == {"fast": 6, "slow": 2}
    gaining = Standing("slow", 4, 20.0, rate=math.log(2.1) / AHEAD)
    assert shares([fast, gaining], 8) == {"slow": 6, "fast": 2}
    assert shares([fast, Standing("same", 4, 10.0)], 8) == {"fast": 6, "same": 2}


def test_a_backend_of_which_nothing_is_correct_gets_no_more():
    fast, none = Standing("fast", 4, 10.0), Standing("none", TRIED, math.inf)
    assert shares([none, fast], 8) == {"fast": 8}
    other = Standing("other", 9, math.inf)
    assert sum(shares([none, other], 8).values()) == 8, "where nothing is correct, all go on"


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.floats(0.1, 1e6) | st.just(math.inf), st.floats(0, 1)),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 16),
)
def test_a_generation_is_shared_out_whole_and_the_leader_has_most(rows, count):
    standings = [Standing(str(n), *row) for n, row in enumerate(rows)]
    found = shares(standings, count)
    assert sum(found.values()) == count
    leader, *others = found.values()
    assert all(0 <= other <= leader for other in others)
    if count >= len(found):
        assert all(found.values()), "each keeps a floor"
