"""The slots of a search on a cluster: their number, their candidates, and repetitions after losses.

A state machine in one thread. Other threads post messages to it, and each turn takes one.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.evaluator.cluster import CPU, Cluster, Node, RemoteSlot, capacity, fitting
from search.evaluator.local import TRIES
from search.evaluator.slot import Opened, outcome, packed
from search.loop.hooks import Unavailable

LOSSES = 16  # losses of one candidate, after which the search ends
LONGEST_WAIT = 60.0  # longest wait in seconds before a lost candidate is tried again
STARTS = 8  # consecutive slots that are lost before they are ready, after which the search ends
POLL = 2.0  # seconds between updates of the nodes and of this search's share
PATIENCE = 600.0  # seconds without a slot while candidates wait, after which the search ends
GRACE = 60.0  # seconds beyond a candidate's limits, after which its slot counts as lost
KEPT = 256  # texts of candidates in the object store


@dataclass(frozen=True, slots=True)
class Loss:
    """A candidate whose slot was lost."""

    candidate: Candidate
    how: str


# The messages to a call: an outcome with its position, a loss, or an error; None at the end.
Answer = tuple[int, Evaluated] | Loss | BaseException | None
Call = queue.SimpleQueue[Answer]


@dataclass(slots=True, eq=False)
class Task:
    """A candidate of a call."""

    call: Call
    position: int
    candidate: Candidate
    losses: int = 0
    lost_on: set[str] = field(default_factory=set)  # nodes
    since: float = float("-inf")  # time from which it may be handed out


@dataclass(slots=True, eq=False)
class _Held:
    """A slot, its properties once it is ready, and its task."""

    slot: RemoteSlot
    opened: Opened | None = None
    task: Task | None = None
    until: float = 0.0  # time after which it counts as lost

    @property
    def node(self) -> str:
        """The name of its node; empty while unknown."""
        return self.opened.node if self.opened else ""


class Slots:
    """The slots of one search.

    benches: from `Cluster.kept`. resources: of one slot. most: the largest number of slots; None:
    as many as fit.
    """

    def __init__(
        self,
        cluster: Cluster,
        benches: Any,
        resources: Mapping[str, float],
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.cluster = cluster
        self.resources = dict(resources)
        self.name = uuid.uuid4().hex
        self.pool = " ".join(sorted(name for name in resources if name != CPU))
        self.first: Opened | None = None  # the others must have the same identity
        self.nodes: dict[str, Any] = {}  # nodes that were used, by host, as plain data
        self.news: queue.SimpleQueue[str] = queue.SimpleQueue()  # lines for a person
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._benches, self._most, self._clock = benches, most, clock
        self._held: list[_Held] = []
        self._todo: list[Task] = []
        self._ahead: dict[str, Task] = {}  # by candidate key, before a call has asked for it
        self._refused: dict[str, str] = {}  # refused nodes by name, with the reason
        self._failed = 0  # consecutive slots that were lost before they were ready
        self._share = 0
        self._asking: Future[int] | None = None
        self._looked = float("-inf")
        self._served = clock()  # last time with a slot, or without work
        self._texts: dict[str, Any] = {}

    def turn(self, seconds: float) -> None:
        """Waits for a message, at most `seconds`, and acts on the new state."""
        try:
            self.inbox.get(timeout=seconds)()
        except queue.Empty:
            pass
        now = self._clock()
        if now - self._looked >= POLL:
            self._looked = now
            self._look(now)
        self._resize()
        self._hand_out(now)

    def begin(self, asked: Candidate) -> None:
        """Begins a candidate that the next call will ask for."""
        task = Task(queue.SimpleQueue(), 0, asked)
        self._ahead[asked.key] = task
        self._todo.append(task)

    def add(self, tasks: Iterable[Task]) -> None:
        """Adds the tasks of a call. Cancels candidates that were begun but are not among them."""
        begun, self._ahead = self._ahead, {}
        for task in tasks:
            early = begun.pop(task.candidate.key, None)
            if early is None:
                self._todo.append(task)
                continue
            came, early.call, early.position = early.call, task.call, task.position
            while not came.empty():
                answer = came.get()
                task.call.put((task.position, answer[1]) if isinstance(answer, tuple) else answer)
        for left in begun.values():
            self.forget(left.call)

    def forget(self, call: Call) -> None:
        """Cancels the tasks of a call."""
        self._todo = [task for task in self._todo if task.call is not call]
        for held in [h for h in self._held if h.task and h.task.call is call]:
            self._end(held)

    def end(self) -> None:
        """Ends all slots."""
        for held in list(self._held):
            self._end(held)
        self.cluster.leave(self.pool, self.name)

    def fits(self) -> int:
        """The number of slots of this search if it were alone."""
        return fitting(self._usable(), self.resources, self._most)

    def _usable(self) -> list[Node]:
        return [node for node in self.cluster.nodes() if node.name not in self._refused]

    def _look(self, now: float) -> None:
        """Requests the share, drops slots that hang, and raises Unavailable if there has been no
        slot for too long."""
        if self._asking is None:
            nodes = self._usable()
            there = capacity(nodes, self.resources)
            wanted = fitting(nodes, self.resources, self._most)
            self._asking = self.cluster.share(self.pool, self.name, wanted, there)
            self._then(self._asking, self._shared)
        for held in [h for h in self._held if h.task and now > h.until]:
            self._lose(held, "it did not answer in time")
        if any(held.opened for held in self._held) or (self.first and not self._todo):
            self._served = now
        elif now - self._served > PATIENCE:
            raise self._nobody(f"none was free for {PATIENCE:g} s")

    def _nobody(self, why: str) -> Unavailable:
        refused = "; ".join(self._refused.values())
        return Unavailable(
            f"no node of the cluster evaluates candidates: {why}",
            where="--cluster",
            hint=f"left out: {refused}" if refused else "`ray status` says what its nodes do",
        )

    def _then(self, future: Future[Any], take: Callable[[Future[Any]], None]) -> None:
        future.add_done_callback(lambda done: self.inbox.put(partial(take, done)))

    def _shared(self, future: Future[int]) -> None:
        self._asking = None
        error = future.exception()
        if error is None:
            self._share = future.result()
        elif not self.cluster.loss(error):  # after a loss the share stays, and is requested again
            raise error

    def _resize(self) -> None:
        """Starts slots, or ends idle ones; those that are not ready end first."""
        idle = sorted((h for h in self._held if not h.task), key=lambda h: h.opened is not None)
        for held in idle[: max(0, len(self._held) - self._share)]:
            self._end(held)
        for _ in range(self._share - len(self._held)):
            held = _Held(self.cluster.slot(self.resources, tuple(self._refused)))
            self._held.append(held)
            self._then(held.slot.open(self._benches), partial(self._ready, held))

    def _ready(self, held: _Held, future: Future[Opened | KernelError]) -> None:
        if held not in self._held:
            return
        if error := future.exception():
            how = self.cluster.loss(error)
            if not how:
                raise error
            self._end(held)
            self._failed += 1
            if self._failed >= STARTS:
                raise self._nobody(how)
            return
        said = future.result()
        if isinstance(said, KernelError):
            raise said
        self._failed = 0
        self.first = self.first or said
        if fault := unlike(said, self.first):
            self._refused[said.node] = f"{said.host}: {fault}"
            self.news.put(
                f"node {said.host} is left out, as its results are not comparable: {fault}"
            )
            self._end(held)
            return
        held.opened = said
        self.nodes[said.node] = {"host": said.host, "backends": said.environment["backends"]}

    def _hand_out(self, now: float) -> None:
        """Gives one candidate to each idle slot, so that none waits in a queue of the cluster."""
        for task in [task for task in self._todo if task.since <= now]:
            held = self._chosen(task)
            if held is None or held.opened is None:
                continue
            self._todo.remove(task)
            held.task = task
            limits = held.opened.environment["limits"][task.candidate.backend]
            held.until = now + TRIES * limits["seconds"] + GRACE
            asked, texts = packed(task.candidate)
            kept = [self._kept(digest, text) for digest, text in texts.items()]
            self._then(held.slot.evaluate(asked, kept), partial(self._answered, held, task))

    def _chosen(self, task: Task) -> _Held | None:
        """An idle slot, if possible on a node that has not lost the task."""
        idle = [h for h in self._held if h.opened and not h.task]
        elsewhere = [h for h in idle if h.node not in task.lost_on]
        # a lost task gets the newest slot, because old nodes are the next to be replaced
        if elsewhere:
            return elsewhere[-1 if task.losses else 0]
        busy = [h for h in self._held if h.opened and h.node not in task.lost_on]
        return idle[0] if idle and not busy else None

    def _kept(self, digest: str, text: str) -> Any:
        """A text in the object store, which is put there once."""
        if digest not in self._texts:
            while len(self._texts) >= KEPT:
                del self._texts[next(iter(self._texts))]
            self._texts[digest] = self.cluster.kept(text)
        return self._texts[digest]

    def _answered(self, held: _Held, task: Task, future: Future[str]) -> None:
        if held not in self._held or held.task is not task:
            return
        if error := future.exception():
            how = self.cluster.loss(error)
            if not how:
                raise error
            self._lose(held, how)
            return
        held.task = None
        task.call.put((task.position, outcome(future.result())))

    def _lose(self, held: _Held, how: str) -> None:
        """Repeats the task of a lost slot, each time after a longer wait.

        Raises Unavailable after LOSSES losses. An outcome would otherwise depend on losses, and a
        seeded search would not be reproducible.
        """
        task, node = held.task, held.node
        self._end(held)
        assert task is not None, "only a slot that has a candidate loses it"
        task.losses += 1
        task.lost_on.add(node)
        task.call.put(Loss(task.candidate, f"{self.nodes[node]['host']} ({how})"))
        if task.losses >= LOSSES:
            raise Unavailable(
                f"candidate {task.candidate.key} was lost {task.losses} times with the slot that had "
                f"it, the last time on {self.nodes[node]['host']} ({how})",
                where="--cluster",
                hint="see to its nodes",
            )
        if task.losses > 1:
            task.since = self._clock() + min(2.0 ** (task.losses - 2), LONGEST_WAIT)
        self._todo.insert(0, task)

    def _end(self, held: _Held) -> None:
        self._held.remove(held)
        held.slot.end()


def unlike(said: Opened, first: Opened) -> str:
    """Why results of a slot cannot be compared with those of the first slot; empty if they can."""
    if said.contexts == first.contexts:
        return ""
    for name, here in first.environment["backends"].items():
        there: Mapping[str, str] = said.environment["backends"].get(name, {})
        for what in sorted({*here, *there} - {"clocks"}):
            if here.get(what) != there.get(what):
                return f"{what} is {there.get(what)}, and {here.get(what)} on {first.host}"
    return (
        f"its Python, its packages or its version of the distribution are not those of {first.host}"
    )


def tasks(call: Call, candidates: Sequence[Candidate]) -> list[Task]:
    """The tasks of a call."""
    return [Task(call, position, asked) for position, asked in enumerate(candidates)]
