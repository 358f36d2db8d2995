"""The sections that fit a budget, for any sections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from search.prompt.budget import LEAST, Section, fit, tokens

LINES = st.lists(st.text("abc ", max_size=60), min_size=1, max_size=12).map("\n".join)
SECTIONS = st.lists(
    st.tuples(LINES, st.integers(0, 3), st.booleans(), st.booleans()), max_size=6
).map(lambda found: [Section(f"s{n}", *parts) for n, parts in enumerate(found)])
BUDGET = st.integers(0, 400)


def fitted(sections, budget):
    """The fitted sections; None if the required ones exceed the budget."""
    try:
        return fit(sections, budget)
    except KernelError:
        return None


def test_three_and_a_half_characters_are_a_token():
    assert [tokens("x" * n) for n in (0, 1, 3, 4, 7, 8)] == [0, 1, 1, 2, 2, 3]


@given(SECTIONS, BUDGET)
def test_the_text_is_never_longer_than_the_budget(sections, budget):
    found = fitted(sections, budget)
    assert found is None or found.tokens <= budget


@given(SECTIONS, BUDGET)
def test_required_sections_are_there_whole_or_there_is_an_error(sections, budget):
    found = fitted(sections, budget)
    required = [s for s in sections if s.required]
    if found is None:
        assert sum(tokens(s.text + "\n\n") for s in required) > budget
    else:
        assert [s for s in found.sections if s.required] == required


@given(SECTIONS, BUDGET)
def test_sections_keep_their_order_and_each_is_kept_cut_or_dropped(sections, budget):
    found = fitted(sections, budget)
    if found is None:
        return
    kept = [s.name for s in found.sections]
    assert [s.name for s in sections if s.name in kept] == kept
    assert sorted([*kept, *found.dropped]) == sorted(s.name for s in sections)
    assert set(found.cut) <= set(kept)
    whole = {s.name: s.text for s in sections}
    for s in found.sections:
        assert (s.text == whole[s.name]) != (s.name in found.cut)


@given(SECTIONS, BUDGET)
def test_only_what_may_be_cut_is_and_says_so(sections, budget):
    found = fitted(sections, budget)
    for s in found.sections if found else ():
        if s.name in found.cut:
            given_text = next(g.text for g in sections if g.name == s.name)
            *lines, last = s.text.splitlines()
            assert given_text.splitlines()[: len(lines)] == lines
            assert last == f"[... {len(given_text.splitlines()) - len(lines)} lines left out]"
            assert s.cuttable and not s.required and tokens(s.text) >= LEAST


@given(SECTIONS, BUDGET)
def test_what_is_dropped_would_not_have_fitted_beside_what_goes_before_it(sections, budget):
    found = fitted(sections, budget)
    for name in found.dropped if found else ():
        lost = next(s for s in sections if s.name == name)
        before = [s for s in found.sections if s.required or s.priority >= lost.priority]
        assert sum(tokens(s.text + "\n\n") for s in (*before, lost)) > budget


@given(SECTIONS)
def test_with_room_enough_all_is_there(sections):
    found = fit(sections, 10**6)
    assert list(found.sections) == sections
    assert not found.dropped and not found.cut


def test_what_is_required_and_does_not_fit_is_named_with_what_it_takes():
    with pytest.raises(KernelError, match="take about 41 tokens, the budget is 20") as caught:
        fit(
            [Section("task", "x" * 70, required=True), Section("format", "y" * 68, required=True)],
            20,
        )
    assert caught.value.where == "task, format"
    assert caught.value.allowed == "41 or more"
    assert "longer context" in caught.value.hint
