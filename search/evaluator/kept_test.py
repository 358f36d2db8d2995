"""Evaluators are kept between the rounds of a job if times are measured."""

import pytest

from search.evaluator import kept
from search.evaluator.kept import MOST, KeptEvaluators
from search.evaluator.testing.acting import bench

NAMES = [{"M": number} for number in range(2, 8)]


class Noted:
    """An evaluator that records its arguments."""

    made = 0
    measures = True

    def __init__(self, benches, workers, starts):
        type(self).made += 1
        self.benches, self.closed = benches, False

    def close(self):
        self.closed = True


@pytest.fixture
def noted(monkeypatch):
    class Own(Noted):
        made = 0

    monkeypatch.setattr(kept, "LocalEvaluator", Own)
    return Own


def opened(pool, number):
    with pool.opened([bench(checks=(NAMES[number],))], 2, None) as found:
        assert not found.closed
    return found


def test_the_next_round_of_a_kernel_has_the_same_evaluator_and_all_end_in_the_end(noted):
    with KeptEvaluators() as pool:
        first, other, again = opened(pool, 0), opened(pool, 1), opened(pool, 0)
        assert again is first and other is not first and not first.closed
    assert noted.made == 2 and first.closed and other.closed


def test_the_last_few_are_kept(noted):
    with KeptEvaluators() as pool:
        found = [opened(pool, number) for number in range(MOST + 1)]
        assert [each.closed for each in found] == [True] + [False] * MOST
        assert opened(pool, 0) is not found[0]


def test_nothing_is_kept_outside_of_a_job_or_where_times_are_not_measured(noted):
    pool = KeptEvaluators()
    assert opened(pool, 0).closed
    noted.measures = False
    with pool:
        assert opened(pool, 0).closed
    assert noted.made == 2


def test_one_in_which_a_search_broke_off_is_not_kept(noted):
    with KeptEvaluators() as pool:
        with pytest.raises(KeyboardInterrupt):
            with pool.opened([bench()], 2, None) as found:
                raise KeyboardInterrupt
        assert found.closed
