"""The values of a candidate's texts: each text is parsed, and each schedule lowered, once a process.

A candidate is stored and compared as texts, and worked on as values. What made the text of a
schedule had it as a value, and hands it over here; the others ask for it by its text.
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

SCHEDULES = 4096  # that are kept; they are small
SPECS = 256
NESTS = 512

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """The latest values by key, for any thread: unlike `lru_cache`, it takes values from others."""

    def __init__(self, most: int):
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()  # operators that ask models run in threads

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key; `make` is called where it is not known."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        found = make()  # outside the lock: it may ask for other values
        self.put(key, found)
        return found

    def put(self, key: Hashable, value: Value) -> None:
        """A value that somebody else has made; one that is there stays."""
        with self._lock:
            self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._values.clear()


parsed_schedules: Remembered[Schedule] = Remembered(SCHEDULES)
parsed_specs: Remembered[Spec] = Remembered(SPECS)
# With the machine, whose identity is part of the key: it lives as long as the entry.
lowered_nests: Remembered[tuple[Machine, LoopNest | KernelError]] = Remembered(NESTS)
settled_schedules: Remembered[tuple[Machine, Schedule]] = Remembered(SCHEDULES)


def spec_of(text: str) -> Spec:
    """The spec that a text says; KernelError where it says none."""
    return parsed_specs.get(text, lambda: parse_spec(text))


def schedule_of(text: str) -> Schedule:
    """The schedule that a text says; KernelError where it says none."""
    return parsed_schedules.get(text, lambda: parse_schedule(text))


def schedule_text(schedule: Schedule) -> str:
    """The text of a schedule, which `schedule_of` then need not parse."""
    text = str(schedule)
    parsed_schedules.put(text, schedule)
    return text


def variant_text(spec: Spec) -> str:
    """The text of a spec, which `spec_of` then need not parse."""
    text = spec_text(spec)
    parsed_specs.put(text, spec)
    return text


def nest_of(candidate: Candidate, machine: Machine, sizes: Sizes) -> LoopNest:
    """The loop nest of a candidate at some sizes; KernelError where it does not lower there."""
    return lowered(candidate.variant, candidate.schedule, machine, sizes)


def lowered(variant: str, schedule: str, machine: Machine, sizes: Sizes) -> LoopNest:
    """As `ir.lower`, of texts."""
    key = (variant, schedule, tuple(sizes.items()), id(machine))
    _, found = lowered_nests.get(
        key, lambda: (machine, _lowered(variant, schedule, machine, sizes))
    )
    if isinstance(found, KernelError):
        raise found.with_traceback(None)
    return found


def settled_schedule(variant: str, schedule: Schedule, machine: Machine, sizes: Sizes) -> Schedule:
    """A schedule without its decisions that change nothing; itself where it does not lower."""
    key = (variant, schedule_text(schedule), tuple(sizes.items()), id(machine))
    _, found = settled_schedules.get(
        key, lambda: (machine, _settled(variant, schedule, machine, sizes))
    )
    return schedule if found == schedule else found


def _settled(variant: str, schedule: Schedule, machine: Machine, sizes: Sizes) -> Schedule:
    """The same, computed; what was lowered for it is remembered as `lowered` would."""
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
    """Whether a schedule lowers at these sizes."""
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
    """Forgets all values, as a new process has none."""
    for each in (parsed_schedules, parsed_specs, lowered_nests, settled_schedules):
        each.clear()
