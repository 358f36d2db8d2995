"""The analysis: what an evaluation's figures say about a kernel, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ir.machine import Machine
from search.core.evaluation import Evaluation

BUSY = 0.7  # of the time: an engine at work so much bounds the kernel
IDLE = 0.5  # of the time: where none is at work so much, waiting bounds it
WAITS = 0.4  # of an engine's time: worth a word
TWICE = 1.25  # bytes moved over the least: worth a word
STALL = "_stall"


def diagnosis(evaluation: Evaluation, roofline_us: float, machine: Machine) -> tuple[str, ...]:
    """Sentences about a correct candidate, the most important first; figures as they were had.

    roofline_us: no kernel on the machine can be faster.
    """
    return tuple(
        line
        for part in (_time, _engines, _stalls, _traffic, _tiles, _space)
        for line in part(evaluation, roofline_us, machine)
    )


def _time(evaluation: Evaluation, roofline_us: float, machine: Machine) -> Iterator[str]:
    share = roofline_us / evaluation.us
    yield (
        f"It takes {evaluation.us:.4g} us ({evaluation.time_kind}); the machine's bound is "
        f"{roofline_us:.4g} us, of which {share:.0%} is reached."
    )


def _engines(evaluation: Evaluation, roofline_us: float, machine: Machine) -> Iterator[str]:
    busy = sorted(evaluation.engines.items(), key=lambda item: (-item[1], item[0]))
    if not busy:
        return
    shares = ", ".join(f"{name} {share:.0%}" for name, share in busy[:4] if share >= 0.005)
    name, most = busy[0]
    if most >= BUSY:
        yield f"It is bound by {name}: give that less to do. Busy: {shares}."
    elif most < IDLE:
        yield (
            f"No engine is busy half the time ({shares}): it waits. Overlap more (deeper stages, "
            "smaller steps), use more tiles at once, or make fewer and longer transfers."
        )
    else:
        yield f"The busiest engine is {name}, yet not all the time ({shares}): some overlap lacks."


def _stalls(evaluation: Evaluation, roofline_us: float, machine: Machine) -> Iterator[str]:
    figures = evaluation.figures
    waits = {
        name.removesuffix(STALL): value
        for name, value in figures.items()
        if name.endswith(STALL) and value >= WAITS
    }
    if waits:
        text = ", ".join(f"{n} {v:.0%}" for n, v in sorted(waits.items(), key=lambda i: -i[1]))
        yield f"Engines that wait for others, of the time they have work: {text}."


def _traffic(evaluation: Evaluation, roofline_us: float, machine: Machine) -> Iterator[str]:
    moved, least = _both(evaluation.figures, "moved_bytes", "least_bytes")
    if least and moved > TWICE * least:
        yield (
            f"It moves {moved / least:.2g} times the bytes of its inputs and outputs "
            f"({moved:.3g} B): larger tiles, sharing or fusion would save traffic."
        )
    launches = evaluation.figures.get("launches", 1.0)
    if launches > 1:
        yield f"It is {launches:.0f} launches, with results in memory between them."


def _tiles(evaluation: Evaluation, roofline_us: float, machine: Machine) -> Iterator[str]:
    tiles = evaluation.figures.get("tiles", 0.0)
    if not tiles:
        return
    waves = tiles / machine.parallel
    if waves < 1:
        yield f"Its grid has {tiles:.0f} tiles, and {machine.parallel} could run at once."
    elif waves % 1 and waves < 4:
        yield f"Its {tiles:.0f} tiles run in {waves:.2f} waves: the last wave is not full."


def _space(evaluation: Evaluation, roofline_us: float, machine: Machine) -> Iterator[str]:
    figures = evaluation.figures
    taken = figures.get("on_chip_bytes", 0.0)
    if taken and machine.on_chip_bytes:
        yield f"It uses {taken / machine.on_chip_bytes:.0%} of the {machine.on_chip} memory of a processor."
    if figures.get("spills"):
        yield f"{figures['spills']:.0f} registers spill to memory: smaller tiles or more threads."
    if "occupancy" in figures:
        registers = f" with {figures['registers']:.0f} registers" if "registers" in figures else ""
        yield f"Occupancy is {figures['occupancy']:.0%}{registers}."


def _both(figures: Mapping[str, float], one: str, other: str) -> tuple[float, float]:
    return figures.get(one, 0.0), figures.get(other, 0.0)
