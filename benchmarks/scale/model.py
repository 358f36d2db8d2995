"""The simulation: searches propose, dispatch and store candidates, which nodes evaluate."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from benchmarks.scale.cores import Cores
from benchmarks.scale.nodes import Events, Node, NodeSort, Slot, Task

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # Wait of a candidate that was lost, in seconds (slots.py).


@dataclass(frozen=True, slots=True)
class Times:
    """Times in seconds of a core alone. The times of a candidate are drawn from the samples."""

    stages: Sequence[tuple[tuple[str, float], ...]]  # Stages of candidates, by name.
    # Until the proposer has one candidate, from the seconds of whole generations.
    asked: Sequence[float]
    opened: float = 0.0  # Time of the search's process at the start of a generation.
    told: float = 0.0  # Time of the search's process for an outcome that is stored and told.
    remote: float = 0.0  # Time to a slot of a cluster and back.
    shared: float = 0.0  # Time of a shared store's server for an evaluation.
    answer: float = 0.0  # Time of a model until it answers. 0: no model is used.


@dataclass(frozen=True, slots=True)
class SearchSort:
    """The properties of a search.

    first: candidates of the first generation.
    batch: candidates of the others, or with a model the requests in flight.
    ahead: whether candidates are evaluated while their generation is proposed.
    """

    evaluations: int
    batch: int = 8
    first: int = 4
    ahead: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """The subject of a simulation. Without a cluster, the one search shares the cores of the one
    node.

    store_cores: of a shared store's server. 0: each search has its own store.
    """

    times: Times
    search: SearchSort
    node: NodeSort
    searches: int = 1
    nodes: int = 1
    cluster: bool = True
    store_cores: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a case.

    Times are in seconds. Shares are of the time from the first candidate that is dispatched to the
    last answer.
    """

    seconds: float
    evaluations: int
    handed: int  # Dispatched candidates. Lost ones count each time.
    throughput: float  # Evaluations per second.
    busy: float  # Share of the time in which slots have a candidate.
    measuring: float  # Share of the time in which devices measure. 0 without devices.
    waited: float  # Mean time of a candidate from its proposal until a slot has it, in seconds.
    held: float  # Mean time that a slot has a candidate, in seconds.
    losses: int  # Candidates that were lost.

    def cost(self, case: Case, core_hour: float, device_hour: float) -> float:
        """Returns the cost of one kernel: all slots' cores, a core of each search, and all devices
        for its duration."""
        cores = case.nodes * case.node.slots + case.searches
        devices = case.nodes * case.node.devices
        each = self.seconds / 3600 / case.searches
        return each * (cores * core_hour + devices * device_hour)


@dataclass(slots=True, eq=False)
class _Search:
    """A search in progress."""

    number: int
    sort: SearchSort
    cores: Cores  # The cores of its own process.
    random: random.Random
    inbox: simpy.Store  # (slot, task) that were answered.
    todo: deque[Task] = field(default_factory=deque)
    proposed: dict[int, float] = field(default_factory=dict)  # The time by the identity of a task.
    running: int = 0  # Slots that have a task of it.
    told: int = 0


