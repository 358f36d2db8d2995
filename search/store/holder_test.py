"""A holder is distinguished from an ended process, from another with its id, and from one on
another host."""

import subprocess
from dataclasses import replace

from search.store import holder
from search.store.holder import ABANDONED_SECONDS, here, holder_of


def test_this_process_works():
    assert not here().has_ended(1e9)
    assert holder_of(here().text) == here()
    assert str(here().process) in str(here())


def test_a_process_that_ended_and_was_not_awaited_has_ended():
    with subprocess.Popen(["sleep", "600"]) as other:
        held = holder._of(other.pid)
        assert not held.has_ended(0)
        other.kill()
        while holder._began(other.pid):
            pass
        assert held.has_ended(0)
    assert held.has_ended(0)


def test_another_process_with_its_number_is_not_it():
    assert replace(here(), began="1").has_ended(0)


def test_what_ran_before_the_host_was_started_again_has_ended():
    assert replace(here(), boot="before", process=1).has_ended(0)


def test_a_process_elsewhere_has_ended_when_it_writes_no_more():
    for far in (replace(here(), host="far"), replace(here(), space="pid:[1]")):
        assert not far.has_ended(ABANDONED_SECONDS - 1)
        assert far.has_ended(ABANDONED_SECONDS + 1)
