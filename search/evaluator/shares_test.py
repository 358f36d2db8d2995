"""Fair shares of a cluster."""

from hypothesis import given
from hypothesis import strategies as st

from search.evaluator.shares import SILENCE, Shares, fair

WANTED = st.dictionaries(st.text(max_size=3), st.integers(1, 40), min_size=1, max_size=8)


@given(WANTED, st.integers(0, 100))
def test_shares_are_fair_and_leave_nothing_that_somebody_wants(wanted, capacity):
    shares = fair(wanted, capacity)
    assert shares.keys() == wanted.keys()
    assert all(1 <= shares[name] <= most for name, most in wanted.items())
    if capacity >= len(wanted):
        assert sum(shares.values()) == min(capacity, sum(wanted.values()))
        unmet = [shares[name] for name, most in wanted.items() if shares[name] < most]
        assert all(share <= least + 1 for least in unmet for share in shares.values())


def test_a_search_that_is_silent_has_ended_and_pools_do_not_meet():
    now = [0.0]
    shares = Shares(lambda: now[0])
    assert shares.share("", "one", 8, 8) == 8
    assert shares.share("", "two", 8, 8) == 4
    assert shares.share("gpu", "three", 8, 8) == 8
    assert shares.share("", "one", 2, 8) == 2
    assert shares.share("", "two", 8, 8) == 6
    now[0] += SILENCE
    assert shares.share("", "two", 8, 8) == 8
    assert shares.share("", "one", 8, 8) == 4
    shares.leave("", "two")
    assert shares.share("", "one", 8, 8) == 8
