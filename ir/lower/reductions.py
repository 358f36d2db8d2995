"""Lowers reductions and scans to loops, matmuls and running values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from ir.contraction import Contraction, factors
from ir.errors import KernelError, SourceRange
from ir.functions import IDENTITY_ELEMENTS
from ir.lower.kept import Kept
from ir.lower.launches import LOOP, Segment, Tiling
from ir.lower.loop_bounds import Limit, limits
from ir.lower.lowest import LOWEST_F32, lowest
from ir.lower.matmuls import matmul_of
from ir.lower.scope import Scope
from ir.machine import Machine
from ir.nest.nest import Dot, Fill, Map, Reduction, Scan, Tile, Value
from ir.schedule import Schedule
from ir.spec import (
    DTYPES,
    EIGHT,
    INTEGERS,
    SCALE,
    Apply,
    Cast,
    Equation,
    Expr,
    Facts,
    Number,
    Read,
    Reduce,
    Spec,
)
from ir.variant.derived import TRIPLE, owner
from ir.variant.precision import EXACT, NARROW, decided, natural, products, together, undone
from ir.variant.scaled import Scaled, scaled
from ir.variant.variant import depends, pointwise
from ir.visit import inline

WHOLE = "i8"  # operands whose products matrix units sum in i32


@dataclass(frozen=True, slots=True)
class Member:
    """A reduction of a fused group."""

    equation: Equation
    value: str  # the accumulator


@dataclass(frozen=True, slots=True)
class Moved:
    """An updated running maximum (minimum) of a fused loop."""

    equation: Equation  # of the running maximum
    before: str  # its value before this tile
    now: str  # its value after it
    scale: str  # exp(before - now), which rescales sums of exponentials; empty if there are none


class Demand(Protocol):
    """What `Reductions` needs from the program that it is part of."""

    spec: Spec
    facts: Facts
    schedule: Schedule
    machine: Machine
    segment: Segment
    tilings: Mapping[str, Tiling]
    equations: dict[str, Equation]
    values: dict[str, Value]
    kept: Kept

    def needed(self, indices: tuple[str, ...]) -> set[str]:
        """Those of the indices that have a tile origin."""

    def accumulator_dtype(self, equation: Equation) -> str:
        """The dtype in which a tensor is computed."""

    def operand(self, name: str, expr: Expr, scope: Scope, dtype: str) -> Tile:
        """A tile of an expression, computed in the scope."""

    def new(
        self, name: str, tensor: str, dtype: str, indices: tuple[str, ...], stages: int = 0
    ) -> Value:
        """A new value over some indices."""

    def open(self, scope: Scope, loops: tuple[str, ...]) -> list[Scope]:
        """The scope and one nested scope for each loop, outermost first."""

    def close(
        self, chain: list[Scope], loops: tuple[str, ...], limited: Mapping[str, Limit]
    ) -> None:
        """Closes opened scopes into loops over their index's range, or over part of it."""


