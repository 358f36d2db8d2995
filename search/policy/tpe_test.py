"""Plain TPE proposes only trials around the first candidate."""

import random

from search.core.archive import Archive
from search.core.graph import Graph
from search.loop.state import Proposal, State
from search.policy.tpe import Tpe


def test_every_proposal_is_a_trial_from_the_first_root():
    state = State(3, Graph(), Archive((1,)), {}, ("first", "plain"))
    assert Tpe().ask(state, 3, random.Random(0)) == [Proposal("tpe", ("first",))] * 3
