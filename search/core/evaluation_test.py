"""JSON keeps evaluations and failures exact, and times of two kinds are never compared."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from search.core.evaluation import (
    CORRECT_BY,
    KINDS,
    SLOW,
    STAGES,
    TIME_KINDS,
    Evaluation,
    Failure,
    ShapeError,
    Timed,
    at,
    from_json,
    to_json,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
FIGURES = st.dictionaries(st.text(), FINITE, max_size=3)
SHAPES = st.builds(ShapeError, st.dictionaries(st.text(), st.integers()), FINITE, FINITE)
EVALUATIONS = st.builds(
    Evaluation,
    us=st.floats(min_value=1e-9, max_value=1e9),
    time_kind=st.sampled_from(TIME_KINDS),
    correct_by=st.sampled_from(CORRECT_BY),
    errors=st.lists(SHAPES, max_size=2).map(tuple),
    figures=FIGURES,
    engines=FIGURES,
    source_digest=st.text(),
    code_sha256=st.text(),
    seconds=FIGURES,
    times=st.lists(
        st.builds(Timed, st.dictionaries(st.text(), st.integers()), FINITE, FINITE, FIGURES),
        max_size=2,
    ).map(tuple),
)
FAILURES = st.builds(
    Failure,
    st.sampled_from(STAGES),
    st.sampled_from([kind for kind in KINDS if kind != SLOW]),
    st.text(),
    seconds=FIGURES,
    partly=st.none() | EVALUATIONS,
)
SLOW_ONES = st.builds(
    Failure, st.just("time"), st.just(SLOW), st.text(), us=st.floats(min_value=1e-9, max_value=1e9)
)
ONE = Evaluation(2.0, "simulated", "simulator")


@pytest.mark.parametrize(("kind", "us"), [("slow", None), ("slow", 0.0), ("wrong", 5.0)])
def test_what_is_slow_and_nothing_else_that_failed_has_a_time(kind, us):
    with pytest.raises(ValueError, match="has a time of"):
        Failure("time", kind, "it takes long", us=us)


@given(EVALUATIONS | FAILURES | SLOW_ONES)
def test_json_gives_the_value_back(evaluated):
    back = from_json(to_json(evaluated))
    assert back == evaluated
    assert back.seconds == evaluated.seconds


def test_json_is_one_line():
    assert "\n" not in to_json(Failure("check", "wrong", "line 1\nline 2"))


def test_seconds_are_not_compared():
    assert replace(ONE, seconds={"build": 1.0}) == replace(ONE, seconds={"build": 2.0})


def test_times_of_one_kind_are_compared():
    assert replace(ONE, us=1.0).faster_than(ONE)
    assert not ONE.faster_than(ONE)
    assert ONE.faster_than(None)


def test_times_of_two_kinds_are_not():
    with pytest.raises(KernelError, match="a measured time cannot be compared with a simulated"):
        replace(ONE, time_kind="measured").faster_than(ONE)


@pytest.mark.parametrize(
    "change",
    [
        {"us": 0.0},
        {"us": -1.0},
        {"us": math.nan},
        {"us": math.inf},
        {"time_kind": "guessed"},
        {"correct_by": "faith"},
        {"figures": {"cycles": math.nan}},
        {"engines": {"dma": math.inf}},
    ],
)
def test_what_makes_no_sense_is_refused(change):
    with pytest.raises(ValueError):
        replace(ONE, **change)


def test_stages_and_kinds_are_closed_sets():
    with pytest.raises(ValueError, match="stage is 'lunch'"):
        Failure("lunch", "wrong", "")
    with pytest.raises(ValueError, match="kind is 'sad'"):
        Failure("check", "sad", "")


@pytest.mark.parametrize(
    "reason, said",
    [
        ("", "no reason was given"),
        (" \n\n", "no reason was given"),
        ("\n  off by 0.3\nat y[3]", "off by 0.3"),
        ("off by 0.3", "off by 0.3"),
    ],
)
def test_a_failure_always_has_a_first_line(reason, said):
    failure = Failure("check", "wrong", reason)
    assert failure.headline == said
    assert from_json(to_json(failure)) == failure


@pytest.mark.parametrize("text", ["{}", "[]", '{"failure": {}}', '{"else": {}}', "no"])
def test_other_json_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json(text)


def test_the_tag_tells_them_apart():
    assert list(json.loads(to_json(ONE))) == ["evaluation"]


def test_at_a_shape_of_its_workload_it_is_what_it_was_there():
    small, large = Timed({"M": 1}, 1.0, 2.0, {"tiles": 1.0}), Timed({"M": 9}, 3.0, 8.0)
    whole = replace(ONE, us=5.6, figures={"tiles": 9.0}, times=(small, large))
    there = at(whole, {"M": 1})
    assert (there.us, there.figures, there.times) == (2.0, {"tiles": 1.0}, ())
    assert at(whole, {"M": 2}) is None
    assert at(Failure("verify", "refused", "it does not fit", partly=whole), {"M": 9}).us == 8.0
    assert at(Failure("check", "wrong", "off"), {"M": 9}) is None
