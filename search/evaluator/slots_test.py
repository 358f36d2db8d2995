"""The slots of a search, turn by turn: which slot gets which candidate, and the effect of a
loss."""

import queue

import pytest

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.evaluator import slots as module
from search.evaluator.shares import Shares
from search.evaluator.slot import INLINE, unpacked
from search.evaluator.slots import Loss, Slots, tasks
from search.evaluator.testing.fake_cluster import FakeCluster, Gone, node, opened, right
from search.loop.hooks import Unavailable

CPU = {"CPU": 1.0}
A, B = node("a"), node("b")


def candidates(count, source=None):
    return [Candidate("v", f"s{n}", "chip", "tongue", source) for n in range(count)]


class Driven:
    """Slots that a test drives, on a test's clock."""

    def __init__(self, cluster, most=None):
        self.now, self.cluster, self.call = 0.0, cluster, queue.SimpleQueue()
        self.slots = Slots(cluster, b"", CPU, most, clock=lambda: self.now)

    def settle(self):
        """Runs turns until no message is left."""
        self.slots.turn(0.0)
        while not self.slots.inbox.empty():
            self.slots.turn(0.0)

    def ready(self, *said):
        """Places waiting slots on nodes."""
        waiting = [s for s in self.alive if not s.opening.done()]
        for slot, one in zip(waiting, said):
            slot.opening.set_result(one)
        self.settle()

    def ask(self, *asked):
        self.slots.add(tasks(self.call, asked))
        self.settle()

    def lose(self, slot, how="its node ended"):
        slot.answer.set_exception(Gone(how))
        self.settle()

    @property
    def alive(self):
        return [s for s in self.cluster.slots if not s.ended]

    @property
    def busy(self):
        return [s for s in self.alive if s.asked and not s.answer.done()]

    def came(self):
        """The messages to the call."""
        found = []
        while not self.call.empty():
            found.append(self.call.get())
        return found


@pytest.fixture
def two():
    driven = Driven(FakeCluster(A, B))
    driven.settle()
    driven.ready(opened("a"), opened("b"))
    return driven


def test_as_many_slots_are_started_as_fit_and_are_asked_for():
    for most, count in ((None, 2), (1, 1), (9, 2)):
        driven = Driven(FakeCluster(A, B), most)
        driven.settle()
        assert len(driven.alive) == count
        assert all(slot.resources == CPU for slot in driven.alive)


def test_a_slot_has_one_candidate_at_a_time_however_many_wait(two):
    two.ask(*candidates(50))
    assert [len(s.asked) for s in two.alive] == [1, 1]
    two.alive[1].answer.set_result(right(7.0))
    two.settle()
    assert [len(s.asked) for s in two.alive] == [1, 2]
    ((position, found),) = two.came()
    assert position == 1 and isinstance(found, Evaluation) and found.us == 7.0


def test_what_a_lost_slot_had_is_repeated_once_on_another_node_and_told(two):
    (asked,) = candidates(1)
    two.ask(asked)
    lost = two.busy[0]
    two.lose(lost)
    assert lost.ended
    (again,) = two.busy
    assert again is not lost and again.opening.result().node == "b"
    assert two.came() == [Loss(asked, "host-a (its node ended)")]
    again.answer.set_result(right())
    two.settle()
    assert [answer[0] for answer in two.came()] == [0]


def test_a_lost_candidate_waits_for_a_busy_slot_elsewhere_and_not_for_one_that_never_comes(two):
    two.ask(*candidates(2))
    on_a, on_b = two.busy
    two.lose(on_a)
    two.ready(opened("a"))  # the replacement slot
    assert two.busy == [on_b]
    on_b.answer.set_result(right())
    two.settle()
    assert two.busy == [on_b]
    two.lose(on_b)  # both nodes have lost it now
    two.now += 1.0
    two.settle()
    assert len(two.busy) == 1


def lose_each(driven, count):
    """Loses a slot's candidate several times. Returns the seconds until it is handed out again,
    each time."""
    waits = []
    for number in range(count):
        (busy,) = driven.busy
        driven.lose(busy)
        driven.ready(opened(f"n{number}"))
        began = driven.now
        while not driven.busy:
            driven.now += 0.5
            driven.settle()
        waits.append(driven.now - began)
    return waits


def test_a_candidate_is_repeated_later_each_time_it_is_lost_and_its_outcome_is_its_own(two):
    two.ask(*candidates(1))
    waits = lose_each(two, module.LOSSES - 1)
    assert waits == [0.0, *(min(2.0**n, module.LONGEST_WAIT) for n in range(len(waits) - 1))]
    two.busy[0].answer.set_result(right(7.0))
    two.settle()
    *losses, (position, found) = two.came()
    assert all(isinstance(each, Loss) for each in losses) and len(losses) == len(waits)
    assert (position, found.us) == (0, 7.0)


def test_others_are_evaluated_while_a_lost_candidate_waits(two):
    first, *others = candidates(3)
    two.ask(first)
    lose_each(two, 4)
    two.lose(two.busy[0])
    two.ready(opened("c"))
    two.ask(*others)
    assert [unpacked(*slot.asked[-1][:2]) for slot in two.busy] == others


def test_a_candidate_that_is_lost_without_end_ends_the_search_and_is_no_failure(two):
    (asked,) = candidates(1)
    two.ask(asked)
    lose_each(two, module.LOSSES - 1)
    with pytest.raises(Unavailable, match=f"{asked.key} was lost 16 times.*its node ended"):
        two.lose(two.busy[0])
    assert all(isinstance(each, Loss) for each in two.came())


