"""Tests that our call as a graph counts only if its results are those of the call."""

from types import SimpleNamespace

import pytest
import torch

from benchmarks.called import GRAPH
from benchmarks.kernelbench import contest as module

SETS = [(torch.arange(4.0),), (torch.arange(4.0).flip(0),)]


class Notes:
    def __init__(self):
        self.row = {}

    def note(self, **facts):
        self.row |= facts


def captured(monkeypatch, graph, draws=None, kind="measured", size=0):
    """Captures a call that doubles its input. Returns the graph and the notes."""

    class Call:
        made, linked, state, seed = SimpleNamespace(seed=draws), None, {}, 3
        program = SimpleNamespace(plan=SimpleNamespace(bytes=size))

        def __call__(self, x):
            return 2 * x

    monkeypatch.setattr(module, "CompiledModule", lambda *_, seed, graph: made)
    made, one = graph, object.__new__(module._Contest)
    one.venue = SimpleNamespace(time_kind=kind, settled=lambda: None)
    one.notes = Notes()
    return list(one._captured(Call(), SETS)), one.notes.row


def raises(_):
    raise RuntimeError("it cannot be captured")


def test_a_graph_that_gives_what_the_call_gives_is_timed(monkeypatch):
    assert captured(monkeypatch, lambda x: x + x) == ([GRAPH], {})


@pytest.mark.parametrize(
    ("graph", "said"), [(lambda _: 2 * SETS[1][0], "off"), (raises, "cannot be captured")]
)
def test_one_that_keeps_a_result_or_fails_is_not(monkeypatch, graph, said):
    names, row = captured(monkeypatch, graph)
    assert not names and said in row["uncaptured"]


@pytest.mark.parametrize("other", [{"kind": "rehearsed"}, {"size": module.GRAPH_BYTES + 1}])
def test_none_is_tried_elsewhere_and_of_large_tensors(monkeypatch, other):
    assert captured(monkeypatch, raises, **other) == ([], {})


def test_a_graph_that_draws_the_numbers_of_the_call_is_timed(monkeypatch):
    assert captured(monkeypatch, lambda x: x + x, draws="seed") == ([GRAPH], {})


def test_one_that_draws_others_is_not_however_near_its_results_are(monkeypatch):
    names, row = captured(monkeypatch, lambda x: 2 * x + 1e-7, draws="seed")
    assert not names and row["uncaptured"] == "it draws other numbers than the call"
    assert captured(monkeypatch, lambda x: 2 * x + 1e-7) == ([GRAPH], {})


def test_a_row_names_the_kernels_that_take_longest():
    launches = [("few", 1.0), ("long", 7.0), *[(f"k{n}", 2.0) for n in range(9)], ("long", 4.04)]
    one = object.__new__(module._Contest)
    one.venue = SimpleNamespace(launches=lambda call, inputs: launches)
    told = one._longest(None, ())
    assert len(told) == module.LONGEST and next(iter(told.items())) == ("long", 11.0)
    assert "few" not in told
