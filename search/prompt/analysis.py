"""The analysis: describes in words what an evaluation's figures say about a kernel, and lists the
figures.

For an edited source only measured figures count, because the nest describes the source before the
edit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ir.machine import Machine
from search.core.evaluation import Evaluation

NEAR = 0.9  # share of the roofline from which on little can be gained
BUSY = 0.7  # busy share of the time from which on an engine bounds the kernel
IDLE = 0.5  # if no engine is busy for this share of the time, waiting bounds the kernel
WAITS = 0.4  # stalled share of an engine's time that is mentioned
TWICE = 1.25  # ratio of traffic to compulsory traffic that is mentioned
LOST = 0.05  # share of the processors' time lost in a partial last wave that is mentioned
STALL = "_stall"
MOST_MIX = 6  # classes of instructions in the mix
# Measured bytes, by the memory that moved them.
OBSERVED = {"memory_bytes": "global memory", "cache_bytes": "the cache", "mesh_bytes": "the mesh"}


@dataclass(frozen=True, slots=True)
class _Case:
    """An evaluation with its context."""

    us: float
    kind: str
    figures: Mapping[str, float]
    engines: Mapping[str, float]
    roofline_us: float  # no kernel on the machine can be faster
    machine: Machine
    edited: bool  # whether the source is the candidate's own

    @property
    def share(self) -> float:
        """The share of the roofline that is reached."""
        return self.roofline_us / self.us

    def traffic(self, name: str) -> float:
        """The ratio of a figure in bytes to the compulsory traffic; 0 if either is unknown."""
        least = self.figures.get("least_bytes", 0.0)
        return self.figures.get(name, 0.0) / least if least else 0.0


def diagnosis(
    evaluation: Evaluation, roofline_us: float, machine: Machine, edited: bool = False
) -> tuple[str, ...]:
    """Sentences about a correct candidate, most important first.

    roofline_us: least possible time on the machine. edited: whether the source is the candidate's
    own.
    """
    case = _Case(
        evaluation.us,
        evaluation.time_kind,
        evaluation.figures,
        evaluation.engines,
        roofline_us,
        machine,
        edited,
    )
    parts = (_time, _engines, _stalls, _traffic, _tiles, _space, _instructions)
    return tuple(line for part in parts for line in part(case))


def raw(evaluation: Evaluation, edited: bool = False) -> tuple[str, ...]:
    """The figures, a line for each kind: busy and stall of each engine, bytes, the rest."""
    figures = evaluation.figures
    stalls = {n.removesuffix(STALL): v for n, v in figures.items() if n.endswith(STALL)}
    names = sorted({*evaluation.engines, *stalls})
    engines = [
        f"{name} busy {evaluation.engines.get(name, 0.0):.1%}"
        + (f" stalled {stalls[name]:.1%}" if name in stalls else "")
        for name in names
        if evaluation.engines.get(name, 0.0) or stalls.get(name)
    ]
    from_nest = ("moved_bytes", "tiles", "launches", "on_chip_bytes") if edited else ()
    left_out = (*(f"{n}{STALL}" for n in stalls), "compile_seconds", *from_nest)
    bytes_ = [
        f"{n} {v:.0f}" for n, v in figures.items() if n.endswith("_bytes") and n not in left_out
    ]
    others = [
        f"{n} {v:.4g}"
        for n, v in sorted(figures.items())
        if n not in left_out and not n.endswith("_bytes") and v
    ]
    lines = (("Engines", engines), ("Bytes", sorted(bytes_)), ("Others", others))
    return tuple(f"{title}: {', '.join(found)}." for title, found in lines if found)


def _time(case: _Case) -> Iterator[str]:
    said = (
        f"It takes {case.us:.4g} us ({case.kind}); the machine's bound is "
        f"{case.roofline_us:.4g} us, of which {case.share:.0%} is reached."
    )
    if case.share >= NEAR:
        said += " Little is left: start-up, the tail, and what the bound leaves out."
    yield said


def _engines(case: _Case) -> Iterator[str]:
    busy = sorted(case.engines.items(), key=lambda item: (-item[1], item[0]))
    if not busy:
        return
    shares = ", ".join(f"{name} {share:.0%}" for name, share in busy[:4] if share >= 0.005)
    name, most = busy[0]
    moved = case.traffic("memory_bytes")
    if most >= BUSY and _is_memory(case, most) and 0 < moved <= TWICE:
        yield (
            f"It is bound by {name}, which moves {moved:.2f} times the compulsory traffic: no "
            f"traffic can be saved, but the {1 - most:.0%} of the time in which {name} is not busy: "
            "before the first byte, after the last, and between. "
            f"Busy: {shares}."
        )
    elif most >= BUSY:
        yield f"It is bound by {name}: give that less to do. Busy: {shares}."
    elif case.share >= NEAR:
        yield f"Busy: {shares}."
    elif most < IDLE:
        yield (
            f"No engine is busy half the time ({shares}): it waits. Overlap more (deeper stages, "
            "smaller steps), use more tiles at once, or make fewer and longer transfers."
        )
    else:
        yield f"The busiest engine is {name}, yet not all the time ({shares}): some overlap lacks."


def _is_memory(case: _Case, most: float) -> bool:
    """Whether the busiest engine is memory."""
    return case.figures.get("busy_memory", 0.0) >= min(most, 1.0) - 1e-9


def _stalls(case: _Case) -> Iterator[str]:
    waits = {
        name.removesuffix(STALL): value
        for name, value in case.figures.items()
        if name.endswith(STALL) and value >= WAITS
    }
    if waits:
        text = ", ".join(f"{n} {v:.0%}" for n, v in sorted(waits.items(), key=lambda i: -i[1]))
        yield f"Engines with work that wait for others, of the whole time: {text}."


def _traffic(case: _Case) -> Iterator[str]:
    least = case.figures.get("least_bytes", 0.0)
    moved, asked = case.traffic("memory_bytes"), case.traffic("moved_bytes")
    said = f"the compulsory {least:.3g} B of its inputs and outputs"
    if moved:
        more = ": larger tiles, sharing or fusion would save traffic" if moved > TWICE else ""
        yield (
            f"From and to global memory it moves {case.figures['memory_bytes']:.3g} B ({case.kind}), "
            f"{moved:.2f} times {said}{more}."
        )
    elif asked > TWICE and not case.edited:
        yield (
            f"It asks memory for {case.figures['moved_bytes']:.3g} B (counted from the loop nest), "
            f"{asked:.2f} times {said}; what the caches do not serve could be saved by larger tiles, "
            "sharing or fusion."
        )
    others = [
        f"{case.figures[name]:.3g} B through {where}"
        for name, where in OBSERVED.items()
        if name != "memory_bytes" and case.figures.get(name)
    ]
    if others:
        yield f"Apart from that: {', '.join(others)}."
    launches = 1.0 if case.edited else case.figures.get("launches", 1.0)
    if launches > 1:
        yield f"It is {launches:.0f} launches, with results in memory between them."


def _tiles(case: _Case) -> Iterator[str]:
    tiles, parallel = case.figures.get("tiles", 0.0), case.machine.parallel
    if not tiles or case.edited:
        return
    waves = tiles / parallel
    lost = 1 - waves / math.ceil(waves)
    if waves < 1:
        yield f"Its grid has {tiles:.0f} tiles, and {parallel} could run at once."
    elif lost >= LOST:
        yield (
            f"Its {tiles:.0f} tiles run in {waves:.2f} waves: the last is not full, and {lost:.0%} of "
            "the processors' time is idle there."
        )


def _space(case: _Case) -> Iterator[str]:
    taken = 0.0 if case.edited else case.figures.get("on_chip_bytes", 0.0)
    machine = case.machine
    if taken and machine.on_chip_bytes:
        yield f"It uses {taken / machine.on_chip_bytes:.0%} of the {machine.on_chip} memory of a processor."
    if case.figures.get("spills"):
        yield (
            f"{case.figures['spills']:.0f} bytes of each thread's registers spill to memory: smaller "
            "tiles or more threads."
        )
    if "occupancy" in case.figures:
        figures = case.figures
        registers = f" with {figures['registers']:.0f} registers" if "registers" in figures else ""
        yield f"Occupancy is {figures['occupancy']:.0%}{registers}."


def _instructions(case: _Case) -> Iterator[str]:
    """The instruction mix of each launch; of its loops if it has any."""
    launches = dict.fromkeys(n.partition(".")[0] for n in case.figures if ".mix." in n)
    for launch in launches:
        mixes = [
            {
                name.rpartition(".")[2]: value
                for name, value in case.figures.items()
                if name.startswith(f"{launch}.{sort}.") and value
            }
            for sort in ("loop", "mix")
        ]
        found = mixes[0] or mixes[1]
        total = sum(found.values())
        shares = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MOST_MIX]
        if total:
            text = ", ".join(f"{name} {value / total:.0%}" for name, value in shares)
            where = "in its loops" if mixes[0] else "in all"
            yield f"Instructions of `{launch}`, {total:.0f} {where}: {text}."