class Reductions:
    """The reductions and scans of one launch."""

    def __init__(self, program: Demand):
        self.program = program
        self.schedule = program.schedule

    # -- reductions -------------------------------------------------------------------------

    def reduce(self, equation: Equation, home: Scope) -> None:
        """Emits a reduction together with those that are fused into its loop."""
        loops = self._loops(equation)
        group = self._group(equation) if loops else [equation]
        running = self._running(group) if loops else None
        if inside := home.bound & set(loops):
            raise KernelError(
                f"`{equation.target}` reduces `{', '.join(sorted(inside))}` inside a loop over it",
                place=equation.place,
                hint="place the loops that it keeps before the one that it reduces",
            )
        limited = self._limits(equation)
        for other in group:
            if self._limits(other) != limited:
                raise KernelError(
                    f"`{other.target}` and `{equation.target}` do not run over the same part of "
                    "their loop",
                    place=self._decision(other),
                )
            at_home = home.home(self.program.needed(other.indices)) is home
            if not at_home or self._loops(other) != loops:
                raise KernelError(
                    f"`{other.target}` and `{equation.target}` do not run over the same loops",
                    place=self._decision(other),
                )
            self._require_independent(other, group, running)
        if loops:
            self.program.kept.first([e.target for e in group], home)
        members = [Member(e, self._accumulator(e)) for e in group]
        scaled = running if loops and any(self._scales(running, e) for e in group) else None
        if loops:
            for m in members:
                home.statements.append(Fill(m.value, self._start(m, scaled)))
        chain = self.program.open(home, loops)
        inner = chain[-1]
        moved = None
        for m in members:
            if m.equation is running:
                moved = self._advance(m, inner, [o.equation for o in members])
                continue
            # Online softmax: earlier partial sums used an older maximum, so rescale them first.
            if moved and running and depends(self.program.spec, m.equation.target, running.target):
                inner.statements.append(Map(m.value, _kept(m, moved)))
            self._accumulate(m, inner, bool(loops))
        for m in members:
            home.tensors[m.equation.target] = m.value
        self.program.close(chain, loops, limited)
        if loops and scaled and self._is_result(scaled, group, loops):
            self._finish(scaled, home)

    def _is_result(
        self, running: Equation, group: Sequence[Equation], loops: tuple[str, ...]
    ) -> bool:
        """Whether a running maximum is stored or read after its loop, and not only subtracted."""
        if running.target in self.program.segment.stored:
            return True
        readers = [e for e in self.program.segment.equations if running.target in e.sources()]
        return any(e not in group and not set(loops) & set(e.indices) for e in readers)

    def _finish(self, running: Equation, home: Scope) -> None:
        """Restores -inf as the maximum of a row whose values are all masked. The start value stays
        if it can be a value, too."""
        start = lowest(self.program.spec, running)
        if start == LOWEST_F32:
            return
        own = Tile(home.tensors[running.target])
        dtype = self.program.accumulator_dtype(running)
        name = f"{running.target}_found"
        made = self.program.new(name, running.target, dtype, running.indices, stages=1).name
        none = Apply("eq", (own, Number(start)))
        home.statements.append(Map(made, Apply("where", (none, Number(-float("inf")), own))))
        home.tensors[running.target] = made

    def _start(self, member: Member, scaled: Equation | None) -> float | int:
        """The initial value of an accumulator: the identity element of its reduction, clamped to
        its dtype.

        scaled: the running maximum by which sums are rescaled, if any.
        """
        if member.equation is scaled:
            return lowest(self.program.spec, scaled)
        start = IDENTITY_ELEMENTS[member.equation.reduce.reduction]
        dtype = self.program.values[member.value].dtype
        if dtype == "b8":
            return bool(start)
        if dtype in INTEGERS and start in (float("inf"), -float("inf")):
            bits = 8 * DTYPES[dtype] - 1
            return (1 << bits) - 1 if start > 0 else -(1 << bits)
        return start

    def _accumulate(self, member: Member, scope: Scope, onto: bool) -> None:
        equation = member.equation
        found = products(equation) if self._unit(equation) == "matrix" else ()
        if found:
            self._dots(member, found, scope, onto)
            return
        value = equation.reduce
        source = self._body(equation, scope)
        scope.statements.append(Reduction(member.value, value.reduction, source, value.over, onto))

    def _body(self, equation: Equation, scope: Scope) -> Tile:
        dtype = self.program.accumulator_dtype(equation)
        return self.program.operand(f"{equation.target}_term", equation.reduce.body, scope, dtype)

    def _dots(
        self, member: Member, found: tuple[Contraction, ...], scope: Scope, onto: bool
    ) -> None:
        """Emits the matmuls of a sum. With several matmuls (3xTF32) or 8-bit operands each K step
        has its own accumulator, which is added to the total in full precision, because a matrix
        unit loses bits in a long sum."""
        equation, value = member.equation, member.value
        first = self._operand_dtype(equation, found[0])
        apart = onto and (first in EIGHT or (len(found) > 1 and first == "tf32"))
        if apart:
            dtype = self.program.accumulator_dtype(equation)
            name = f"{equation.target}_step"
            value = self.program.new(name, equation.target, dtype, equation.indices, 1).name
        sides: dict[Expr, Tile] = {}
        how = matmul_of(self.schedule, equation.target)
        for number, one in enumerate(found):
            self._require_matrices(equation, one)
            dtype = self._operand_dtype(equation, one)
            scaled = self._scaled(equation, one)
            for label, side in (("a", one.a), ("b", one.b)):
                if side not in sides:
                    name = f"{equation.target}_{label}"
                    expr = scaled.of(side).numbers if scaled else side
                    sides[side] = self._side(name, expr, scope, dtype)
            more = number > 0 or (onto and not apart)
            made = Dot(value, sides[one.a], sides[one.b], one.over, more, *how)
            if scaled:
                made = replace(made, over=scaled.over, scales=self._scales_of(scaled, scope))
            scope.statements.append(made)
        if apart:
            total = Apply("add", (Tile(member.value), Tile(value)))
            scope.statements.append(Map(member.value, total))

    def _scaled(self, equation: Equation, found: Contraction) -> Scaled | None:
        """The block-scaled form of a contraction, unless the schedule rounds its operands or tiles
        the elements of a block."""
        made = scaled(self.program.spec, found, self.program.machine)
        if made is None or decided(self.schedule, owner(self.schedule, equation.target)):
            return None
        return None if self.schedule.find("tile", made.over[-1]) else made

    def _scales_of(self, made: Scaled, scope: Scope) -> tuple[Tile, ...]:
        sides = (made.a.scales, made.b.scales)
        return tuple(self.program.operand(r.tensor, r, scope, SCALE) for r in sides)

    def _require_matrices(self, equation: Equation, found: Contraction) -> None:
        """Raises KernelError for a batched contraction without an N dimension, if the machine's
        matrix unit takes only batches of matrices."""
        if self.program.machine.model.matmul_needs_columns and found.batch and not found.columns:
            raise KernelError(
                f"`{equation.target}` multiplies a matrix with a vector for each "
                f"`{', '.join(found.batch)}`, which does not fill the matrix unit",
                hint=f"compute({equation.target}, unit=vector)",
            )

    def _side(self, name: str, expr: Expr, scope: Scope, dtype: str) -> Tile:
        """An operand of a matmul; a read that is only widened to f32 is taken in its stored
        dtype."""
        if isinstance(expr, Cast) and isinstance(expr.value, Read) and expr.dtype == "f32":
            if self._natural(expr) == dtype:
                expr = expr.value
        elif (read := self._whole(expr)) is not None and dtype == WHOLE:
            expr = read
        return self.program.operand(name, expr, scope, dtype)

    def _whole(self, expr: Expr) -> Read | None:
        """The i8 tensor that a factor is, widened to i32; None for other factors."""
        inner = expr.value if isinstance(expr, Cast) and expr.dtype == "i32" else None
        known = self.program.facts.tensors
        return inner if isinstance(inner, Read) and known[inner.tensor].dtype == WHOLE else None

    def _operand_dtype(self, equation: Equation, found: Contraction) -> str:
        whole = self._whole(found.a) and self._whole(found.b)
        if whole and self.program.machine.has_matrix(WHOLE):
            return WHOLE
        if made := self._scaled(equation, found):
            return made.dtype
        a, b = self._natural(found.a), self._natural(found.b)
        asked = decided(self.schedule, owner(self.schedule, equation.target))
        if asked == NARROW and a in EXACT and b in EXACT:
            raise KernelError(
                f"the operands of `{equation.target}` are {a} and {b}, which {asked} holds exactly",
                hint=f"drop precision({equation.target}, dtype={asked})",
            )
        dtype = NARROW if asked == TRIPLE else asked or together(a, b)
        target = equation.target
        if not self.program.machine.has_matrix(dtype):
            raise KernelError(
                f"the matrix unit of `{self.program.machine.name}` takes no {dtype} operands, "
                f"which `{target}` has",
                allowed=", ".join(self.program.machine.units["matrix"].flops),
                hint=f"precision({target}, dtype=bf16)"
                if dtype in EIGHT
                else f"compute({target}, unit=vector)",
            )
        return dtype

    def _natural(self, expr: Expr) -> str:
        """The narrowest dtype known to hold every value of a factor exactly."""
        inner = expr.value if isinstance(expr, Cast) else expr
        loaded = isinstance(inner, Read) and self.program.segment.loads(inner)
        return natural(expr, self.program.facts.tensors, () if loaded else self.program.equations)

    def _accumulator(self, equation: Equation) -> str:
        dtype = self.program.accumulator_dtype(equation)
        return self.program.new(equation.target, equation.target, dtype, equation.indices).name

    def _unit(self, equation: Equation) -> str:
        decision = self.schedule.find("compute", owner(self.schedule, equation.target))
        return str(decision.option("unit")) if decision else "vector"

    def _loops(self, equation: Equation) -> tuple[str, ...]:
        tilings = self.program.tilings
        return tuple(
            c.index for c in tilings.values() if c.level == LOOP and c.index in equation.reduced
        )

    def _limits(self, equation: Equation) -> Mapping[str, Limit]:
        program = self.program
        return limits(equation, program.spec, self.schedule, program.tilings)

    # -- groups -----------------------------------------------------------------------------

    def _group(self, equation: Equation) -> list[Equation]:
        """The reductions that share this one's loop, in the order of the spec."""
        pairs = [
            (d.subject, str(d.option("into")))
            for verb in ("fuse", "online")
            for d in self.schedule.of(verb)
        ]
        names, grown = {equation.target}, True
        while grown:
            more = {n for pair in pairs if set(pair) & names for n in pair} - names
            names |= more
            grown = bool(more)
        return [e for e in self.program.segment.equations if e.target in names]

    def _running(self, group: list[Equation]) -> Equation | None:
        """The running maximum or minimum of a group; None if it has none."""
        for e in group:
            if self.schedule.find("online", e.target):
                return e
        return None

    def _decision(self, equation: Equation) -> SourceRange | None:
        """Where the schedule puts a reduction into a group, for error messages."""
        verbs = ("fuse", "online")
        found = (self.schedule.find(verb, equation.target) for verb in verbs)
        return next((d.place for d in found if d), None)

    def _require_independent(
        self, other: Equation, group: list[Equation], running: Equation | None
    ) -> None:
        spec, place = self.program.spec, self._decision(other)
        for first in group:
            if first is other or not depends(spec, other.target, first.target):
                continue
            if first is not running:
                raise KernelError(
                    f"`{other.target}` needs the finished `{first.target}`, so they cannot "
                    "share a loop",
                    place=place,
                    hint=f"hoist or online `{first.target}`, or drop the fuse",
                )
            self._require_scalable(other, running)

    def _require_scalable(self, other: Equation, running: Equation) -> None:
        """Raises KernelError unless `other` is the position of the running maximum, or a sum over a
        product whose only factor that depends on it is exp(f - maximum). Earlier terms of such a
        sum are rescaled by exp(old - new)."""
        if _places(other, running):
            return
        body = undone(self.program.spec, other).reduce.body
        for e in reversed(self.program.spec.equations):
            if e.target != running.target and pointwise(e):
                if depends(self.program.spec, e.target, running.target):
                    body = inline(body, e)
        known = [f for f in factors(body) if self._mentions(f, running.target)]
        fine = (
            (running.reduce.reduction, other.reduce.reduction) == ("max", "sum")
            and len(known) == 1
            and isinstance(known[0], Apply)
            and known[0].function == "exp"
            and isinstance(known[0].args[0], Apply)
            and known[0].args[0].function == "sub"
            and isinstance(known[0].args[0].args[1], Read)
            and known[0].args[0].args[1].tensor == running.target
            and not self._mentions(known[0].args[0].args[0], running.target)
        )
        if not fine:
            raise KernelError(
                f"`{other.target}` cannot be rescaled as the maximum `{running.target}` grows: "
                f"its body is not a product with one factor exp(... - {running.target}[...])",
                place=self._decision(other),
            )

    def _scales(self, running: Equation | None, other: Equation) -> bool:
        """Whether a sum is rescaled when the running maximum grows."""
        if running is None or other is running or _places(other, running):
            return False
        return depends(self.program.spec, other.target, running.target)

    def _mentions(self, expr: Expr, tensor: str) -> bool:
        reads = (n for n in expr.walk() if isinstance(n, Read))
        return any(depends(self.program.spec, r.tensor, tensor) for r in reads)

    def _advance(self, member: Member, scope: Scope, group: list[Equation]) -> Moved:
        """Updates the running maximum with this tile, and computes the scale if a sum needs it."""
        running = member.equation
        target, names = running.target, running.indices
        dtype = self.program.accumulator_dtype(running)
        before = self.program.new(f"{target}_before", target, dtype, names, stages=1).name
        scale = ""
        if any(self._scales(running, e) for e in group):
            scale = self.program.new(f"{target}_scale", target, dtype, names, stages=1).name
        scope.statements.append(Map(before, Tile(member.value)))
        self._accumulate(member, scope, True)
        if scale:
            difference = Apply("sub", (Tile(before), Tile(member.value)))
            scope.statements.append(Map(scale, Apply("exp", (difference,))))
        scope.tensors[target] = member.value
        return Moved(running, before, member.value, scale)

    # -- scans ------------------------------------------------------------------------------

    def scan(self, equation: Equation, home: Scope) -> None:
        """Emits a scan; its carry is initialised outside the loop along it."""
        value = equation.scan
        program = self.program
        outer = home
        if value.along in program.needed((value.along,)):
            outer = cast(Scope, next(s for s in home.chain() if value.along in s.binds).parent)
            if home.bound - outer.bound != {value.along}:
                raise KernelError(
                    f"the loop over `{value.along}` must be the innermost around its scan",
                    hint="place it last",
                )
        dtype = program.accumulator_dtype(equation)
        kept = tuple(i for i in equation.indices if i != value.along)
        carry = program.new(f"{equation.target}_carry", equation.target, dtype, kept, stages=1)
        outer.statements.append(Fill(carry.name, IDENTITY_ELEMENTS[value.reduction]))
        source = program.operand(f"{equation.target}_term", value.body, home, dtype)
        out = program.new(equation.target, equation.target, dtype, equation.indices)
        # A scan runs along an axis of its result: bring the source's axes into the same order.
        if sorted(program.values[source.value].names) == sorted(out.names):
            if program.values[source.value].names != out.names:
                transposed = program.new(
                    f"{equation.target}_transposed", out.name, dtype, out.names, 1
                )
                home.statements.append(Map(transposed.name, source))
                source = Tile(transposed.name)
        home.statements.append(Scan(out.name, value.reduction, source, value.along, carry.name))
        home.tensors[equation.target] = out.name


