"""A candidate is packed for a slot and unpacked there."""

from hypothesis import given
from hypothesis import strategies as st

from search.core.candidate import Candidate, Origin
from search.evaluator.slot import INLINE, packed, unpacked

TEXTS = st.sampled_from(["", "short", "a" * INLINE, "b" * (INLINE + 1), "c" * (INLINE + 1)])


@given(TEXTS, TEXTS, st.none() | TEXTS)
def test_a_candidate_arrives_as_it_was_and_long_texts_go_by_digest(variant, schedule, source):
    asked = Candidate(variant, schedule, "chip", "tongue", source, Origin("tune", ("p",), "note"))
    table, texts = packed(asked)
    found = unpacked(table, list(texts.values()))
    assert found == asked and found.origin == asked.origin and found.key == asked.key
    long = {t for t in (variant, schedule, source) if t is not None and len(t) > INLINE}
    assert set(texts.values()) == long
