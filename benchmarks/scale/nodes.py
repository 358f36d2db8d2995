"""Nodes and their slots: evaluation, losses, and the use of devices."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Protocol

import simpy

from benchmarks.scale.cores import Cores

Events = Generator[simpy.Event, Any, Any]
CHECK, TIME = "check", "time"  # Stages that use a device.


@dataclass(frozen=True, slots=True)
class NodeSort:
    """The properties of a node.

    slots: each takes one candidate at a time.
    cores: shared by the slots.
    devices: measure times, one at a time on a node. None if times need no device.
    lives: mean seconds until the node is lost. None: never.
    repair: seconds until a replacement with ready slots.
    """

    slots: int
    cores: int
    devices: int = 0
    speeds: tuple[float, ...] = (1.0,)
    lives: float | None = None
    repair: float = 0.0


@dataclass(slots=True, eq=False)
class Task:
    """A candidate: its search, and the seconds of each stage on a core alone."""

    search: Any
    stages: tuple[tuple[str, float], ...]
    losses: int = 0


class Dispatcher(Protocol):
    """Dispatches tasks to slots."""

    def answered(self, slot: Slot, task: Task) -> None:
        """Receives a task that a slot has evaluated."""

    def lost(self, slot: Slot, task: Task | None) -> None:
        """Receives a slot that was lost, with its task if it had one."""

    def ready(self, slot: Slot) -> None:
        """Receives a slot that can take a task."""


class Turns:
    """Shares the device of a node: many users at once, or one exclusively
    (search/evaluator/turns.py)."""

    def __init__(self, env: simpy.Environment):
        self._env = env
        self._door = simpy.Resource(env)
        self._users = 0
        self._empty = env.event()
        self.alone_for = 0.0  # Seconds.

    def together(self, work: float, cores: Cores) -> Events:
        """Works together with others."""
        with self._door.request() as entry:
            yield entry
            self._users += 1
        yield cores.work(work)
        self._users -= 1
        if not self._users:
            self._empty.succeed()
            self._empty = self._env.event()

    def alone(self, work: float, cores: Cores) -> Events:
        """Works while no other process uses the device."""
        with self._door.request() as entry:
            yield entry
            while self._users:
                yield self._empty
            began = self._env.now
            yield cores.work(work)
            self.alone_for += self._env.now - began


@dataclass(slots=True, eq=False)
class Slot:
    """A place for one candidate at a time."""

    node: Node
    task: Task | None = None
    since: float = 0.0  # When it received its task.
    busy: float = 0.0  # Seconds with a task, of tasks that ended.
    process: simpy.Process | None = None

    def give(self, task: Task, env: simpy.Environment) -> None:
        """Starts a task."""
        assert self.task is None, "a slot has one task at a time"
        self.task, self.since = task, env.now
        self.process = env.process(self._evaluate(task, env))

    def _evaluate(self, task: Task, env: simpy.Environment) -> Events:
        node = self.node
        try:
            for stage, seconds in task.stages:
                if node.turns is None or stage not in (CHECK, TIME):
                    yield node.cores.work(seconds)
                elif stage == CHECK:
                    yield from node.turns.together(seconds, node.cores)
                else:
                    yield from node.turns.alone(seconds, node.cores)
        except simpy.Interrupt:  # The node is lost.
            return
        self.free(env)
        node.dispatcher.answered(self, task)

    def free(self, env: simpy.Environment) -> None:
        """Releases its task."""
        self.task, self.process = None, None
        self.busy += env.now - self.since


@dataclass(slots=True, eq=False)
class Node:
    """A node with its slots. A lost node is replaced by one with the same properties."""

    env: simpy.Environment
    sort: NodeSort
    dispatcher: Dispatcher
    random: random.Random
    slots: list[Slot] = field(default_factory=list)
    cores: Cores = field(init=False)
    turns: Turns | None = field(init=False, default=None)
    measured: float = 0.0  # Seconds of exclusive use of its device, of nodes that were lost.
    losses: int = 0

    def __post_init__(self) -> None:
        self.slots = [Slot(self) for _ in range(self.sort.slots)]
        self._begin()
        if self.sort.lives is not None:
            self.env.process(self._lose(self.sort.lives))

    @property
    def alone_for(self) -> float:
        """Seconds of exclusive use of its device."""
        return self.measured + (self.turns.alone_for if self.turns else 0.0)

    def _begin(self) -> None:
        self.cores = Cores(self.env, self.sort.cores, self.sort.speeds)
        self.turns = Turns(self.env) if self.sort.devices else None

    def _lose(self, lives: float) -> Events:
        while True:
            yield self.env.timeout(self.random.expovariate(1 / lives))
            self.losses += 1
            self.measured = self.alone_for
            for slot in self.slots:
                task, process = slot.task, slot.process
                if process is not None:
                    process.interrupt()
                    slot.free(self.env)
                self.dispatcher.lost(slot, task)
            self._begin()
            yield self.env.timeout(self.sort.repair)
            for slot in self.slots:
                self.dispatcher.ready(slot)