def _places(e: Equation, extremum: Equation) -> bool:
    """Whether an equation is the argmax form of `extremum`: min(where(f == extremum, position,
    count), i), or the same with `(f == extremum) | isnan(f)`."""
    if not isinstance(e.value, Reduce) or e.value.reduction != "min":
        return False
    top = Read(extremum.target, extremum.at)
    match e.value.body:
        case Apply("where", (found, place, count)):
            same = Apply("eq", (extremum.reduce.body, top))
            nan = Apply("isnan", (extremum.reduce.body,))
            alone = not any(n == top for part in (place, count) for n in part.walk())
            return found in (same, Apply("or", (same, nan))) and alone
    return False


def _kept(member: Member, moved: Moved) -> Expr:
    """An accumulator after the running maximum changed: a sum is rescaled; a position is kept only
    if the maximum is unchanged."""
    own = Tile(member.value)
    if not _places(member.equation, moved.equation):
        return Apply("mul", (own, Tile(moved.scale)))
    found, _, count = cast(Apply, member.equation.reduce.body).args
    same: Expr = Apply("eq", (Tile(moved.before), Tile(moved.now)))
    # Once the maximum is NaN it stays NaN, and so does its first position.
    if cast(Apply, found).function == "or":
        same = Apply("or", (same, Apply("isnan", (Tile(moved.before),))))
    return Apply("where", (same, own, count))
