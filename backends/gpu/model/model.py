"""The time model: an estimate of how long a built kernel takes on a target.

Each launch has the terms of `terms`: the microseconds that it would take if nothing else took time.
`combine` combines them with the weights below. All figures of the hardware come from the target
file. The weights are dimensionless and fitted to measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from backends.backend import BackendError, Built, Timing
from backends.gpu.model.extents import Extents
from backends.gpu.model.operands import repeated
from backends.gpu.model.shares import spread
from backends.gpu.model.transactions import Move
from backends.gpu.model.work import Counted, Work, work
from backends.gpu.rules import Rules
from ir.machine import Machine
from ir.memo import Recent
from ir.nest.footprint import on_chip_bytes, register_bytes
from ir.nest.nest import Dot, Launch, LoopNest, Store
from ir.sizes import bind
from ir.spec import DTYPES
from machines.gpu.facts import facts
from machines.gpu.occupancy import programs_per_unit


@dataclass(frozen=True, slots=True)
class Weights:
    """The factor of each term; 1 means the figure of the target file.

    `benchmarks/model_fit.py` fits them to measured schedules, see docs/benchmarks.md.
    """

    launch: float = 2.379
    dram: float = 0.851
    cache: float = 0.5
    load: float = 0.927
    fabric: float = 1.141
    shared: float = 0.485
    matrix: float = 0.732
    vector: float = 3.204
    special: float = 0.706
    issue: float = 1.327
    spill: float = 10.454
    exchange: float = 4.107
    wait: float = 0.803
    start: float = 0.798
    alone: float = 0.463
    step: float = 0.584
    loss: float = 0.14  # share of the other terms that the longest term does not hide


WEIGHTS = Weights()
MEMORY = ("dram", "cache")  # memory terms of the whole chip
ENGINES = ("load", "fabric", "shared", "matrix", "vector", "special", "issue", "spill", "exchange")
CHAIN = ("wait", "start", "alone", "step")  # latency terms of consecutive thread blocks
SORTS = {  # the terms of each figure `busy_<sort>`
    "memory": (*MEMORY, "load", "fabric"),
    "vector": ("vector", "special", "issue", "exchange"),
    "matrix": ("matrix", "shared"),
}
MEETING = 3  # cache latencies of a grid barrier: a fence, a flag, and its observation
KEPT = 0.6  # share of the cache that holds data that is read again
# Share of the reread rows that stay in the cache with cache hints, where all passes run in the same
# direction, relative to the share that stays where every second pass runs in reverse. By times on
# an H200, of a norm of rows of 65,535 and a softmax of rows of 393,216: 0.20 and 0.06 of the rows
# stayed with reverse passes (0.23 and 0.05 by `_kept`), 0.34 and 0.12 with reverse passes and hints
# (0.48 and 0.13), and 0.29 and 0.02 with hints alone.
TOLD = 0.4
START_CYCLES = 1500  # from the end of one thread block to the first load of the next
# Thread blocks that a chip starts per cycle. On an H200, kernels that interleave phases took 0.59
# to 0.61 us for each thousand blocks where they had 1.4 to 2.7 million of them.
STARTED = 0.85
# The exponent with which the start of thread blocks and their work overlap: the shorter one counts
# the less, the shorter it is. On an H200 one of these kernels took 843 us with 1.4 million blocks,
# and 723 us with half as many; a ReLU of 6 GB 3.03 ms with 1.5 million, and 3.08 ms with a quarter.
HIDDEN = 3
MOST_GUESSED = 1024  # launches of a machine whose terms are cached
REGISTERS_BESIDE = 25  # registers of a thread for addresses and the like, where there is no build
# Registers for the address of each element that a thread moves by itself, and of each that is
# stored at an irregular distance. The compiler recomputes some of the latter at their use.
ADDRESS_REGISTERS, STORED_REGISTERS = 2.0, 0.75


_GUESSED: Recent[Machine, dict[Launch, dict[str, float]]] = Recent()


@dataclass(frozen=True, slots=True)
class Build:
    """The figures of a launch's compiled code."""

    registers: int
    shared_bytes: int
    warps: int
    stages: int
    spills: float  # bytes per thread
    instructions: float  # static count, not executions
    barriers: float  # static count
    exchanges: float  # static count of exchanges through shared memory or shuffles


