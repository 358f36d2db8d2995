"""Builds the statements of one launch, on demand from its stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ir.affine import affine
from ir.dtypes import Dtypes, is_integer, strong
from ir.errors import KernelError
from ir.lower.access import Access, accesses, extent
from ir.lower.carries import Carries
from ir.lower.hoisted import before_loops
from ir.lower.kept import Kept
from ir.lower.launches import GRID, LOOP, STEP, WHOLE, Segment, Tiling
from ir.lower.loop_bounds import Limit
from ir.lower.reductions import Reductions
from ir.lower.scatters import add_updates
from ir.lower.scope import Scope
from ir.lower.stores import stored_from_end, stored_region
from ir.machine import Machine
from ir.nest.bulk import bulk, epilogue_of, hint, rows_of
from ir.nest.nest import (
    Axis,
    Bound,
    Load,
    Loop,
    Map,
    Search,
    Slice,
    Statement,
    Store,
    Take,
    Tile,
    Value,
)
from ir.nest.steps import promote
from ir.recurrence import step_before
from ir.schedule import Schedule
from ir.spec import (
    FLOATS,
    INNER,
    Apply,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Facts,
    Index,
    Number,
    Read,
    Reduce,
    Scan,
    Size,
    Spec,
    Tensor,
)
from ir.variant.atomic import updated
from ir.variant.derived import counts_parts


class Program:
    """Builds the `once` and `body` blocks of a launch."""

    def __init__(
        self,
        spec: Spec,
        facts: Facts,
        schedule: Schedule,
        machine: Machine,
        segment: Segment,
        tilings: Mapping[str, Tiling],
    ):
        self.spec = spec
        self.facts = facts
        self.schedule = schedule
        self.machine = machine
        self.segment = segment
        self.tilings = tilings
        self.equations = segment.by_target()
        self._sources = segment.sources()
        self.values: dict[str, Value] = {}
        self.top = Scope(None, frozenset(c.index for c in tilings.values() if c.level == STEP))
        self.grid = Scope(self.top, frozenset(c.index for c in tilings.values() if c.level == GRID))
        self.reductions = Reductions(self)
        self.carries = Carries(self)
        self.kept = Kept(self)
        self._touched: dict[str, None] = {}
        self._borders = segment.borders()
        # A value is reused if several loops compute or load the same thing.
        self._pointwise_values: dict[str, str] = {}
        self._load_values: dict[int, str] = {}
        self._accesses = accesses(facts)
        self._from_end = stored_from_end(spec, segment)
        self._axes: dict[str, Axis] = {}

    @property
    def once(self) -> tuple[Statement, ...]:
        """The prologue: the statements before the grid's tiles, in which no grid index occurs."""
        return tuple(self.top.statements)

    @property
    def body(self) -> tuple[Statement, ...]:
        """The statements of one tile of the grid."""
        return tuple(self.grid.statements)

    @property
    def touched(self) -> tuple[str, ...]:
        """The global tensors that are read or written."""
        return tuple(self._touched)

    def build(self) -> None:
        """Emits every stored tensor; those under the same loops share them."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in self.segment.stored:
            indices = updated(self.equations[name])
            loops = tuple(
                c.index for c in self.tilings.values() if c.level == LOOP and c.index in indices
            )
            groups.setdefault(loops, []).append(name)
        for loops, names in groups.items():
            if loops:
                self.kept.first(names, self.grid)
            with_loops = self.open(self.grid, loops)
            for name in names:
                self._store(name, with_loops[-1])
            self.close(with_loops, loops, {})

    # -- loops ------------------------------------------------------------------------------

    def open(self, scope: Scope, loops: tuple[str, ...]) -> list[Scope]:
        """The scope and one nested scope for each loop, outermost first."""
        chain = [scope]
        for index in loops:
            chain.append(Scope(chain[-1], frozenset({index})))
        return chain

    def close(
        self, chain: list[Scope], loops: tuple[str, ...], limited: Mapping[str, Limit]
    ) -> None:
        """Closes opened scopes into loops, each at the end of the scope around it.

        limited: the bounds of loops over part of their range.
        """
        for inner, outer, index in zip(
            reversed(chain[1:]), reversed(chain[:-1]), reversed(loops), strict=True
        ):
            cut = self.tilings[index]
            self.carries.hand_on(inner)
            span = limited.get(index, Limit(cut.range.low, cut.range.high))
            low, high = (self._bound(cut, e, outer) for e in (span.low, span.high))
            back = any(r.index == index and r.backwards for r in self.segment.carried)
            unroll = self.schedule.find("unroll_loop", f"{index}.outer")
            factor, body = unroll.number("factor") if unroll else 0, tuple(inner.statements)
            outer.statements.append(Loop(index, cut.tile, low, high, body, back, factor))

    def _bound(self, cut: Tiling, expr: Expr, scope: Scope) -> Bound:
        if not isinstance(expr, Read):
            return Bound(size=expr)
        form = affine(expr.at[0])
        for index, _ in form.terms if form else ():
            if self.tilings[index].tile != 1 or index not in scope.bound:
                raise KernelError(
                    f"`{cut.index}` runs over a range that `{index}` bounds, so `{index}` "
                    "must be walked one at a time outside it",
                    hint=f"tile({index}, size=1) and place({index}.outer, level=grid)",
                )
        if form is None:
            raise KernelError("a jagged bound is read at an affine position", place=expr.place)
        self.touch(expr.tensor)
        return Bound(tensor=expr.tensor, position=Slice(None, form.terms, form.offset))

    # -- tensors ----------------------------------------------------------------------------

    def needed(self, indices: tuple[str, ...] | frozenset[str]) -> set[str]:
        """Those of the indices that have a tile origin."""
        return {i for i in indices if self.tilings[i].level != WHOLE}

    def tensor(self, name: str, scope: Scope) -> str:
        """The value that holds a tensor of this launch, computed where it is first needed."""
        if found := scope.tensor(name) or self.kept.tensor(name, scope):
            return found
        equation = self.equations[name]
        home = scope.home(self.needed(equation.indices))
        if home is None:
            raise KernelError(
                f"`{name}` is needed outside the loop over "
                f"{', '.join(sorted(self.needed(equation.indices) - scope.bound))} "
                "in which it is computed",
                hint=f"end a launch there: kernel({name}), or leave the index untiled",
            )
        if isinstance(equation.value, Reduce):
            self.reductions.reduce(equation, home)
        elif isinstance(equation.value, Scan):
            self.reductions.scan(equation, home)
        else:
            self._pointwise(equation, home)
        value = cast(str, home.tensor(name))
        self.kept.note(name, name, value, home)
        return value

    def _pointwise(self, equation: Equation, home: Scope) -> None:
        expression = self.expression(equation.value, home)
        name = equation.target
        if self._same(expression, equation):
            home.tensors[name] = cast(Tile, expression).value
            return
        if name not in self._pointwise_values:
            value = self.new(name, name, self._dtype(equation), equation.indices)
            self._pointwise_values[name] = value.name
        home.statements.append(Map(self._pointwise_values[name], expression))
        home.tensors[name] = self._pointwise_values[name]

    def _same(self, expression: Expr, equation: Equation) -> bool:
        """Whether a pointwise tensor only renames an existing tile."""
        if not isinstance(expression, Tile) or expression.windows or expression.shifted:
            return False
        value = self.values[expression.value]
        return value.dtype == self._dtype(equation) and value.names == equation.indices

    def _dtype(self, equation: Equation) -> str:
        """The dtype of a pointwise tensor's tile: the stored dtype if the launch does not read
        it."""
        name = equation.target
        if name in self.segment.stored and name not in self._sources:
            return self.stored_dtype(name)
        return self.accumulator_dtype(equation)

    def accumulator_dtype(self, equation: Equation) -> str:
        """The dtype in which a tensor is computed: 16-bit floats are widened to f32; tf32, the
        rounded form of a matmul operand, is not."""
        dtype = self.facts.tensors[equation.target].dtype
        return dtype if dtype in INNER else promote((dtype,))

    def stored_dtype(self, name: str) -> str:
        """The dtype that a stored tensor has in global memory."""
        declared = {t.name: t.dtype for t in self.spec.outputs}
        return declared.get(name, self.facts.tensors[name].dtype)

    def new(
        self, name: str, tensor: str, dtype: str, indices: tuple[str, ...], stages: int = 0
    ) -> Value:
        """A new value over some indices, with a name that is unique in the launch. It has no axis
        for an index over the parts of a split, as a thread block makes one part."""
        axes = tuple([self._axis(i) for i in indices if not self.counts_parts(i)])
        slots = self.kept.slots(tensor, indices) if name == tensor else None
        return self._add(
            Value(name, tensor, dtype, axes, stages or self.stages(tensor), slots=slots)
        )

    def _axis(self, index: str) -> Axis:
        """The axis of an index, which its values share."""
        if index not in self._axes:
            self._axes[index] = Axis(index, extent(self.tilings[index]))
        return self._axes[index]

    def counts_parts(self, index: str) -> bool:
        """Whether the index counts the parts of a split and each thread block makes one of them."""
        return self.tilings[index].level == GRID and counts_parts(self.schedule, index)

    def _add(self, value: Value) -> Value:
        name, number = value.name, 2
        while name in self.values:
            name, number = f"{value.name}_{number}", number + 1
        self.values[name] = value if name == value.name else replace(value, name=name)
        return self.values[name]

    def stages(self, tensor: str) -> int:
        """The number of pipeline stages of a tensor's tile."""
        pipeline = self.schedule.find("pipeline", tensor)
        return pipeline.number("stages", 1) if pipeline else 1

    def touch(self, tensor: str) -> None:
        """Records that the launch uses a global tensor."""
        self._touched[tensor] = None

    # -- expressions ------------------------------------------------------------------------

    def expression(self, expr: Expr, scope: Scope) -> Expr:
        """The expression over tiles that are available in the scope."""
        match expr:
            case Read():
                return self.read(expr, scope)
            case Bucketize():
                return self._search(expr, scope)
            case Apply():
                args = tuple([self.expression(a, scope) for a in expr.args])
                return Apply(expr.function, args, place=expr.place)
            case Cast():
                return Cast(expr.dtype, self.expression(expr.value, scope), place=expr.place)
            case Size(name):
                number = dict(self.spec.attributes).get(name)
                return Number(number) if isinstance(number, int) else expr
        return expr

    def operand(self, name: str, expr: Expr, scope: Scope, dtype: str) -> Tile:
        """A tile of the expression in a dtype: an existing one, or a new value `name`."""
        found = self.expression(expr, scope)
        if isinstance(found, Tile) and self.values[found.value].dtype == dtype:
            return found
        inside = frozenset(n.name for n in expr.walk() if isinstance(n, Index))
        hoists = self.machine.rendering.hoists
        home = before_loops(scope, self.needed(inside), found) if hoists else scope
        if made := home.operands.get((found, dtype)):
            return Tile(made)
        indices = tuple(i for i in self.tilings if i in inside)
        value = self.new(name, name, dtype, indices, self._stages_of(found)).name
        home.statements.append(Map(value, Cast(dtype, found) if dtype in INNER else found))
        if home is not scope:
            home.operands[found, dtype] = value
        return Tile(value)

    def _stages_of(self, found: Expr) -> int:
        """The stages of an operand: those of the computed tile that it converts, so that the next
        tile is converted while one is used."""
        source = self.values[found.value] if isinstance(found, Tile) else None
        return source.stages if source is not None and not source.loaded else 1

    def read(self, read: Read, scope: Scope) -> Tile:
        """The tile of a read: of this launch's own tensor, or loaded from global memory."""
        for walked in self.segment.carried:
            if step_before(read, walked, self.equations):
                return self.carries.read(read, walked, scope)
        if self.segment.loads(read):
            return self._load(read, scope)
        equation = self.equations[read.tensor]
        plain = tuple(p.name for p in read.at if isinstance(p, Index))
        if plain != equation.indices or len(plain) != len(read.at):
            raise KernelError(
                f"`{read.tensor}` is read at other indices than it is computed at, which needs "
                "all of it",
                place=read.place,
                hint=f"end a launch there: kernel({read.tensor})",
            )
        return Tile(self.tensor(read.tensor, scope))

    def _search(self, expr: Bucketize, scope: Scope) -> Tile:
        dtype, ends = self._dtype_of(expr.value), self.facts.tensors[expr.borders].dtype
        key = expr.value
        if ends in FLOATS and dtype not in FLOATS:
            dtype = "f64" if ends == "f64" else "f32"
            key = Cast(dtype, key, place=expr.place)
        source = self.operand(f"{expr.borders}_key", key, scope, dtype)
        borders, size = self._resident(expr.borders)
        names = self.values[source.value].names
        value = self.new(f"{expr.borders}_rank", expr.borders, "i32", names, stages=1)
        scope.statements.append(Search(value.name, source, Tile(borders), size))
        return Tile(value.name)

    def _dtype_of(self, expr: Expr) -> str:
        if isinstance(expr, Read):
            return self.facts.tensors[expr.tensor].dtype
        if isinstance(expr, Cast):
            return expr.dtype
        known = {name: t.dtype for name, t in self.facts.tensors.items()}
        found = strong(Dtypes(known, dict(self.spec.attributes)).of(expr))
        return found if is_integer(found) else "f32"

    def _resident(self, tensor: str) -> tuple[str, Expr]:
        """A 1-D tensor loaded whole at the start of the launch: its value and its size."""
        source = self.facts.tensors[tensor]
        if found := self.top.loads.get(tensor):
            return found, source.shape[0]
        axis = f"{tensor}_0"
        value = self._add(
            Value(tensor, tensor, source.dtype, (Axis(axis, source.shape[0]),), loaded=True)
        )
        whole = Slice(axis, (), Number(0), whole=True)
        shared = self._shared(tensor, frozenset(), self.top)
        self.top.statements.append(Load(value.name, tensor, (whole,), shared=shared))
        self.top.loads[tensor] = value.name
        self.touch(tensor)
        return value.name, source.shape[0]

    # -- loads and stores -------------------------------------------------------------------

    def _load(self, read: Read, scope: Scope) -> Tile:
        tensor = self.facts.tensors[read.tensor]
        outside = self._outside(read.tensor, scope)
        found = self._accesses.of(read, tensor, self.tilings, outside)
        # The launch already holds this tensor whole, for a search: take entries from that value.
        if self._searched(read.tensor) and found.rows[0] is not None and read.pad is None:
            return self._take(read, found, scope)
        name = scope.load(found.number) or self.kept.load(read.tensor, found.number, scope)
        if name is None:
            name = self._new_load(read, tensor, found, scope)
        return Tile(name, found.windows, found.shifted)

    def _new_load(self, read: Read, tensor: Tensor, found: Access, scope: Scope) -> str:
        home = scope.home(set(found.needed))
        if home is None:
            raise KernelError(
                f"`{read.tensor}` is read outside the loop over "
                f"{', '.join(sorted(found.needed - scope.bound))}",
                place=read.place,
            )
        region = tuple(
            one if rows is None else replace(one, rows=self.rows(read.tensor, rows, home))
            for one, rows in zip(found.region, found.rows, strict=True)
        )
        if found.number not in self._load_values:
            # A load in the prologue has nothing to prefetch.
            stages = 1 if home is self.top else self.stages(read.tensor)
            value = Value(
                *(read.tensor, read.tensor, tensor.dtype, found.axes, stages),
                loaded=True,
                rows=rows_of(self.schedule, read.tensor),
                slots=self.kept.slots(read.tensor, found.needed),
            )
            self._load_values[found.number] = self._add(value).name
        name = self._load_values[found.number]
        shared = self._shared(read.tensor, found.needed, home)
        home.statements.append(
            Load(
                *(name, read.tensor, region, read.pad, shared, bulk(self.schedule, read.tensor)),
                hint(self.schedule, read.tensor),
            )
        )
        home.loads[found.number] = name
        self.kept.note(read.tensor, found.number, name, home)
        self.touch(read.tensor)
        return name

    def rows(self, tensor: str, position: Expr, scope: Scope) -> Tile:
        """A tile of the positions along one dimension of a tensor."""
        return self.operand(f"{tensor}_rows", position, scope, "i32")

    def _shared(self, tensor: str, needed: frozenset[str], home: Scope) -> str | None:
        """The grid's last index if a load is to be broadcast along it and can be, else None. A load
        of the prologue is broadcast to all thread blocks.

        All tiles along it must execute the load equally often, so no jagged loop may enclose it.
        """
        decision = self.schedule.find("multicast", tensor)
        if decision is None:
            return None
        over = str(decision.option("over")).removesuffix(".outer")
        last = [c.index for c in self.tilings.values() if c.level == GRID][-1:]
        if last != [over] or over in needed:
            return None
        if any(self.tilings[i].range.jagged for i in home.bound):
            raise KernelError(
                f"`{tensor}` is loaded in a jagged loop, which tiles run through differently "
                "often, so they cannot share it",
                place=decision.place,
            )
        return over

    def _outside(self, tensor: str, scope: Scope) -> frozenset[str]:
        """The indices of enclosing loops that the load of a tensor is hoisted out of."""
        load = self.schedule.find("load", tensor)
        if load is None:
            return frozenset()
        at = str(load.option("at"))
        inner: set[str] = set()
        for s in scope.chain():
            if s is self.grid or at.removesuffix(".outer") in s.binds:
                break
            inner |= s.binds
        return frozenset(inner)

    def _searched(self, tensor: str) -> bool:
        """Whether the launch holds a whole tensor, as sorted borders that it searches."""
        return tensor in self._borders

    def _take(self, read: Read, found: Access, scope: Scope) -> Tile:
        # The scope is inside all loops that the positions need.
        home = cast(Scope, scope.home(set(found.needed)))
        table, size = self._resident(read.tensor)
        rows = self.rows(read.tensor, cast(Expr, found.rows[0]), home)
        indices = self.values[rows.value].names
        dtype = self.facts.tensors[read.tensor].dtype
        value = self.new(f"{read.tensor}_at", read.tensor, dtype, indices, stages=1)
        home.statements.append(Take(value.name, Tile(table), f"{read.tensor}_0", size, rows))
        return Tile(value.name)

    def _store(self, name: str, scope: Scope) -> None:
        equation = self.equations[name]
        if equation.accumulate:
            return add_updates(self, equation, scope)
        back = self._from_end.get(name, "")
        value = self.tensor(back or name, scope)
        home = scope.home(self.needed(equation.indices)) or scope
        dtype = self.stored_dtype(name)
        if self.values[value].dtype != dtype:
            out = self.new(f"{name}_out", name, dtype, equation.indices)
            home.statements.append(Map(out.name, Cast(dtype, Tile(value))))
            value = out.name
        region = stored_region(self, equation, back, home)
        # Along a grid index that the tensor lacks, all tiles compute the same: the first stores it.
        missing = tuple(sorted(self.grid.binds - set(equation.indices)))
        if home is self.top:
            missing = ()
        engine, cache = bulk(self.schedule, name), hint(self.schedule, name)
        way = epilogue_of(self.schedule, name)
        made = Store(name, region, value, missing, engine, cache=cache, epilogue=way)
        home.statements.append(made)
        self.touch(name)
