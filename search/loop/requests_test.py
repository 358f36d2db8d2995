"""Requests know those of their generation, and what came to nothing before; a resumed run alike."""

from search.core.settings import Settings
from search.core.stored import StoredRun
from search.loop.context import GaveUp, Memory, Refused
from search.loop.requests import Requests

UNMADE = (
    GaveUp("it was tried before", asked="improve the source of a"),
    GaveUp("no edge is left"),  # of an operator that asks nobody
    GaveUp("down", unanswered=True, asked="improve the schedule of a"),
)
TOLD = Refused("improve the source of a", "it was tried before")


def closed(requests, generation, unmade=UNMADE):
    requests.begin(generation)
    return tuple(requests.close(unmade, 1.5))


def resumed(events):
    settings = Settings("rows", "spec", "chip", ("tongue",), {})
    return Requests(StoredRun("rows-1", settings, {}, (), {}, events))


def test_a_request_knows_those_before_it_in_its_generation():
    requests = Requests()
    requests.begin(4)
    requests.add("draft the schedule of a")
    requests.add("improve the source of b")
    assert requests.memory == Memory(4, ("draft the schedule of a", "improve the source of b"))
    requests.begin(4)
    assert requests.memory == Memory(4), "asked again after a rest"


def test_what_came_to_nothing_is_known_from_the_next_generation_on():
    requests = Requests()
    (event,) = closed(requests, 2)
    assert (event.kind, event.key) == ("refused", "2")
    assert requests.memory.refused == ()
    requests.begin(3)
    assert requests.memory.refused == (TOLD,)


def test_a_resumed_run_knows_the_same_and_logs_nothing_twice():
    events = closed(Requests(), 2)
    again = resumed(events)
    again.begin(2)
    assert again.memory == Memory(2)
    assert closed(again, 2) == ()
    again.begin(3)
    assert again.memory.refused == (TOLD,)
