"""Lowers a loop nest to a thread program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.program import sizes_of, tile_program
from backends.gpu.rules import Rules
from backends.gpu.threads import thread as to
from backends.gpu.threads.barriers import Barriers, for_proxy
from backends.gpu.threads.boxes import Boxes, boxes_of, loaded_in_bulk
from backends.gpu.threads.constants import constants
from backends.gpu.threads.decided import decided
from backends.gpu.threads.expressions import rewritten
from backends.gpu.threads.facts import FRAGMENTS, Facts, facts
from backends.gpu.threads.hoist import hoisted
from backends.gpu.threads.inline import inlined
from backends.gpu.threads.joined import joined
from backends.gpu.threads.owners import Owners
from backends.gpu.threads.pingpong import GROUPS, taking_turns
from backends.gpu.threads.plans import (
    Plan,
    plans,
    rounded_by_engine,
    stage_functions,
    transposed_operands,
)
from backends.gpu.threads.producers import PRODUCERS, Producers
from backends.gpu.threads.prune import pruned, reads
from backends.gpu.threads.register_staging import RegisterStaging
from backends.gpu.threads.staging import Staging
from backends.gpu.threads.tensor_memory import in_tensor_memory
from backends.gpu.threads.unroll import factors, unrolled
from backends.gpu.tile import Name
from backends.gpu.values import product
from ir.machine import Machine
from ir.nest import nest as nests
from ir.nest.nest import LoopNest
from ir.sizes import bind
from ir.spec import DTYPES, Apply, Expr, Number
from machines.gpu.matrix_instructions import MatrixInstruction

WORD = 4  # bytes of a register


def thread_program(
    nest: LoopNest, machine: Machine, rules: Rules, instructions: Sequence[MatrixInstruction]
) -> to.ThreadProgram:
    """The thread program of a nest, on a machine with a table of matrix instructions.

    Distributions are chosen for the sizes for which the nest is tuned; the program is valid at
    other sizes.
    """
    program = tile_program(nest, machine, rules)
    sizes = bind(nest.spec, dict(nest.sizes)) | dict(nest.spec.attributes)
    dtypes = {p.name: p.dtype for p in program.tensors}
    loaded = loaded_in_bulk(one for _, launches in program.groups for one in launches)
    groups = tuple(
        (
            repeat,
            tuple(
                _launch(one, _of(nest, one.name), machine, dtypes, sizes, instructions, loaded)
                for one in launches
            ),
        )
        for repeat, launches in program.groups
    )
    return to.ThreadProgram(program.name, groups, program.tensors)


def _of(nest: LoopNest, name: str) -> nests.Launch:
    return next(one for one in nest.launches if one.name == name)


def _launch(
    launch: of.Launch,
    source: nests.Launch,
    machine: Machine,
    dtypes: Mapping[str, str],
    sizes: Mapping[str, float],
    instructions: Sequence[MatrixInstruction],
    loaded: frozenset[str],
) -> to.Launch:
    boxes = boxes_of(launch, loaded) if "bulk" in machine.engines else Boxes({}, {}, {})
    launch = replace(launch, once=inlined(launch.once), body=inlined(launch.body))
    known = facts(launch, dtypes, {v.name: v.rows for v in source.values if v.rows})
    widths = _at(launch, sizes)
    warp_bits = machine.warp.bit_length() - 1
    bits = warp_bits + launch.warps.bit_length() - 1
    alone = _alone(instructions, launch, source)
    planned = plans(known, widths, launch.warps, warp_bits, alone, decided(source))
    rounded_by_engine(known, planned, boxes.loads)
    known.staged -= transposed_operands(known, planned)
    owners = Owners(known, widths, bits, warp_bits, DTYPES)
    anchored = frozenset(
        key for key, m in known.matmuls.items() if owners.anchored(m, *planned[key].c)
    )
    _prefer(owners, known, planned, anchored)
    stage_functions(known, planned)
    owners.rest()
    space, tiles = machine.on_chip_bytes, dict(source.tiles)
    given = (space, launch, known, owners, tiles, sizes, planned, anchored)
    groups = GROUPS if source.pingpong else 1
    lowering: Staging
    if machine.details.get("gpu", {}).get("copies_async", True):
        registers = _registers(launch, source.roles, machine, groups)
        lowering = Producers(registers, groups, source.roles, boxes, *given)
    else:
        lowering = RegisterStaging(machine.details["gpu"].get("lds_copy_bytes", 0), *given)
    fixed = _fixed(launch, known)
    lowering.widths |= {i: Number(widths[i]) for i in fixed}
    _held(lowering)
    once = (*lowering.shares(), *lowering.before(launch.once))
    body = lowering.block((*launch.grid, *launch.body))
    lowering.require_all()
    once, body = hoisted(once, lowering.shared), hoisted(body, lowering.shared)
    body = joined(body) if launch.steps else body  # a step waits for its longest chain
    once, body = (*lowering.meets(), *lowering.first, *once), (*body, *lowering.last)
    if source.pingpong:
        once, body = taking_turns(lowering, once, body)
    table = {**machine.details.get("gpu", {}), "warp": machine.warp}
    (once, body), accumulators = in_tensor_memory(lowering, planned, table, (once, body))
    producer = lowering.producer()
    once, body = _ordered(launch, lowering, once, body)
    if producer is not None:
        producer = replace(producer, body=_pruned(producer.once, producer.body)[1])
    one = _made(launch, machine, lowering, (once, body), producer, {i: widths[i] for i in fixed})
    one = replace(one, consumers=groups, accumulators=accumulators)
    if one.block_threads > machine.threads:
        what = f"a block of {groups} x {one.threads} threads and the producers"
        raise BackendError("emit", f"{what} has more than {machine.threads}")
    return one


def _prefer(
    owners: Owners, known: Facts, planned: Mapping[int, Plan], anchored: frozenset[int]
) -> None:
    """Lets operands have the distributions in which their matmuls take them."""
    for key, matmul in known.matmuls.items():
        if key in anchored and (made := planned[key].instruction) is not None and made.a:
            owners.prefer(matmul.a, planned[key].a)
        if planned[key].k_major and (wanted := owners.transposing(matmul.b)):
            owners.prefer(matmul.b, wanted)


def _alone(
    table: Sequence[MatrixInstruction], launch: of.Launch, source: nests.Launch
) -> Sequence[MatrixInstruction]:
    """The instructions that a launch may use. A block waits for tensor memory until others release
    theirs. So launches whose blocks wait for each other cannot use it, nor ping-pong."""
    waits = launch.shares is not None or bool(launch.steps) or source.pingpong
    return [i for i in table if not i.c.tensor] if waits else table


def _held(lowering: Staging) -> None:
    """Records the positions of all fragments."""
    for name in lowering.typing.known:
        if name.sort in FRAGMENTS and name not in lowering.facts.staged:
            for axis in lowering.axes_of(name):
                lowering.positions(axis)


def _at(launch: of.Launch, sizes: Mapping[str, float]) -> dict[str, int]:
    """The elements along each index at some sizes."""
    values = constants(tuple(c for c in launch.constants if c[0].sort == "width"), sizes)
    return {i: _number(w, values) for i, w in launch.widths}


def _ordered(
    launch: of.Launch, lowering: Staging, once: to.Block, body: to.Block
) -> tuple[to.Block, ...]:
    """The statements before the first tile and of each tile, with barriers, and without unused ones."""
    lowering.shared = lowering.placed(once, body)
    barriers = Barriers(lowering.shared)
    once = barriers.block(once)
    # The end of one tile conflicts with the beginning of the next
    if launch.resident or launch.steps:
        barriers.block(body)
    body = barriers.block(body)
    # Statements that read shared memory through the async proxy
    past = (to.WarpgroupMultiply, to.TensorMultiply, to.BoxStore)
    if any(isinstance(s, past) for s in to.statements((*once, *body))):
        once, body = for_proxy(once), for_proxy(body)
    by, scalar = factors(launch), lowering.variable
    return tuple(unrolled(block, by, scalar) for block in _pruned(once, body))


def _registers(launch: of.Launch, roles: nests.Roles | None, machine: Machine, groups: int) -> int:
    """The registers that the roles of a block may share: those of a multiprocessor, or those with
    which its threads start where they are limited."""
    space = machine.spaces.get("register")
    whole = space.bytes // WORD if space is not None else 0
    producers = roles.producers if roles else PRODUCERS
    own = launch.registers * (groups * launch.warps * machine.warp + producers)
    return min(whole, own) if own else whole


def _pruned(*blocks: tuple[to.Statement, ...]) -> tuple[tuple[to.Statement, ...], ...]:
    """Consecutive blocks without statements whose results nothing in them reads."""
    while True:
        read = reads(s for block in blocks for s in block)
        kept = tuple(pruned(block, read) for block in blocks)
        if kept == blocks:
            return blocks
        blocks = kept


def _made(
    launch: of.Launch,
    machine: Machine,
    lowering: Staging,
    blocks: tuple[tuple[to.Statement, ...], tuple[to.Statement, ...]],
    producer: to.Producer | None,
    fixed: Mapping[str, int],
) -> to.Launch:
    """The launch with everything that its statements use."""
    widths = _widths(launch, lowering) | {i: Number(width) for i, width in fixed.items()}
    once, body = blocks
    every = (*once, *body, *(producer.once + producer.body if producer else ()))
    maps, signals = tuple(lowering.maps.values()), tuple(lowering.signals)
    nodes = list(of.expressions(every, signals, tuple(m.box for m in maps)))
    named = {n.name if isinstance(n, to.Element) else n for n in nodes}
    fragments = tuple(f for n, f in lowering.fragments.items() if n in named)
    shared = tuple(lowering.shared.values())
    counted = (launch.tiles, launch.steps) if launch.steps else ()
    nodes += of.expressions(fragments, shared, launch.tiles if launch.resident else counted)
    used = {n for n in nodes if isinstance(n, Name)}
    pairs = [(n, _wider(e, widths.get(n.stem))) for n, e in launch.constants]
    pairs += lowering.constants.items()
    needed = {n for _, e in pairs for n in e.walk() if isinstance(n, Name)}
    sizes = sizes_of(*nodes, *(e for n, e in pairs if n in used))
    return to.Launch(
        name=launch.name,
        equations=launch.equations,
        tensors=launch.tensors,
        sizes=tuple(s for s in launch.sizes if s in sizes_of(*nodes)),
        specialized=launch.specialized,
        step=launch.step,
        attributes=tuple((n, v) for n, v in launch.attributes if n in sizes),
        constants=tuple((n, e) for n, e in pairs if n in used or n in needed),
        tiles=launch.tiles,
        resident=launch.resident,
        threads=lowering.threads,
        warp=machine.warp,
        fragments=fragments,
        shared=shared,
        once=once,
        body=body,
        limits=(
            *(
                (e.size, fixed[n.stem])
                for n, e in launch.constants
                if n.stem in fixed and isinstance(e, of.BlockWidth)
            ),
            *([(product(list(launch.tiles)), machine.parallel)] if launch.steps else []),
        ),
        signals=signals,
        maps=maps,
        producer=producer,
        registers=launch.registers,
        cluster=launch.cluster[0] if launch.cluster and lowering.meets() else None,
        end=lowering.meets(),
        shares=_shares(launch, lowering),
        steps=launch.steps,
    )


def _shares(launch: of.Launch, lowering: Staging) -> of.Shares | None:
    """How blocks share the iterations of a loop (stream-K)."""
    if launch.shares is None:
        return None
    counter = lowering.place(launch.shares.counter, {})
    first, last = map(lowering.scalar, (launch.shares.first, launch.shares.last))
    return of.Shares(launch.shares.iterations, counter, (), first, last)


def _fixed(launch: of.Launch, known: Facts) -> tuple[str, ...]:
    """The indices that keep their width of the tuned sizes. Where several axes form one axis of a
    matmul, the widths of the inner ones are the strides of the outer ones."""
    inner = {i for m in known.matmuls.values() for g in (m.m, m.n, m.k) for i in g[1:]}
    return tuple(i for i, width in launch.widths if i in inner and not isinstance(width, Number))


def _widths(launch: of.Launch, lowering: Staging) -> dict[str, Expr]:
    """Widths that only the launcher knows: a multiple of every distribution's span."""
    found: dict[str, Expr] = {}
    axes = [a for f in lowering.fragments.values() for a in f.axes]
    axes += [a for held in lowering.distributions.values() for a in held]
    for name, expr in launch.constants:
        if name.sort == "width" and isinstance(expr, of.BlockWidth):
            spans = [a.span for a in axes if a.index == name.stem]
            tiles = (t for t in lowering.shared.values() if t.axes[-1:] == (name.stem,))
            spans += [t.panel for t in tiles if t.row == 1]
            span = max([expr.least, *spans])
            found[name.stem] = Apply("mul", (of.Tiles(expr.size, span), Number(span)))
    return found


def _wider(expr: Expr, width: Expr | None) -> Expr:
    """A launch constant of an index with its width."""
    if width is None:
        return expr
    return rewritten(expr, lambda e: width if isinstance(e, of.BlockWidth) else None)


def _number(width: Expr, values: Mapping[Name, int]) -> int:
    return int(width.value) if isinstance(width, Number) else values[width]  # type: ignore[index]