def modelled_build(
    built: Built, nest: LoopNest, machine: Machine, rules: Rules, sizes: Mapping[str, int]
) -> Timing:
    """The modelled time of a build. Raises BackendError("time") where it spills, since the model
    has no cost for that."""
    if spilled := built.figures.get("spills"):
        raise BackendError(
            "time",
            f"the compiler spills {spilled:g} bytes of a thread, which is measured but not "
            "modelled: use smaller tiles or more threads",
        )
    return modelled(nest, machine, rules, sizes, built.figures)


def modelled(
    nest: LoopNest,
    machine: Machine,
    rules: Rules,
    sizes: Mapping[str, int],
    figures: Mapping[str, float],
    weights: Weights = WEIGHTS,
) -> Timing:
    """The modelled time of a nest.

    rules: the rules of its language.
    figures: those of its build, as `Built.figures`; empty: guessed from the nest.

    The result's figures hold the terms, `<launch>.<term>_us`, of the first step, and the sum over
    all steps of a recurrence, `<launch>.us`. All ranges of a jagged nest have the mean length.
    """
    bound = bind(nest.spec, sizes)
    seen: dict[str, float] = {}
    total = 0.0
    sums: dict[str, float] = {}
    for _, launches in nest.groups():
        if figures:
            step = [terms(launch, machine, rules, bound, figures) for launch in launches]
        else:
            step = [_guessed(launch, machine, rules, bound) for launch in launches]
        later = _again(launches, step, machine)
        for launch, found, again in zip(launches, step, later, strict=True):
            more = launch.times(bound) - 1
            us = combine(found, weights) + more * combine(again, weights)
            seen[f"{launch.name}.us"] = us
            total += us
            for name, each in found.items():
                seen[f"{launch.name}.{name}"] = each
                if name.endswith("_us"):
                    sums[name] = sums.get(name, 0.0) + each + more * again[name]
    for figure, term in (("memory_bytes", "fetched_bytes"), ("cache_bytes", "asked_bytes")):
        asked = [(la, seen[f"{la.name}.{term}"]) for la in nest.launches]
        seen[figure] = sum(la.times(bound) * one for la, one in asked)
    shares = {
        name: min(1.0, getattr(weights, name) * sums[f"{name}_us"] / total)
        for name in (*MEMORY, *ENGINES)
    }
    seen |= {f"busy_{sort}": max(shares[n] for n in names) for sort, names in SORTS.items()}
    return Timing(us=total, kind="modelled", figures=seen, engines=shares)


def _again(
    launches: Sequence[Launch], step: Sequence[Mapping[str, float]], machine: Machine
) -> list[Mapping[str, float]]:
    """The terms of a recurrence's launches in all steps after the first. By then the cache holds
    what a step fetches, as far as it fits. A cooperative launch has a grid barrier instead of a
    launch."""
    fetched = sum(found["fetched_bytes"] for found in step)
    lost = _missed(fetched, KEPT * machine.spaces["cache"].bytes)
    again = [{**found, "dram_us": lost * found["dram_us"]} for found in step]
    for launch, found in zip(launches, again, strict=True):
        if launch.meeting:
            latency = 1e-3 * machine.details["gpu"]["cache_latency_ns"]
            found["launch_us"] = MEETING * latency
    return list(again)


def combine(found: Mapping[str, float], weights: Weights = WEIGHTS) -> float:
    """Microseconds of one launch from its terms: the longest term plus a share of the others, which
    partly hide the start of thread blocks."""
    parts = {n: getattr(weights, n) * found[f"{n}_us"] for n in (*MEMORY, *ENGINES)}
    parts["chain"] = sum(getattr(weights, n) * found[f"{n}_us"] for n in CHAIN)
    longest = max(parts.values())
    beside = weights.loss * (sum(parts.values()) - longest)
    both = (longest + beside) ** HIDDEN + found["programs_us"] ** HIDDEN
    return weights.launch * found["launch_us"] + both ** (1 / HIDDEN)


