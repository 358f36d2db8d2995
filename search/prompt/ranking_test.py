"""The properties of a ranking, for any texts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.prompt.ranking import K1, B, Ranking, words

WORD = st.sampled_from("abcdefgh")
TEXT = st.lists(WORD, min_size=1, max_size=12)
TEXTS = st.lists(TEXT, min_size=1, max_size=6)
QUERY = st.dictionaries(WORD, st.floats(0.1, 9), max_size=4)


def test_words_are_in_lower_case_and_without_plurals_numbers_and_little_words():
    assert words("Registers, and the tf32x3: num_warps=8") == ("register", "tf32x3", "num", "warp")
    assert words("loss status axis bus") == ("loss", "status", "axis", "bus")


def test_a_score_is_the_formulas():
    ranking = Ranking([["a", "a", "b"], ["b", "c", "c", "c", "c"]])
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm = 1 - B + B * 3 / 4
    expected = 2.0 * idf * 2 * (K1 + 1) / (2 + K1 * norm)
    assert ranking.scores({"a": 2.0}) == [pytest.approx(expected), 0]


def test_no_texts_have_no_scores():
    assert Ranking([]).scores({"a": 1.0}) == []


@given(TEXTS, QUERY)
def test_a_text_without_the_querys_words_scores_nothing_and_one_with_them_something(texts, query):
    for text, score in zip(texts, Ranking(texts).scores(query), strict=True):
        assert (score > 0) == bool(set(text) & set(query))


@given(TEXTS, QUERY, st.randoms())
def test_neither_the_order_of_texts_nor_of_words_counts(texts, query, random):
    order = random.sample(range(len(texts)), len(texts))
    shuffled = [random.sample(texts[n], len(texts[n])) for n in order]
    found, again = Ranking(texts).scores(query), Ranking(shuffled).scores(query)
    assert [found[n] for n in order] == pytest.approx(again)


@given(TEXTS, QUERY, st.data())
def test_one_more_of_a_querys_word_in_the_place_of_another_never_lowers_a_score(texts, query, data):
    word = data.draw(WORD)
    other = "z"  # not in a query
    held = [[*texts[0], word, other], *texts[1:]]
    more = [[*texts[0], word, word], *texts[1:]]
    one = {word: query.get(word, 1.0)}
    assert Ranking(more).scores(one)[0] >= Ranking(held).scores(one)[0]


@given(TEXTS, WORD, WORD)
def test_the_rarer_word_tells_more(texts, a, b):
    ranking = Ranking(texts)
    having = {w: sum(w in t for t in texts) for w in (a, b)}
    assert ranking.idf(a) > 0
    if having[a] < having[b]:
        assert ranking.idf(a) > ranking.idf(b)


@given(TEXTS, QUERY, st.floats(0.5, 4))
def test_scores_grow_with_the_weights(texts, query, factor):
    found = Ranking(texts).scores(query)
    scaled = Ranking(texts).scores({w: factor * v for w, v in query.items()})
    assert scaled == pytest.approx([factor * s for s in found])


@given(TEXT, st.integers(1, 30))
def test_of_two_texts_with_one_occurrence_the_shorter_scores_more(text, longer):
    rest = [w for w in text if w != "a"]
    ranking = Ranking([[*rest, "a"], [*rest, "a", *"z" * longer]])
    short, long = ranking.scores({"a": 1.0})
    assert short > long
