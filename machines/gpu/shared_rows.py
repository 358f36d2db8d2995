"""Decisions on tiles in shared memory: how their rows lie, and how results pass through it."""

from __future__ import annotations

from collections.abc import Iterator

from ir.errors import KernelError
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Read, Spec
from machines.gpu.matmuls import instructions

PANELS = (32, 64, 128)  # bytes: what engines and matrix instructions read
STEP, MOST = 16, 128  # bytes of a padding: what a thread moves at once, and all banks
PROPOSED = {"swizzle": PANELS, "pad": (16, 32)}
COLUMNS = (32, 64, 128)  # of a tile that edits let pass through shared memory at a time
Change = tuple[Decision | None, Decision | None]


def check_decision(decision: Decision) -> None:
    """KernelError where panels or paddings have bytes that nothing reads."""
    if decision.verb not in PROPOSED:
        return
    count = decision.number("bytes")
    if decision.verb == "swizzle" and count not in PANELS:
        allowed = ", ".join(map(str, PANELS))
    elif decision.verb == "pad" and (count % STEP or count > MOST):
        allowed = f"multiples of {STEP} up to {MOST}"
    else:
        return
    what = "panels" if decision.verb == "swizzle" else "paddings"
    raise KernelError(
        f"there are no {what} of {count} bytes",
        place=decision.place,
        allowed=allowed,
        hint=f"drop {decision}",
    )


def epilogue_changes(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Change]:
    """Every single change of `epilogue` of what a kernel returns, in a fixed order."""
    for tensor in (t.name for t in spec.outputs) if machine.renders("epilogue") else ():
        old, bulk = (schedule.find(verb, tensor) for verb in ("epilogue", "copy"))
        ways: list[tuple[tuple[str, str | int], ...]] = [] if bulk else [(("by", "registers"),)]
        ways.append((("by", "shared"),))
        columns = _columns(spec, schedule, tensor)
        ways += [(("by", "shared"), ("columns", n)) for n in COLUMNS if columns > n]
        for options in ways:
            new = Decision("epilogue", tensor, options)
            if new != old:
                yield old, new
        if old:
            yield old, None


def _columns(spec: Spec, schedule: Schedule, tensor: str) -> int:
    """Elements of a tensor's tile along its last index; 0 where it has no tile."""
    last = next((e.indices[-1:] for e in spec.equations if e.target == tensor), ())
    tile = schedule.find("tile", last[0]) if last else None
    return tile.number("size") if tile else 0


def changes(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Change]:
    """Every single change of `swizzle` and `pad` of what matmuls read, in a fixed order. The one
    takes the place of the other."""
    padded = not any(one.b.shared for one in instructions(machine))  # what reads panels alone
    verbs = [v for v in PROPOSED if machine.renders(v) and (padded or v != "pad")]
    computed = {d.subject for d in schedule.of("compute") if d.option("unit") == "matrix"}
    made = {e.target for e in spec.equations} - {d.subject for d in schedule.of("kernel")}
    reads = [n for e in spec.equations if e.target in computed for n in e.value.walk()]
    for tensor in dict.fromkeys(n.tensor for n in reads if isinstance(n, Read)):
        if tensor in made:  # never loaded
            continue
        old = {verb: schedule.find(verb, tensor) for verb in verbs}
        for verb in verbs:
            if any(found for other, found in old.items() if other != verb):
                continue
            for count in PROPOSED[verb]:
                new = Decision(verb, tensor, (("bytes", count),))
                if new != old[verb]:
                    yield old[verb], new
            if old[verb]:
                yield old[verb], None
