"""Block-scaled contractions: 8-bit operands with a scale for each block along K."""

from __future__ import annotations

from dataclasses import dataclass

from ir.contraction import Contraction, factors
from ir.machine import Machine
from ir.spec import EIGHT, SCALE, Cast, Expr, Index, Number, Read, Spec
from ir.verify import facts


@dataclass(frozen=True, slots=True)
class Side:
    """An operand: its numbers, and its scales, whose indices lack only the one within a block."""

    whole: Expr
    numbers: Read
    scales: Read


@dataclass(frozen=True, slots=True)
class Scaled:
    """sum(a.numbers * a.scales * b.numbers * b.scales, over)."""

    a: Side
    b: Side
    over: tuple[str, ...]  # K; the last index counts the elements of a block
    dtype: str  # of the numbers

    def of(self, side: Expr) -> Side:
        """The operand with the given expression."""
        return self.a if self.a.whole == side else self.b


def scaled(spec: Spec, found: Contraction, machine: Machine) -> Scaled | None:
    """The block-scaled form of a contraction.

    None if it has none, or if the machine's instructions do not take scales of such blocks.
    """
    a, b = (_side(spec, side) for side in (found.a, found.b))
    if a is None or b is None:
        return None
    dtypes = {t.name: t.dtype for t in spec.inputs}
    dtype, within = dtypes[a.numbers.tensor], _names(a.numbers)[-1]
    if dtypes[b.numbers.tensor] != dtype or _names(b.numbers)[-1] != within:
        return None
    if within not in found.over or len(found.over) < 2:
        return None
    block, known = machine.scaled_block(dtype), facts(spec).ranges[within]
    if not block or (known.low, known.high) != (Number(0), Number(block)):
        return None
    return Scaled(a, b, (*(i for i in found.over if i != within), within), dtype)


def _side(spec: Spec, side: Expr) -> Side | None:
    """An operand as numbers times scales; None unless both are inputs at plain indices."""
    reads = [f.value if isinstance(f, Cast) and f.dtype == "f32" else f for f in factors(side)]
    dtypes = {t.name: t.dtype for t in spec.inputs}
    if len(reads) != 2:
        return None
    plain = [
        r
        for r in reads
        if isinstance(r, Read) and r.pad is None and all(isinstance(i, Index) for i in r.at)
    ]
    numbers = [r for r in plain if dtypes.get(r.tensor) in EIGHT]
    scales = [r for r in plain if dtypes.get(r.tensor) == SCALE]
    if len(numbers) != 1 or len(scales) != 1:
        return None
    names = _names(numbers[0])
    if sorted(_names(scales[0])) != sorted(names[:-1]) or len(set(names)) != len(names):
        return None
    return Side(side, numbers[0], scales[0])


def _names(read: Read) -> tuple[str, ...]:
    return tuple(i.name for i in read.at if isinstance(i, Index))
