"""What forgets names runs and knows outcomes, and no run can go on."""

import pytest

from ir.errors import KernelError
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.core.stored import StoredExchange
from search.store.forgetful import Forgetful


def test_outcomes_are_known_in_their_context_as_long_as_it_lives():
    kept, good = Forgetful(), Evaluation(1.0, "simulated", "simulator")
    settings = Settings("rows", "", "chip", ("tongue",), {})
    others = Settings("columns", "", "chip", ("tongue",), {})
    names = [kept.start(each, {}) for each in (settings, others, settings)]
    assert names == ["rows-chip-1", "columns-chip-1", "rows-chip-2"]
    kept.evaluated("rows-chip-1", "key", "here", good, 0.0)
    assert kept.cached("key", "here") == good
    assert kept.cached("key", "there") is None
    with pytest.raises(KernelError, match="is not kept"):
        kept.load("rows-chip-1")


def test_exchanges_are_known_as_long_as_it_lives():
    kept, first = Forgetful(), StoredExchange("d", 0, "request", "reply", 0.0)
    second = StoredExchange("e", 0, "request", "reply", 0.0)
    later = StoredExchange("d", 0, "request", "another reply", 0.0)
    for exchange in (first, second, later):
        kept.exchanged("rows-chip-1", exchange)
    assert kept.exchanges("rows-chip-1") == (second, later)
    assert kept.exchanges("rows-chip-2") == ()
