"""Tests traces of real searches: the use of slots, and the sources of the model's figures."""

import pytest

from benchmarks.scale.real import REST, RealSearch, Trace, alone, traced


def test_a_trace_says_how_long_slots_had_candidates():
    trace = Trace(workers=2)
    trace.given = [(1.0, 7), (1.0, 8), (3.0, 7)]
    trace.taken = [
        (3.0, 7, {"build": 1.5}),
        (4.0, 7, {"build": 0.5, "check": 0.25}),
        (5.0, 8, {"build": 4.0}),
    ]
    found = trace.figures()
    assert found["seconds"] == 4.0 and found["evaluations"] == 3
    assert found["throughput"] == 0.75
    assert found["busy"] == pytest.approx((2 + 1 + 4) / (2 * 4))
    assert found["held"] == pytest.approx(7 / 3)
    assert trace.stages() == [
        (("build", 1.5), (REST, 0.5)),
        (("build", 0.5), ("check", 0.25), (REST, 0.25)),
        (("build", 4.0), (REST, 0.0)),
    ]


def test_a_real_search_is_traced():
    sizes = (("M", 8), ("K", 16))
    wanted = RealSearch("null", "softmax", sizes, evaluations=10)
    trace, candidates = traced(wanted, 2)
    assert len(candidates) == 10 and trace.first < 10
    assert len(trace.given) == len(trace.taken) == len(trace.told) <= 10
    assert len(trace.asked) == 1, "one generation follows the first"
    figures = trace.figures()
    assert 0 < figures["busy"] <= 1 and figures["seconds"] > 0
    assert all(REST in dict(stages) for stages in trace.stages())
    again = alone(wanted, candidates[:2], 1)
    assert len(again.taken) == 2 and not again.asked