class Simulation:
    """A case in progress."""

    def __init__(self, case: Case):
        self.case = case
        self.env = simpy.Environment()
        self.random = random.Random(case.seed)
        self.handed = self.lost_count = 0
        self.waited = 0.0
        self.first, self.last = float("inf"), 0.0
        self.nodes = [
            Node(self.env, case.node, self, random.Random(f"{case.seed}/node/{n}"))
            for n in range(case.nodes)
        ]
        self.waiting: dict[int, _Search] = {}  # Searches with tasks to dispatch, by number.
        self.idle = deque(slot for node in self.nodes for slot in node.slots)
        self.store = Cores(self.env, case.store_cores) if case.store_cores else None
        self.searches = [self._search(number) for number in range(case.searches)]

    def run(self) -> Found:
        """Runs until all searches have ended."""
        done = [self.env.process(self._life(search)) for search in self.searches]
        self.env.run(self.env.all_of(done))
        span = self.last - self.first
        slots = [slot for node in self.nodes for slot in node.slots]
        busy = sum(slot.busy for slot in slots)
        devices = sum(node.sort.devices for node in self.nodes)
        measuring = sum(node.alone_for for node in self.nodes)
        evaluations = sum(search.told for search in self.searches)
        return Found(
            seconds=span,
            evaluations=evaluations,
            handed=self.handed,
            throughput=evaluations / span,
            busy=busy / span / len(slots),
            measuring=measuring / span / devices if devices else 0.0,
            waited=self.waited / self.handed,
            held=busy / self.handed,
            losses=self.lost_count,
        )

    def _search(self, number: int) -> _Search:
        own = self.nodes[0].cores if not self.case.cluster else Cores(self.env, 1)
        drawn = random.Random(f"{self.case.seed}/search/{number}")
        return _Search(number, self.case.search, own, drawn, simpy.Store(self.env))

    # Events of nodes; see `nodes.Dispatcher`.

    def answered(self, slot: Slot, task: Task) -> None:
        """Receives a task that a slot has evaluated."""
        self.last = self.env.now
        search = task.search
        search.inbox.put((slot, task))
        if self.case.cluster:  # A separate thread dispatches.
            search.running -= 1
            self.idle.append(slot)
            self._hand_out()

    def lost(self, slot: Slot, task: Task | None) -> None:
        """Dispatches a lost task again, with a delay if it was lost before."""
        if task is None:
            self.idle.remove(slot)
            return
        self.lost_count += 1
        task.losses += 1
        task.search.running -= 1
        wait = 0.0
        if task.losses > 1:
            wait = min(FIRST_WAIT * 2.0 ** (task.losses - 2), LONGEST_WAIT)
        self.env.process(self._again(task, wait))

    def ready(self, slot: Slot) -> None:
        """Receives a slot of a new node without a task."""
        self.idle.append(slot)
        self._hand_out()

    def _again(self, task: Task, wait: float) -> Events:
        yield self.env.timeout(wait)
        self._propose(task, first=True)
        self._hand_out()

    # Dispatching.

    def _propose(self, task: Task, first: bool = False) -> None:
        search = task.search
        search.proposed[id(task)] = self.env.now
        if first:
            search.todo.appendleft(task)
        else:
            search.todo.append(task)
        self.waiting[search.number] = search

    def _hand_out(self) -> None:
        """Gives each idle slot a task of the search with the fewest slots."""
        while self.idle and self.waiting:
            self._give(min(self.waiting.values(), key=lambda s: (s.running, s.number)))

    def _give(self, search: _Search) -> None:
        slot, task = self.idle.popleft(), search.todo.popleft()
        if not search.todo:
            del self.waiting[search.number]
        search.running += 1
        self.handed += 1
        self.first = min(self.first, self.env.now)
        self.waited += self.env.now - search.proposed.pop(id(task))
        slot.give(task, self.env)

    def _task(self, search: _Search) -> Task:
        times = self.case.times
        stages = search.random.choice(times.stages)
        if self.case.cluster and times.remote:
            stages = (("remote", times.remote), *stages)
        if not self.case.node.devices:  # All its slots are alike.
            stages = (("all", sum(seconds for _, seconds in stages)),)
        return Task(search, stages)

    # The life of a search.

    def _life(self, search: _Search) -> Events:
        if self.case.times.answer:
            yield from self._flow(search)
            return
        generation = 0
        while search.told < search.sort.evaluations:
            left = search.sort.evaluations - search.told
            count = min(search.sort.batch if generation else search.sort.first, left)
            tasks = yield from self._asked(search, count, generation)
            yield from self._evaluated(search, tasks, count)
            generation += 1

    def _asked(self, search: _Search, count: int, generation: int) -> Events:
        """Proposes a generation. Returns its tasks that were not dispatched meanwhile."""
        times, rest = self.case.times, []
        each = search.random.choice(times.asked)
        for _ in range(count):
            if generation:
                yield search.cores.work(each, urgent=True)
            task = self._task(search)
            if generation and search.sort.ahead and (self.case.cluster or self.idle):
                self._propose(task)
                self._hand_out()
            else:
                rest.append(task)
        if times.opened:
            yield search.cores.work(times.opened, urgent=True)
        return rest

    def _evaluated(self, search: _Search, tasks: Sequence[Task], count: int) -> Events:
        """Dispatches the rest of a generation, and receives all its results."""
        for task in tasks:
            self._propose(task)
        self._hand_out()
        while count:
            answers = [(yield search.inbox.get()), *search.inbox.items]
            search.inbox.items.clear()
            if not self.case.cluster:  # The search dispatches itself, before it stores.
                for slot, _ in answers:
                    search.running -= 1
                    self.idle.append(slot)
                self._hand_out()
            for _ in answers:
                yield from self._told(search)
            count -= len(answers)

    def _told(self, search: _Search) -> Events:
        if self.store is not None:
            yield self.store.work(self.case.times.shared)
        yield search.cores.work(self.case.times.told, urgent=True)
        search.told += 1

    def _flow(self, search: _Search) -> Events:
        """Keeps requests to a model in flight. Each answer is evaluated, and another request is
        sent."""
        asked = simpy.Container(self.env, init=search.sort.evaluations)
        for _ in range(search.sort.batch):
            self.env.process(self._requests(search, asked))
        while search.told < search.sort.evaluations:
            slot, _ = yield search.inbox.get()
            if not self.case.cluster:
                search.running -= 1
                self.idle.append(slot)
                self._hand_out()
            yield from self._told(search)

    def _requests(self, search: _Search, left: simpy.Container) -> Events:
        while left.level >= 1:
            yield left.get(1)
            mean = self.case.times.answer
            yield self.env.timeout(search.random.expovariate(1 / mean))
            yield search.cores.work(search.random.choice(self.case.times.asked), urgent=True)
            self._propose(self._task(search))
            self._hand_out()


def simulated(case: Case) -> Found:
    """Returns the result of a case. It is deterministic."""
    return Simulation(case).run()


def plain(found: Found) -> dict[str, Any]:
    """Returns the result as plain, rounded data."""
    return {name: round(getattr(found, name), 5) for name in Found.__slots__}
