"""Matmuls of fragments, whose registers form matrices by the layouts of an instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from backends.backend import BackendError
from backends.gpu.layout.layout import Layout
from backends.gpu.matrix.fragments import Fragments, fragments
from backends.gpu.threads.interpreter.expressions import Run
from backends.gpu.threads.interpreter.faults import FRAGMENT, OUT_OF_BOUNDS
from backends.gpu.threads.interpreter.registers import require_same
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.thread import Instruction
from ir.spec import FLOATS
from machines.gpu.matrix_instructions import MatrixInstruction

Steps = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Matrices:
    """The matrices of each warp that a fragment holds."""

    at: np.ndarray  # [warps, rows, columns] -> index of the element in the fragment's array
    home: np.ndarray  # (the fragment's array, flat) -> index of the element in the matrices
    rows: np.ndarray  # [warps, rows, columns] -> position along the first axis
    columns: np.ndarray  # along the second axis


def multiply(
    block: Block,
    variables: tuple[Variable, Variable, Variable],
    instruction: Instruction | None,
    table: Sequence[MatrixInstruction],
    first: Run | None,
    scaled: Sequence[Variable] = (),
) -> Run:
    """The closure of to += a @ b. first: the register of a along K at which b begins. scaled: the
    block scales of a and b."""
    onto, a, b = variables
    if instruction is None:
        return _of_threads(block, variables, first)
    row = instruction_of(table, instruction.name)
    if row.a is None or row.b is None:
        raise BackendError("emit", f"`{instruction.name}` does not multiply registers alone")
    k = row.k
    of_a = matrices(block, a, (instruction.a, instruction.a_steps), row.a, (row.m, k))
    of_b = matrices(
        block, b, (instruction.b, instruction.b_steps), row.b, (row.n, k), transposed=True
    )
    of_c = matrices(block, onto, (instruction.c, instruction.c_steps), row.c, (row.m, row.n))
    _require_fit(block, (of_c, of_a, of_b), first is not None)
    scales = _scales(block, scaled, row, (of_a, of_b))
    batch = len(onto.axes) > 2
    depth = of_b.at.shape[1]
    kind = computed_in(onto)
    shape = (block.threads, *onto.shape[-2:])

    def run() -> None:
        block.require_groups("a matrix instruction", row.threads)
        start = 0
        if first is not None:
            start = int(block.alike(first())) * k // instruction.a_steps[1]
        at = of_a.at[:, :, start : start + depth]
        if at.shape[2] != depth or start % k:
            raise block.fault(
                OUT_OF_BOUNDS,
                f"the part of `{a.name.stem}` along K begins at {start} of {of_a.at.shape[2]}",
                "let `first` be the first register of an issue",
            )
        left, right = (_flat(block.whole(v), batch).astype(kind, copy=False) for v in (a, b))
        left, right = left[:, at], right[:, of_b.at]
        if scales is not None:
            left, right = scales(left, right, batch)
        sums = np.matmul(left, right).astype(kind, copy=False).reshape(len(left), -1)
        found = sums[:, of_c.home].reshape(-1, *shape)
        add(block, onto, np.moveaxis(found, 0, 1) if batch else found[0])

    return run


def _scales(
    block: Block, scaled: Sequence[Variable], row: Fragments, operands: tuple[Matrices, Matrices]
) -> Callable[[np.ndarray, np.ndarray, bool], tuple[np.ndarray, np.ndarray]] | None:
    """The function that multiplies the matrices A and B by their block scales; None without scales.
    Computed in f64, as a scale may be as large as the largest f32 number."""
    if bool(scaled) != (row.scales is not None):
        raise BackendError("emit", "scales go with an instruction that takes them")
    if row.scales is None:
        return None
    (a, b), blocks, one = scaled, row.k // row.block, ((((0, 0),)), (1, 1))
    of_a, of_b = operands
    own_a = matrices(block, a, one, row.scales, (row.m, blocks))
    own_b = matrices(block, b, one, row.scales, (row.n, blocks), transposed=True)
    for what, found, expected in (
        ("rows of A", own_a.rows[:, :, :1], of_a.rows[:, :, :1]),
        ("blocks of A", own_a.columns[:, :1], of_a.columns[:, :1, :: row.block] // row.block),
        ("columns of B", own_b.columns[:, :1], of_b.columns[:, :1]),
        ("blocks of B", own_b.rows[:, :, :1], of_b.rows[:, :: row.block, :1] // row.block),
    ):
        if found.shape != expected.shape or (found != expected).any():
            hint = "derive the axes of the scales from the instruction's layout of them"
            raise block.fault(FRAGMENT, f"scales: {what} lie elsewhere", hint)

    def run(left: np.ndarray, right: np.ndarray, batch: bool) -> tuple[np.ndarray, np.ndarray]:
        x, y = (_flat(block.whole(v), batch).astype(np.float64) for v in (a, b))
        return (
            left * x[:, own_a.at].repeat(row.block, -1),
            right * y[:, own_b.at].repeat(row.block, -2),
        )

    return run


def instruction_of(
    table: Sequence[MatrixInstruction], name: str, n: int | None = None
) -> Fragments:
    """The operands of the instruction with this name. n: the N in the name, if it varies."""
    for row in table:
        if name == (row.name if n is None else row.name.format(n=n)):
            return fragments(row, n)
    raise BackendError("emit", f"the table has no matrix instruction `{name}`")


def computed_in(onto: Variable) -> type[np.generic]:
    """The dtype of the computation: f64 represents sums of small integers exactly."""
    return np.float32 if onto.dtype in FLOATS and onto.dtype != "f64" else np.float64


def add(block: Block, onto: Variable, found: np.ndarray) -> None:
    before = block.read(onto)
    if onto.dtype in FLOATS:
        block.write(onto, before + found, "f64" if onto.dtype == "f64" else "f32")
    else:
        block.write(onto, before.astype(np.int64) + found.astype(np.int64), "i64")


def _flat(data: np.ndarray, batch: bool) -> np.ndarray:
    """Reshapes to [entries of the batch, elements of all threads]."""
    return np.moveaxis(data, 1, 0).reshape(data.shape[1], -1) if batch else data.reshape(1, -1)


def matrices(
    block: Block,
    v: Variable,
    registers: tuple[tuple[Steps, ...], Steps],
    layout: Layout,
    shape: tuple[int, int],
    transposed: bool = False,
) -> Matrices:
    """The matrices of a fragment's last two axes.

    registers: offsets of the instruction's registers among the fragment's, and how many one issue
    covers.
    layout: (thread, register) -> first + shape[0] * second.
    transposed: `first` is along the fragment's second axis.
    """

    def unfit(what: str) -> Exception:
        hint = "derive the fragment's axes from the instruction's operand layout"
        return block.fault(FRAGMENT, f"`{v.name.stem}` has {what}", hint)

    offsets, steps = registers
    own, values = (mode.size for mode in layout)
    counts = (v.axes[-2].count, v.axes[-1].count)
    if values != len(offsets) or block.threads % own:
        raise unfit(f"{len(offsets)} registers for `{layout}`")
    if counts[0] % steps[0] or counts[1] % steps[1]:
        raise unfit(f"{counts[0]} x {counts[1]} registers, which {steps} do not divide")
    if any(not 0 <= o < s for pair in offsets for o, s in zip(pair, steps)):
        raise unfit(f"no registers at {offsets} in an issue of {steps}")
    warps, issues = block.threads // own, (counts[0] // steps[0], counts[1] // steps[1])
    second, first = np.divmod(np.array(layout.indices()).reshape(values, own), shape[0])
    (r, c), sides = ((second, first), shape[::-1]) if transposed else ((first, second), shape)
    at = np.full((warps, issues[0] * sides[0], issues[1] * sides[1]), -1, np.int64)
    places = np.arange(at.size).reshape(at.shape)
    home = np.full(block.threads * counts[0] * counts[1], -1, np.int64)
    threads = np.arange(block.threads).reshape(warps, own) * counts[0] * counts[1]
    for i, j in np.ndindex(issues):
        for value, (row, column) in enumerate(offsets):
            number = threads + (i * steps[0] + row) * counts[1] + j * steps[1] + column
            where = (slice(None), i * sides[0] + r[value], j * sides[1] + c[value])
            at[where] = number
            home[number] = places[where]
    if (at < 0).any() or (home < 0).any():
        raise unfit(f"elements that `{layout}` at {offsets} leaves out")
    thread, register = np.divmod(at, counts[0] * counts[1])
    rows = v.axes[-2].positions[thread, register // counts[1]]
    return Matrices(at, home, rows, v.axes[-1].positions[thread, register % counts[1]])


def _require_fit(block: Block, found: tuple[Matrices, Matrices, Matrices], part: bool) -> None:
    """Raises ThreadFault where the matrices are not at the same positions of M, N and K.

    part: B begins at a register of A that is only known at run time.
    """
    c, a, b = found
    of_a, of_b = np.swapaxes(a.columns[:, :1], 1, 2), b.rows[:, :, :1]
    if part and of_a.shape[1] % of_b.shape[1] == 0:  # each part of A has the same offsets as B
        of_a = np.moveaxis(of_a.reshape(len(of_a), -1, of_b.shape[1]), 1, 2)
        of_a, of_b = of_a - of_a[:, :1], of_b - of_b[:, :1]
    for what, one, other in (
        ("rows of A", a.rows, a.rows[:, :, :1]),
        ("K of A", a.columns, a.columns[:, :1]),
        ("K of B", b.rows, b.rows[:, :, :1]),
        ("columns of B", b.columns, b.columns[:, :1]),
        ("rows of A and of the result", a.rows[:, :, :1], c.rows),
        ("columns of B and of the result", b.columns[:, :1], c.columns),
        ("K of A and B", of_a, of_b),
    ):
        if any(p != q and 1 not in (p, q) for p, q in zip(one.shape, other.shape)):
            wrong = f"{what}: {one.shape[1:]} elements of a warp meet {other.shape[1:]}"
        else:
            one, other = np.broadcast_arrays(one, other)
            if (one == other).all():
                continue
            warp, row, column = np.argwhere(one != other)[0]
            meet = f"{one[warp, row, column]} and {other[warp, row, column]}"
            wrong = f"{what}: positions {meet} meet in element ({row}, {column}) of warp {warp}"
        hint = "derive the axes of all three fragments from the instruction's operand layouts"
        raise block.fault(FRAGMENT, wrong, hint)


def _of_threads(
    block: Block, variables: tuple[Variable, Variable, Variable], first: Run | None
) -> Run:
    """The closure of a matmul without instruction: each thread multiplies what it holds."""
    onto, a, b = variables
    require_same(f"rows of `{a.name.stem}`", onto.axes[-2], a.axes[-2])
    require_same(f"columns of `{b.name.stem}`", onto.axes[-1], b.axes[-1])
    if first is None:
        require_same(f"K of `{a.name.stem}` and `{b.name.stem}`", a.axes[-1], b.axes[-2])
    depth = b.axes[-2].count
    kind = computed_in(onto) if onto.dtype in FLOATS else np.int64

    def run() -> None:
        start = int(block.alike(first())) if first is not None else 0
        left, right = (block.whole(v).astype(kind, copy=False) for v in (a, b))
        add(block, onto, np.matmul(left[..., start : start + depth], right))

    return run
