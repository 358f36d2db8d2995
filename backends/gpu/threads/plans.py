"""Plans of matmuls: the instruction, and how warps partition M and N."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2, prod

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.text import parse_layout
from backends.gpu.products import summed_in
from backends.gpu.threads.decided import NONE, Decided
from backends.gpu.threads.distribution import Spread, replicated, spread
from backends.gpu.threads.facts import Facts, Matmul, bare
from backends.gpu.threads.thread import Instruction
from backends.gpu.threads.vectors import contiguous
from backends.gpu.tile import Name
from ir.spec import DTYPES
from machines.gpu.matrix_instructions import MatrixInstruction

CHUNK = 4  # K per step of a matmul without matrix instruction, which each thread holds at once
WARPGROUP = 4  # warps that execute one warpgroup instruction
PANEL_BYTES = 128  # all banks once; the period of the widest swizzle
# The K = 8 elements of an instruction, over a thread and its three neighbours: each has two
# consecutive elements.
PAIRED = Spread(((0, 2), (1, 4)), ((2, 1),))
RUN = 4  # consecutive rows and columns of a thread without matrix instruction
_NOWHERE = (replicated(), replicated())  # registers of an operand that is in shared memory


@dataclass(frozen=True, slots=True)
class Plan:
    """How a matmul is computed: the distributions of M, N and K of its fragments."""

    a: tuple[Spread, Spread]  # M, K
    b: tuple[Spread, Spread]  # K, N
    c: tuple[Spread, Spread]  # M, N
    depth: int  # K of one issue
    instruction: Instruction | None
    # M, N and K of a warpgroup instruction, which reads shared memory itself; else None.
    warpgroup: tuple[int, int, int] | None = None
    # The layouts of both operands' scales: (M, blocks of K) and (blocks of K, N).
    scales: tuple[tuple[Spread, Spread], ...] = ()
    k_major: bool = False  # whether it only reads tiles that are contiguous along K
    overlaps: bool = False  # whether the schedule runs it one iteration later
    ahead: bool = False  # and the matmul before it one iteration ahead
    tensor: bool = False  # whether it accumulates in tensor memory


def plans(
    facts: Facts,
    widths: Mapping[str, int],
    warps: int,
    warp_bits: int,
    table: Sequence[MatrixInstruction],
    decided: Mapping[str, Decided] = NONE,
) -> dict[int, Plan]:
    """A plan for each matmul, by the identity of its statement.

    Where a matmul takes the result of another one, each warp has whole rows, so that the result
    stays in its registers.
    """
    chained = _chained(facts)
    found = {}
    for key, one in facts.matmuls.items():
        rows, columns, depth = (prod(widths[i] for i in g) for g in (one.m, one.n, one.k))
        made = None
        own = decided.get(one.name.stem, Decided())
        for row in own.rows(table):
            if (row.a.dtype, row.b.dtype, row.c.dtype) != (
                one.dtype,
                one.dtype,
                summed_in(one.dtype),
            ):
                continue
            if depth % row.k or row.block != _block(one, widths, depth):
                continue
            if row.threads == 1 << warp_bits and row.a.registers and row.b.registers:
                made = made or _by_warps(row, rows, columns, warps, warp_bits, chained, own)
            elif _in_panels(one, row) and (warps << warp_bits) % row.threads == 0:
                own_rows = chained or bare(one.a) not in facts.staged
                made = _by_warpgroups(row, rows, columns, warps, warp_bits, own_rows, own) or made
        if made is not None and made.tensor and own.overlaps:
            what = f"`{one.name.stem}` is added up in tensor memory"
            raise BackendError("emit", f"{what}, so it is not done one iteration later")
        own.require(made is not None, one.name.stem, one.dtype)
        if made is None and one.scales:
            what = f"no instruction multiplies {rows} x {columns} elements over {depth} with scales"
            raise BackendError("emit", f"{what}, as `{one.name.stem}` is tiled")
        made = made or _by_threads(rows, columns, warps, warp_bits)
        found[key] = replace(made, overlaps=own.overlaps, ahead=own.ahead)
    return found


def _block(one: Matmul, widths: Mapping[str, int], depth: int) -> int:
    """Elements along K that share a scale; 0: there are no scales."""
    return depth // prod(widths[i] for i in one.scales[0].k) if one.scales else 0


def stage_functions(facts: Facts, planned: Mapping[int, Plan]) -> None:
    """Lets the warps that multiply compute tf32 operands B from copies of loaded variables. Storing
    the computed operands for other warps would cost another barrier.

    16-bit operands are loaded with ldmatrix instead, for which they have to be in shared memory.
    """
    for load, functions in facts.functions.items():
        operands = [
            (operand is m.b and m.dtype == "tf32" and not planned[key].warpgroup)
            for key, m in facts.matmuls.items()
            for operand in (m.a, m.b)
            if bare(operand) in functions
        ]
        if all(operands):
            facts.staged |= {load}
            facts.at_use |= {name: (load, value) for name, value in functions.items()}


def rounded_by_engine(facts: Facts, planned: Mapping[int, Plan], boxed: Collection[Name]) -> None:
    """Lets the TMA round f32 loads to tf32 operands while it copies them, where nothing else reads
    them and instructions take the tile in its layout. boxed: the variables that it loads."""
    for load, functions in facts.functions.items():
        rounded = all(
            value == of.Compute("round_tf32", (load,), floats=True) for value in functions.values()
        )
        alone = all(
            planned[key].k_major and contiguous(facts.loads[load].place) in operand.k
            for key, m in facts.matmuls.items()
            for operand in m.operands
            if bare(operand) in functions
        )
        dtype, axes = facts.typing.known[load]
        if load in boxed and rounded and alone and dtype == "f32":
            facts.staged |= {load}
            facts.at_use |= {name: (load, value) for name, value in functions.items()}
            facts.typing.known[load] = "tf32", axes


def transposed_operands(facts: Facts, planned: Mapping[int, Plan]) -> frozenset[Name]:
    """Operands that are loaded only for a matmul and are not contiguous along K, as their
    instruction requires. They go through registers, which transpose them."""
    found = set()
    for key, m in facts.matmuls.items():
        for operand in (m.a, m.b):
            name = bare(operand)
            if planned[key].k_major and name in facts.staged:
                if contiguous(facts.loads[name].place) not in operand.k:
                    found.add(name)
    return frozenset(found)


def _in_panels(one: Matmul, row: MatrixInstruction) -> bool:
    """Whether an instruction reads panelled operands from shared memory, which have no batch."""
    return bool(row.b.shared) and len(one.a.groups) == len(one.b.groups) == 2


def _chained(facts: Facts) -> bool:
    results = {facts.root((m.name, i)) for m in facts.matmuls.values() for i in (*m.m, *m.n)}
    return any(
        facts.root((name, i)) in results
        for m in facts.matmuls.values()
        for name in _names(facts, m)
        for i in facts.indices(name)
    )


def _names(facts: Facts, m: Matmul) -> list[Name]:
    operands = (n for o in (m.a, m.b) for n in o.value.walk() if isinstance(n, Name))
    return [n for n in operands if n in facts.typing.known and n not in facts.staged]


def _by_warps(
    row: MatrixInstruction,
    rows: int,
    columns: int,
    warps: int,
    warp_bits: int,
    chained: bool,
    own: Decided,
) -> Plan:
    m, n, k = row.m, row.n, row.k
    if rows < m or columns < n:
        raise BackendError("emit", f"{row.name} multiplies {m} rows and {n} columns at least")
    count = int(log2(warps))
    most_m, most_n = int(log2(rows // m)), int(log2(columns // n))
    if own.warps:
        along_m = int(log2(own.warps[0]))
    elif chained:
        along_m = min(count, most_m)
    else:
        choices = [w for w in range(count + 1) if w <= most_m and count - w <= most_n]
        choices = choices or [min(count, most_m)]
        along_m = min(choices, key=lambda w: rows / (1 << w) + columns / (1 << count - w))
    along_n = min(count - along_m, most_n)
    of_m = tuple((warp_bits + b, m << b) for b in range(along_m))
    of_n = tuple((warp_bits + along_m + b, n << b) for b in range(along_n))
    a, a_registers = factored(parse_layout(row.a.registers), m)
    b, b_registers = factored(parse_layout(row.b.registers), n)
    c, c_registers = factored(parse_layout(row.c.registers), m)
    scales = [factored(parse_layout(row.scales), m)[0]] if row.block else []
    return Plan(
        scales=tuple(
            side for x, y in scales for side in ((_with(x, of_m), y), (y, _with(x, of_n)))
        ),
        a=(_with(a[0], of_m), _paired(a[1])),
        b=(_paired(b[1]), _with(b[0], of_n)),
        c=(_with(c[0], of_m), _with(c[1], of_n)),
        depth=k,
        instruction=Instruction(
            row.name,
            a_registers,
            tuple((y, x) for x, y in b_registers),
            c_registers,
            _registers(a),
            _registers(b)[::-1],
            _registers(c),
        ),
    )


def _by_warpgroups(
    row: MatrixInstruction,
    rows: int,
    columns: int,
    warps: int,
    warp_bits: int,
    own_rows: bool,
    own: Decided,
) -> Plan | None:
    """A plan in which each warpgroup multiplies its own rows, or columns where there are too few
    rows.

    own_rows: avoids sharing rows between warpgroups, since each of them would compute the rows of a
    computed operand A.
    """
    groups = int(log2(warps // WARPGROUP))
    most_m, most_n = int(log2(rows // row.m)) if rows >= row.m else -1, int(log2(columns // row.n))
    choices = [w for w in range(groups + 1) if w <= most_m and groups - w <= most_n]
    if own.warps:
        choices = [w for w in choices if WARPGROUP << w == own.warps[0]]
    if own.shape:
        choices = [w for w in choices if (columns >> groups - w) % own.shape[1] == 0]
    choices = [w for w in choices if w == groups or _whole_panels(row, columns >> groups - w)]
    if not choices:
        return None
    along_m = (
        max(choices)
        if own_rows
        else min(choices, key=lambda w: _read(row, rows >> w, columns >> groups - w))
    )
    first = warp_bits + int(log2(WARPGROUP))
    of_m = tuple((first + b, row.m << b) for b in range(along_m))
    share = columns >> groups - along_m
    n = own.shape[1] if own.shape else _widest(row, share)
    of_n = tuple((first + along_m + b, n << b) for b in range(groups - along_m))
    held = bool(row.a.registers)  # whether A may be in registers
    a, a_registers = factored(parse_layout(row.a.registers), row.m) if held else (_NOWHERE, ())
    c, least = factored(parse_layout(row.c.registers), row.m)
    repeats = n // row.n
    columns_of = Spread(c[1].bits, (*c[1].modes, *(((repeats, row.n),) if repeats > 1 else ())))
    steps = _registers(c)
    c_registers = tuple((x, r * steps[1] + y) for r in range(repeats) for x, y in least)
    return Plan(
        a=(_with(a[0], of_m), a[1]),
        b=(replicated(), replicated()),
        c=(_with(c[0], of_m), _with(columns_of, of_n)),
        depth=row.k,
        instruction=Instruction(
            row.name.format(n=n),
            a_registers,
            (),
            c_registers,
            _registers(a) if held else (0, 0),
            (0, 0),
            (steps[0], steps[1] * repeats),
        ),
        warpgroup=(row.m, n, row.k),
        k_major=row.b.shared == ("k",),
        tensor=row.c.tensor,
    )


def _whole_panels(row: MatrixInstruction, columns: int) -> bool:
    """Whether a warpgroup's columns may share panels with others: tensor memory instructions cannot
    address part of a panel."""
    parts = row.c.tensor and "mn" in row.b.shared
    return not parts or columns * DTYPES[row.b.dtype] % PANEL_BYTES == 0


def _widest(row: MatrixInstruction, columns: int) -> int:
    """The largest N of one issue."""
    return max(size for size in row.sizes_n if columns % size == 0)


def _read(row: MatrixInstruction, rows: int, columns: int) -> int:
    """Elements of shared memory that a warpgroup reads for each element along K: both operands of
    each issue. This limits the issue rate."""
    n = _widest(row, columns)
    return rows // row.m * (columns // n) * (row.m + n)


def _by_threads(rows: int, columns: int, warps: int, warp_bits: int) -> Plan:
    """A plan without matrix instruction: each thread multiplies a few consecutive rows by a few consecutive columns."""
    bits = warp_bits + int(log2(warps))
    run_m, run_n = min(RUN, rows), min(RUN, columns)
    along_n = min(
        int(log2(columns // run_n)), bits, max(warp_bits - 1, bits - int(log2(rows // run_m)))
    )
    along_m = min(int(log2(rows // run_m)), bits - along_n)
    m = spread(range(along_n, along_n + along_m), run_m)
    n = spread(range(along_n), run_n)
    k = Spread((), ((CHUNK, 1),))
    return Plan((m, k), (k, n), (m, n), CHUNK, None)


def factored(
    operand: Layout, first: int
) -> tuple[tuple[Spread, Spread], tuple[tuple[int, int], ...]]:
    """An operand of an instruction as distributions of its two axes, and the number of each of its
    registers along each axis.

    operand: (thread, register) -> position along the first axis + first * position along the other.
    """
    threads, registers = operand
    bits: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    modes: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for bit, step in enumerate(_binary(threads)):
        axis = int(step >= first)
        bits[axis].append((bit, step // first if axis else step))
    places: list[tuple[int, int]] = []  # of each binary mode of registers: axis, weight
    for step in _binary(registers):
        axis = int(step >= first)
        places.append((axis, 1 << len(modes[axis])))
        modes[axis].append((2, step // first if axis else step))
    numbers = []
    for register in range(registers.size):
        at = [0, 0]
        for bit, (axis, weight) in enumerate(places):
            at[axis] += weight * (register >> bit & 1)
        numbers.append((at[0], at[1]))
    spreads = tuple(Spread(tuple(b), tuple(m)) for b, m in zip(bits, modes, strict=True))
    return (spreads[0], spreads[1]), tuple(numbers)


def _binary(layout: Layout) -> list[int]:
    """The step of each bit of a coordinate."""
    return [layout(1 << bit) for bit in range(layout.size.bit_length() - 1)]


def _paired(k: Spread) -> Spread:
    """K with the two elements of each thread adjacent. The order of K is free as long as A and B
    agree. In this order, results are tf32 operands without a shuffle, and a thread loads two
    elements at once."""
    return PAIRED if k == Spread(((0, 1), (1, 2)), ((2, 4),)) else k


def _with(one: Spread, warps: tuple[tuple[int, int], ...]) -> Spread:
    return Spread((*one.bits, *warps), one.modes)


def _registers(pair: tuple[Spread, Spread]) -> tuple[int, int]:
    first, second = (prod(extent for extent, _ in s.modes) for s in pair)
    return first, second