def _guessed(
    launch: Launch, machine: Machine, rules: Rules, sizes: Mapping[str, int]
) -> dict[str, float]:
    """The terms of a launch that was not built. They are cached, since the schedules of a search
    differ in few launches of a kernel."""
    key = (rules, *sorted(sizes.items()))
    known = _GUESSED.get(machine, key) or _GUESSED.put(machine, key, {})
    if launch not in known:
        if len(known) >= MOST_GUESSED:
            known.clear()
        known[launch] = terms(launch, machine, rules, sizes, {})
    return known[launch]


def terms(
    launch: Launch,
    machine: Machine,
    rules: Rules,
    sizes: Mapping[str, int],
    figures: Mapping[str, float],
) -> dict[str, float]:
    """The terms of a launch, `<term>_us`, and `programs` (thread blocks), `resident` (blocks of a
    multiprocessor at once), `rounds` (waves), `occupancy` and the bytes moved."""
    table = facts(machine)
    build = _build(launch, machine, rules, sizes, figures)
    ext = Extents(launch, sizes, rules)
    known: list[Counted] = []
    if not {f"{launch.name}.registers", f"{launch.name}.spills"} & set(figures):
        build = _with_addresses(build, launch, ext, machine, rules, table, known)
    held = programs_per_unit(table, build.registers, build.shared_bytes, build.warps)
    # A build that does not fit is refused elsewhere; here it has one resident block.
    resident = min(max(held.programs, 1), launch.resident or max(held.programs, 1))
    free = 4 * (build.registers - REGISTERS_BESIDE)
    if launch.pingpong:  # each tile is computed by one group
        build, known = replace(build, warps=_threads(launch, rules, table) // table["warp"]), []
    done = work(launch, ext, machine, table, build.warps, build.stages, free, known)
    tiles = spread(launch, ext, machine.parallel, resident)
    rounds, at_once = tiles.rounds, tiles.at_once
    asked, fetched = traffic(done.moves, ext, machine, at_once)
    if not build.instructions:
        text = _guessed_text(build, done, table)
        build = replace(build, instructions=text, exchanges=done.handed, barriers=done.fences)
    seconds = {**done.seconds, **_of_build(build, done, table)}
    beyond = spilled(build, done, table, resident)
    seconds["fabric"] = seconds.get("fabric", 0.0) + (
        beyond / table["cache_bytes_per_cycle"] / table["clock_hz"]
    )
    asked += ext.programs * beyond
    together = build.spills * build.warps * table["warp"] * at_once
    fetched += ext.programs * beyond * _missed(together, KEPT * machine.spaces["cache"].bytes)
    found = {f"{e}_us": 1e6 * tiles.busiest * seconds.get(e, 0.0) for e in ENGINES}
    handed = tiles.bytes_of_busiest() / table["cache_bytes_per_cycle"] / table["clock_hz"]
    found["fabric_us"] += 1e6 * handed
    asked += 2 * tiles.handed * tiles.bytes
    begun = min(ext.programs, at_once) if launch.resident else ext.programs
    # With ping-pong, the loop of one tile hides the rest of the tile before.
    chained = 1 + (rounds - 1) * done.in_turn if launch.pingpong else rounds
    return {
        **found,
        "launch_us": machine.launch_us,
        "dram_us": 1e6 * fetched / machine.bandwidth,
        "programs_us": 1e6 * begun / STARTED / table["clock_hz"],
        "cache_us": 1e6 * asked / machine.spaces["cache"].bytes_per_second,
        "wait_us": 1e6 * chained * done.waits,
        "start_us": 1e6 * (1 if launch.resident else rounds) * START_CYCLES / table["clock_hz"],
        "alone_us": 1e6 * (chained * done.alone + tiles.chain(table)),
        "step_us": 1e6 * chained * _steps(build, done, table) / table["clock_hz"],
        "programs": float(ext.programs),
        "resident": float(resident),
        "rounds": float(rounds),
        "occupancy": held.share,
        "asked_bytes": asked,
        "fetched_bytes": fetched,
    }


def _build(
    launch: Launch,
    machine: Machine,
    rules: Rules,
    sizes: Mapping[str, int],
    figures: Mapping[str, float],
) -> Build:
    """The build of a launch according to its figures, or guessed from the nest."""

    def figure(name: str, otherwise: float) -> float:
        return figures.get(f"{launch.name}.{name}", otherwise)

    table = facts(machine)
    threads = _threads(launch, rules, table) * (2 if launch.pingpong else 1)
    warps = max(1, int(figure("warps", threads / table["warp"])))
    guess = register_bytes(launch, machine, sizes) / (4 * warps * table["warp"])
    most = _most_registers(launch, table, warps)
    stages = max((v.stages for v in launch.values if v.loaded), default=1)
    return Build(
        registers=int(min(figure("registers", guess + REGISTERS_BESIDE), most)),
        shared_bytes=int(figure("shared_bytes", on_chip_bytes(launch, machine, sizes))),
        warps=warps,
        stages=_stages(launch, table, figures, int(figure("stages", stages))),
        spills=figure("spills", 4 * max(0.0, guess + REGISTERS_BESIDE - most)),
        instructions=figure("instructions", 0.0),
        barriers=figure("mix.barrier", 0.0),
        exchanges=figure("mix.shared", 0.0) + figure("mix.shuffle", 0.0),
    )


def _threads(launch: Launch, rules: Rules, table: Mapping[str, Any]) -> int:
    """Threads that compute one tile."""
    return launch.threads or rules.warps * table["warp"]


def _most_registers(launch: Launch, table: Mapping[str, Any], warps: int) -> int:
    """The most registers of a thread before it spills."""
    whole = table["registers_per_unit"] // (warps * table["warp"])
    return min(launch.registers or table["registers_per_thread"], whole)


def _with_addresses(
    build: Build,
    launch: Launch,
    ext: Extents,
    machine: Machine,
    rules: Rules,
    table: Mapping[str, Any],
    known: list[Counted],
) -> Build:
    """A guessed build plus the address registers of elements that a thread moves one by one, and
    the resulting spills. known: receives the counts of the launch."""
    done = work(launch, ext, machine, table, build.warps, build.stages, 0, known)
    threads = build.warps * table["warp"]
    scattered = [m for m in done.moves if m.bytes <= 4 * m.requests]
    looped = any(m.times > 1 for m in scattered if not m.store)
    held = [m for m in scattered if m.store or m.times > 1 or not looped]
    each = ADDRESS_REGISTERS * sum(m.requests / threads for m in held)
    if rules.holds_addresses:
        each += STORED_REGISTERS * _stored_apart(launch, ext) / threads
    each += repeated(launch, ext, table, build.warps) / threads
    most = _most_registers(launch, table, build.warps)
    wanted = build.registers + build.spills / 4 + each
    # Loads of several unrolled iterations are issued early, as far as registers allow.
    wanted = max(wanted, min(most, wanted + done.ahead))
    return replace(build, registers=int(min(wanted, most)), spills=4 * max(0.0, wanted - most))


def _stored_apart(launch: Launch, ext: Extents) -> int:
    """Elements that are stored along more than M and N of their matmul, with bounds checks. Other
    elements are at distances that the compiler knows."""
    statements = tuple(launch.statements())
    if not any(isinstance(s, Dot) for s in statements):
        return 0
    names = {v.name: v.names for v in launch.values}
    known = ext.blocks.blocks
    stored = [
        tuple(i for i in names[s.value] if i in known and ext.width(i) > 1)
        for s in statements
        if isinstance(s, Store) and s.value in names
    ]
    apart = (axes for axes in stored if len(axes) > 2 and any(known[i].checks for i in axes))
    return sum(ext.elements(axes) for axes in apart)


def _stages(
    launch: Launch, table: Mapping[str, Any], figures: Mapping[str, float], asked: int
) -> int:
    """Iterations in flight at once; 1 where the build shows that no load is prefetched."""
    copies = figures.get(f"{launch.name}.mix.copy_async")
    if not table["copies_async"] or copies is None:
        return asked
    stored = sum(isinstance(s, Store) and s.bulk for s in launch.statements())
    return asked if copies > stored else 1


def _of_build(build: Build, done: Work, table: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of a multiprocessor for what only the build tells: issued instructions, exchanges and spills."""
    issue = build.instructions * done.repeats * build.warps
    again = 2 * build.spills * build.warps * table["warp"] * done.repeats
    bytes_exchanged = 4 * build.exchanges * build.warps * table["warp"] * done.repeats
    return {
        "exchange": bytes_exchanged / (table["shared_bytes_per_cycle"] * table["clock_hz"]),
        "issue": issue / (table["partitions"] * table["clock_hz"]),
        "spill": again / (table["shared_bytes_per_cycle"] * table["clock_hz"]),
    }


def _guessed_text(build: Build, done: Work, table: Mapping[str, Any]) -> float:
    """Instructions of a warp in unknown code: as many as keep the engines busy as long."""
    return done.text * table["clock_hz"] * table["partitions"] / build.warps


def _steps(build: Build, done: Work, table: Mapping[str, Any]) -> float:
    """Cycles of a single warp that waits only for its own previous instruction, for barriers, and for its spills."""
    there_and_back = 2 * build.spills / 4 * 1e-9 * table["shared_latency_ns"] * table["clock_hz"]
    each = table["step_cycles"] * build.instructions + table["barrier_cycles"] * build.barriers
    return (each + there_and_back) * done.repeats


def spilled(build: Build, done: Work, table: Mapping[str, Any], resident: int) -> float:
    """Bytes of a thread block's spills, written and read, that do not fit the L1 cache: the shared
    memory that no block uses."""
    own = build.spills * build.warps * table["warp"]
    room = table["shared_bytes_per_unit"] - resident * build.shared_bytes
    return 2 * own * done.repeats * _missed(resident * own, max(0, room))


def _missed(used: float, room: float) -> float:
    """The share of repeatedly used data that does not fit."""
    return 1 - room / used if used > room else 0.0


def traffic(moves: list[Move], ext: Extents, machine: Machine, at_once: int) -> tuple[float, float]:
    """Bytes that all thread blocks request from the L2 cache, and bytes that it fetches from
    memory.

    Concurrent blocks share what they read. What later blocks reread is still in the cache as far as
    the cache holds everything that is read in between.
    """
    together = ext.at_once(at_once)
    waves = ext.programs / max(1, at_once)
    room = KEPT * machine.spaces["cache"].bytes
    wave = {
        i: m.fresh * m.sectors * prod(together[n] for n in m.needs) for i, m in enumerate(moves)
    }
    between = sum(wave.values())
    asked = sum(ext.programs * m.asked * m.sectors / m.sharing for m in moves)
    fetched = 0.0
    for tensor in dict.fromkeys(m.tensor for m in moves):
        own = [i for i, m in enumerate(moves) if m.tensor == tensor]
        every = sum(ext.programs * moves[i].fresh * moves[i].sectors for i in own)
        least = min(_tensor_bytes(ext, tensor), every)
        if any(moves[i].rows for i in own):
            lost = 1 - room / max(room, _tensor_bytes(ext, tensor))
            fetched += least + (every - least) * lost
            continue
        again = max(0.0, min(every, waves * sum(wave[i] for i in own)) - least)
        lost = min(1.0, max(0.0, (least + between) / room - 1))
        passes = [(moves[i], wave[i]) for i in own if not moves[i].store]
        fetched += least + again * min(lost, 1 - _kept(passes, wave, moves, room))
    return asked, fetched


def _kept(
    passes: Sequence[tuple[Move, float]],
    wave: Mapping[int, float],
    moves: Sequence[Move],
    room: float,
) -> float:
    """The share of its rows that a thread block finds in the cache when it rereads them. Rows stay
    there where every second pass runs in reverse, or where cache hints keep them. Blocks are not in
    step, so a smaller share stays than would fit.

    passes: the loads of a tensor, each with the bytes of all concurrent blocks.
    """
    first = [bytes_ for move, bytes_ in passes if move.cache != "evict_first"]
    if len(passes) < 2 or not first:
        return 0.0
    own = {id(move) for move, _ in passes[:1]}
    others = (wave[i] for i, m in enumerate(moves) if id(m) not in own and m.cache != "evict_first")
    share = room / (room + first[0] + sum(others))
    if len({move.backwards for move, _ in passes}) > 1:
        return share
    told = any(move.cache == "evict_last" for move, _ in passes)
    return TOLD * share if told and passes[-1][0].cache == "evict_first" else 0.0


def _tensor_bytes(ext: Extents, tensor: str) -> float:
    dtype = next(p.dtype for p in ext.launch.parameters if p.name == tensor)
    return float(DTYPES[dtype] * prod(ext.shapes[tensor]))
