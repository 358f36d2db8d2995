"""The space of a sweep: all decisions that the verbs allow for a schedule, with their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ir.edits.edits import Edit, neighbours
from ir.lower.verb_table import RANK, canonical
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.workload import Sizes

FIRST = "first"  # a pseudo verb: the first of the placed loops

Setting = Mapping[str, int]  # the position of a value, by parameter


@dataclass(frozen=True, slots=True)
class Tunable:
    """The decision of one verb on one subject."""

    verb: str
    subject: str
    # None means no decision. Numbers ascend.
    values: tuple[Decision | None, ...]

    @property
    def name(self) -> str:
        """The decision without its options."""
        return f"{self.verb}({self.subject})"

    @property
    def ordinal(self) -> bool:
        """Whether the values differ in one number only, so that neighbours are similar."""
        made = [dict(v.options) for v in self.values if v is not None]
        differing = {
            name for one in made for name in one if any(o.get(name) != one[name] for o in made)
        }
        return len(differing) == 1 and all(
            isinstance(o.get(n), int) for o in made for n in differing
        )


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The settings around a schedule."""

    base: Schedule  # the schedule that settings change
    parameters: Mapping[str, Tunable] = field(default_factory=dict)  # by name
    # By parameter: the subjects whose decisions change together with it.
    alike: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(
        spec: Spec,
        base: Schedule,
        machine: Machine,
        sizes: Sizes,
        seen: Sequence[Schedule] = (),
    ) -> SearchSpace:
        """The space of all single changes of `base`, with all values in the schedules `seen`."""
        found: dict[tuple[str, str], dict[Decision | None, None]] = {}
        alike: dict[str, tuple[str, ...]] = {}
        for edit in neighbours(spec, base, machine, sizes):
            decision = edit.decision
            if edit.new == edit.old:  # a change of the first loop; see below
                continue
            alike[f"{decision.verb}({decision.subject})"] = edit.alike
            values = found.setdefault((decision.verb, decision.subject), {})
            values[base.find(decision.verb, decision.subject)] = values[edit.new] = None
        tables = [_table(s) for s in (base, *seen)]
        for key in [key for table in tables for key in table]:
            found.setdefault(key, {})
        for key, values in found.items():
            values.update((table.get(key), None) for table in tables)
        loops = found.setdefault((FIRST, ""), {})
        loops.update((Decision(FIRST, d.subject), None) for d in base.of("place"))
        made = (
            Tunable(*key, tuple(sorted(found[key], key=partial(_order, key[0]))))
            for key in sorted(found, key=lambda key: (RANK.get(key[0], len(RANK)), key[1]))
            if len(found[key]) > 1
        )
        return SearchSpace(base, {p.name: p for p in made}, alike)

    def setting(self, schedule: Schedule) -> Setting:
        """The setting of a schedule, which is `base` or one of `seen`."""
        table = _table(schedule)
        return {
            p.name: p.values.index(table.get((p.verb, p.subject))) for p in self.parameters.values()
        }

    def schedule(self, setting: Setting) -> Schedule:
        """`base` with the values of a setting. The schedule may be illegal."""
        schedule = self.base
        for name, number in setting.items():
            parameter = self.parameters[name]
            old = _table(schedule).get((parameter.verb, parameter.subject))
            new = parameter.values[number]
            if old == new:
                continue
            if parameter.verb != FIRST:
                schedule = Edit(old, new, self.alike.get(name, ())).apply(schedule)
            elif new is not None:
                schedule = _transposed(schedule, new.subject)
        return schedule


def _table(schedule: Schedule) -> dict[tuple[str, str], Decision]:
    """The decisions by verb and subject, with the first placed loop as a further one."""
    found = {(d.verb, d.subject): d for d in schedule.decisions}
    for place in schedule.of("place")[:1]:
        found[FIRST, ""] = Decision(FIRST, place.subject)
    return found


def _transposed(schedule: Schedule, loop: str) -> Schedule:
    """The schedule with a loop placed first, if it places that loop."""
    front: Iterable[Decision] = [d for d in schedule.of("place") if d.subject == loop]
    rest = (d for d in schedule.decisions if d not in front)
    return canonical(Schedule(schedule.kernel, (*front, *rest)))


def _order(verb: str, value: Decision | None) -> tuple[object, ...]:
    """A sort key: by numbers, then by text. No decision comes first; for a tile it comes last,
    because it means the whole extent."""
    if value is None:
        return (2 if verb == "tile" else 0,)
    numbers = tuple(v for _, v in value.options if isinstance(v, int))
    return (1, numbers, str(value))
