"""Decisions on shared memory: swizzles and padding of rows, and epilogues through shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from ir.errors import KernelError
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Read, Spec
from machines.gpu.matmuls import instructions

PANELS = (32, 64, 128)  # bytes of a swizzled panel: what TMA and matrix instructions read
STEP, MOST = 16, 128  # bytes of a padding: one vector access, and all banks
PROPOSED = {"swizzle": PANELS, "pad": (16, 32)}
# Columns of a tile that pass through shared memory at a time, as edits propose
COLUMNS = (32, 64, 128)
Change = tuple[Decision | None, Decision | None]


def check_decision(decision: Decision) -> None:
    """Raises KernelError where a swizzle or a padding has an unsupported number of bytes."""
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
    """Yields every single change of `epilogue` of the outputs, in a fixed order."""
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
    """Elements of a tensor's tile along its last index; 0 where that is not tiled."""
    last = next((e.indices[-1:] for e in spec.equations if e.target == tensor), ())
    tile = schedule.find("tile", last[0]) if last else None
    return tile.number("size") if tile else 0


def changes(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Change]:
    """Yields every single change of `swizzle` and `pad` of matmul operands, in a fixed order. A
    tensor has at most one of the two."""
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