def test_what_is_begun_ahead_is_taken_over_by_the_call_that_asks_for_it(two):
    first, second, third = candidates(3)
    for one in (first, second):
        two.slots.begin(one)
    two.settle()
    on_a, on_b = two.busy
    on_a.answer.set_result(right(7.0))
    two.lose(on_b)
    two.ready(opened("c"))
    two.ask(third, second, first)
    came = two.came()
    (loss,) = [each for each in came if isinstance(each, Loss)]
    ((position, found),) = [each for each in came if not isinstance(each, Loss)]
    assert (loss.candidate, position, found.us) == (second, 2, 7.0)
    for slot in two.busy:
        slot.answer.set_result(right())
        two.settle()
    assert sorted(position for position, _ in two.came()) == [0, 1]
    handed = [unpacked(t, x) for s in two.cluster.slots for t, x, _ in s.asked]
    assert sorted(handed.count(one) for one in (first, second, third)) == [1, 1, 2]


def test_what_is_begun_ahead_and_not_asked_for_is_given_up(two):
    early, other = candidates(2)
    two.slots.begin(early)
    two.settle()
    (busy,) = two.busy
    two.ask(other)
    assert busy.ended
    two.busy[0].answer.set_result(right())
    two.settle()
    assert [position for position, _ in two.came()] == [0]


def test_a_slot_that_hangs_counts_as_lost(two):
    two.ask(*candidates(1))
    (hangs,) = two.busy
    two.now = module.TRIES * 10.0 + module.GRACE + 1
    two.settle()
    assert hangs.ended and len(two.busy) == 1
    assert "did not answer in time" in two.came()[0].how


def test_a_node_that_is_not_like_the_first_is_left_out_with_what_differs():
    driven = Driven(FakeCluster(A, B))
    driven.settle()
    driven.ready(opened("a"), opened("b", "other", toolchain="tongue 2"))
    assert driven.slots.news.get_nowait() == (
        "node host-b is left out, as its results are not comparable: "
        "toolchain is tongue 2, and tongue 1 on host-a"
    )
    driven.ask(*candidates(3))
    assert [s.opening.result().node for s in driven.busy] == ["a"]
    assert driven.alive[-1].without == ("b",), "Ray is told to look elsewhere"
    driven.now += module.POLL
    driven.settle()
    assert len(driven.alive) == 1, "there is room for one"


@pytest.mark.parametrize(
    "there, words",
    [
        (opened("b", "other"), "its Python, its packages or its version"),
        (opened("b", "other", device="X"), "device is X, and None on host-a"),
        (opened("b", "other", driver="2", clocks="3"), "driver is 2"),
    ],
)
def test_what_differs_is_named(there, words):
    assert words in module.unlike(there, opened("a"))


def test_equal_nodes_may_differ_in_clocks():
    assert module.unlike(opened("b", clocks="900 MHz"), opened("a")) == ""


def test_searches_share_a_cluster_and_give_back_what_they_hold_too_much():
    shares = Shares(lambda: 0.0)
    first = Driven(FakeCluster(A, B, shares=shares))
    first.settle()
    first.ready(opened("a"), opened("b"))
    second = Driven(FakeCluster(A, B, shares=shares))
    second.settle()
    assert len(second.alive) == 1
    first.ask(*candidates(2))
    first.now += module.POLL
    first.settle()
    assert len(first.busy) == 2, "what is being evaluated is not given up"
    first.busy[0].answer.set_result(right())
    first.settle()
    assert len(first.alive) == 1
    first.slots.end()
    second.now += module.POLL
    second.settle()
    assert len(second.alive) == 2


def test_nobody_waits_for_a_call_that_was_given_up(two):
    two.ask(*candidates(5))
    before = two.busy
    two.slots.forget(two.call)
    two.settle()
    assert all(slot.ended for slot in before) and not two.busy
    assert len(two.alive) == 2, "others take their places"


def test_long_texts_travel_by_digest_and_are_kept_once(two):
    source = "x" * (INLINE + 1)
    asked = candidates(2, source)
    two.ask(*asked)
    sent = [slot.asked[0] for slot in two.busy]
    assert [unpacked(table, texts) for table, texts, _ in sent] == asked
    assert all(len(table) < INLINE for table, _, _ in sent)
    assert two.cluster.store == [source]


def test_slots_that_never_become_ready_end_the_search_with_the_reason():
    driven = Driven(FakeCluster(A), 1)
    driven.settle()
    with pytest.raises(KernelError, match="No module named"):
        for _ in range(module.STARTS):
            driven.alive[0].opening.set_exception(Gone("No module named 'search'"))
            driven.settle()


def test_a_cluster_without_room_is_not_waited_for_for_ever():
    driven = Driven(FakeCluster(A), 1)
    driven.settle()
    driven.now = module.PATIENCE + 1
    with pytest.raises(KernelError, match="none was free for 600 s"):
        driven.settle()


def test_what_a_slot_cannot_set_up_is_the_search_s_error():
    driven = Driven(FakeCluster(A))
    driven.settle()
    with pytest.raises(KernelError, match="no compiler"):
        driven.ready(KernelError("no compiler"))


def test_another_error_of_a_slot_is_not_taken_for_a_loss(two):
    two.ask(*candidates(1))
    two.busy[0].answer.set_exception(TypeError("a fault of ours"))
    with pytest.raises(TypeError, match="ours"):
        two.settle()
