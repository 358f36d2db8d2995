"""A candidate's key depends on its content and not on its origin."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from search.core.candidate import Candidate, Origin, candidate

ONE = Candidate("def f", "schedule(f)", "chip", "tongue")


def test_origin_is_not_part_of_the_key():
    other = replace(ONE, origin=Origin("mutate", ("a",), "+ tile(m, size=2)"))
    assert other.key == ONE.key
    assert other == ONE


def test_every_other_field_changes_the_key():
    changed = [
        replace(ONE, variant="def g"),
        replace(ONE, schedule="schedule(g)"),
        replace(ONE, target="chop"),
        replace(ONE, backend="lip"),
        replace(ONE, source=""),
    ]
    assert len({c.key for c in (ONE, *changed)}) == 6


def test_fields_do_not_run_into_each_other():
    assert Candidate("ab", "c", "t", "b").key != Candidate("a", "bc", "t", "b").key


@given(
    st.builds(
        Candidate,
        *[st.text()] * 4,
        source=st.none() | st.text(),
        origin=st.builds(Origin, st.text(), st.lists(st.text()).map(tuple), st.text()),
    )
)
def test_a_table_gives_the_candidate_back(one):
    back = candidate(json.loads(json.dumps(one.table())))
    assert (back, back.key, back.origin) == (one, one.key, one.origin)
