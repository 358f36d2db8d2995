"""Caches of values that belong to a candidate's texts.

A process parses each text once, and lowers each schedule once at each shape. Candidates are stored
and compared as texts, but code works on values. Code that makes a schedule's text puts its value
into the cache; other code looks the value up by text.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ir.errors import KernelError
from ir.lower.lower import lower, settled
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import Sizes
from search.core.candidate import Candidate

SCHEDULES = 4096  # entries; schedules are small
SPECS = 256
NESTS = 512

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """A thread-safe LRU cache. Unlike `lru_cache`, it accepts values that were made elsewhere."""

    def __init__(self, most: int):
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()  # operators that ask models run in threads

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key. Calls `make` if the key is not in the cache."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        found = make()  # outside the lock, because it may ask for other values
        self.put(key, found)
        return found

    def put(self, key: Hashable, value: Value) -> None:
        """Adds a value that was made elsewhere. An existing value stays."""
        with self._lock:
            self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def clear(self) -> None:
        """Removes all entries."""
        with self._lock:
            self._values.clear()


parsed_schedules: Remembered[Schedule] = Remembered(SCHEDULES)
parsed_specs: Remembered[Spec] = Remembered(SPECS)
# The key contains the machine's id, so each entry holds the machine to keep that id valid.
lowered_nests: Remembered[tuple[Machine, LoopNest | KernelError]] = Remembered(NESTS)
settled_schedules: Remembered[tuple[Machine, Schedule]] = Remembered(SCHEDULES)


def spec_of(text: str) -> Spec:
    """The parsed spec of a text. Raises KernelError if it does not parse."""
    return parsed_specs.get(text, lambda: parse_spec(text))


def schedule_of(text: str) -> Schedule:
    """The parsed schedule of a text. Raises KernelError if it does not parse."""
    return parsed_schedules.get(text, lambda: parse_schedule(text))


def schedule_text(schedule: Schedule) -> str:
    """The text of a schedule. Also caches the value, so that `schedule_of` need not parse it."""
    text = str(schedule)
    parsed_schedules.put(text, schedule)
    return text


def variant_text(spec: Spec) -> str:
    """The text of a spec. Also caches the value, so that `spec_of` need not parse it."""
    text = spec_text(spec)
    parsed_specs.put(text, spec)
    return text


def nest_of(candidate: Candidate, machine: Machine, sizes: Sizes) -> LoopNest:
    """The loop nest of a candidate at some sizes. Raises KernelError if it does not lower there."""
    return lowered(candidate.variant, candidate.schedule, machine, sizes)


def lowered(variant: str, schedule: str, machine: Machine, sizes: Sizes) -> LoopNest:
    """The same as `ir.lower`, for texts and with a cache."""
    key = (variant, schedule, tuple(sizes.items()), id(machine))
    _, found = lowered_nests.get(
        key, lambda: (machine, _lowered(variant, schedule, machine, sizes))
    )
    if isinstance(found, KernelError):
        raise found.with_traceback(None)
    return found


def settled_schedule(variant: str, schedule: Schedule, machine: Machine, sizes: Sizes) -> Schedule:
    """The schedule without decisions that have no effect; unchanged if it does not lower."""
    key = (variant, schedule_text(schedule), tuple(sizes.items()), id(machine))
    _, found = settled_schedules.get(
        key, lambda: (machine, _settled(variant, schedule, machine, sizes))
    )
    return schedule if found == schedule else found


def _settled(variant: str, schedule: Schedule, machine: Machine, sizes: Sizes) -> Schedule:
    """Computes `settled_schedule`, and caches the nest for `lowered`."""
    found: LoopNest | KernelError
    try:
        found = settled(spec_of(variant), schedule, machine, sizes)
        schedule = found.schedule
    except KernelError as error:
        found = error
    key = (variant, schedule_text(schedule), tuple(sizes.items()), id(machine))
    lowered_nests.put(key, (machine, found))
    return schedule


def fits_at(variant: str, schedule: str, machine: Machine, sizes: Sizes) -> bool:
    """Whether a schedule lowers at some sizes."""
    try:
        lowered(variant, schedule, machine, sizes)
    except KernelError:
        return False
    return True


def _lowered(variant: str, schedule: str, machine: Machine, sizes: Sizes) -> LoopNest | KernelError:
    try:
        return lower(spec_of(variant), schedule_of(schedule), machine, sizes)
    except KernelError as error:
        return error


def forget() -> None:
    """Clears all caches, as in a new process."""
    for each in (parsed_schedules, parsed_specs, lowered_nests, settled_schedules):
        each.clear()
