"""Lowers the body of a launch to statements of a thread block."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from backends.backend import BackendError
from backends.gpu import tile as to
from backends.gpu.blocks import Blocks
from backends.gpu.descriptors import describe
from backends.gpu.exponents import exponents
from backends.gpu.expressions import Expressions
from backends.gpu.factors import exact_differences, factors
from backends.gpu.flat_sums import FlatSum, with_flat_sums
from backends.gpu.flatten import from_end, origins, steps
from backends.gpu.interior import interior
from backends.gpu.joined import Joined, joined
from backends.gpu.masks import Masks
from backends.gpu.peel import peeled, without
from backends.gpu.places import Places
from backends.gpu.products import Operand, flat_sum, matmul, summed_in
from backends.gpu.rules import Rules
from backends.gpu.shapes import permuted, spread
from backends.gpu.tile import Assign, Name
from backends.gpu.transposed import transposed_products
from backends.gpu.unrolled import is_unrolled
from backends.gpu.uses import hands_on, idle, late_loads, transposed
from backends.gpu.values import ZERO, bits, typed
from ir.functions import IDENTITY_ELEMENTS
from ir.nest.nest import (
    Bound,
    Dot,
    Fill,
    Launch,
    Load,
    Loop,
    Map,
    Reduction,
    Scan,
    Search,
    Statement,
    Store,
    Take,
    Tile,
    Value,
)
from ir.nest.nested import nested
from ir.nest.steps import tile_axes
from ir.spec import FLOATS, Apply, Cast, Expr, Number, Size

Known = tuple[Name, tuple[str, ...], str]  # a variable, its axes, its dtype


@dataclass(slots=True)
class _Scope:
    """The statements of a block under construction, and what is available in them."""

    found: list[to.Statement] = field(default_factory=list)
    loaded: dict[Tile, Name] = field(default_factory=dict)  # late loads, by the tile that they read
    named: dict[Expr, Name] = field(default_factory=dict)  # variables, by their expressions


class BodyBuilder:
    """Builds the statements of one launch."""

    def __init__(self, launch: Launch, rules: Rules, wide: frozenset[str] = frozenset()):
        self.launch = launch
        self.rules = rules
        self.values: dict[str, Value] = {v.name: v for v in launch.values}
        self.blocks = Blocks(launch, rules)
        self.scaled = factors(launch)
        self.exponents = exponents(launch)
        self.factors = {n: Name("factor", n) for n in self.scaled}
        self.expressions = Expressions(
            self.blocks, self.tile, self._temporary, self.factors, exact_differences(launch)
        )
        self.loads = {s.value: s for s in launch.statements() if isinstance(s, Load)}
        self.products = Counter(s.value for s in launch.statements() if isinstance(s, Dot))
        self.transposed_products = transposed_products(launch, self.blocks)
        self.late = late_loads(launch)
        self.transposed = transposed(launch, self.late)
        self.idle = idle(launch)
        self.hands_on = hands_on(launch)
        self.masks = Masks(self.blocks, {n: self.loads[n] for n in self.late})
        parameters = {p.name: p for p in launch.parameters}
        self.places = Places(self.masks, parameters, self.tile, self._named, wide)
        self.true: frozenset[Expr] = frozenset()  # comparisons that hold in the current block
        self.scopes: list[_Scope] = []
        self.alone = False  # whether the current statements belong to one thread block
        self.count = 0
        self.steps: dict[Name, Expr] = {}  # constants of searches
        self.descriptors: list[to.Descriptor] = []
        self.sums: dict[Name, FlatSum] = {}

    def once(self) -> tuple[to.Statement, ...]:
        """The statements without grid indices: every thread block executes them, and one stores their results."""
        header: list[to.Statement] = [
            Assign(self.factors[n], self.expressions.typed(found.factor, ()).value)
            for n, found in self.scaled.items()
        ]
        for index, size in self.launch.whole:
            header += self.positions(index, size)
        if self.launch.repeat:
            header += self.positions(self.launch.repeat.index, self.launch.repeat.size)
        self.alone = True
        made = self.block(self.launch.once, header)
        self.alone = False
        return made

    def each(self) -> tuple[to.Statement, ...]:
        """The statements for each tile of the grid."""
        header = [s for g in self.launch.grid for s in self.positions(g.index, g.size)]
        found = interior(self.launch, self.blocks) if self.rules.interiors else None
        if found is None:
            return self.block(self.launch.body, header)
        self.scopes.append(_Scope(header))
        self.places.interior, self.masks.whole = found, found.whole
        inside = self.block(self.launch.body, [])
        self.places.interior, self.masks.whole = None, frozenset()
        self._put(to.Guard(found.condition, inside, self.block(self.launch.body, [])))
        return tuple(self.scopes.pop().found)

    def block(
        self, statements: tuple[Statement, ...], header: list[to.Statement]
    ) -> tuple[to.Statement, ...]:
        """The statements of a block, after a header."""
        self.scopes.append(_Scope(list(header)))
        for s in statements:
            self._statement(s)
        return with_flat_sums(tuple(self.scopes.pop().found), self.sums)

    def tile(self, tile: Tile) -> Known:
        """The variable, the axes and the dtype of a tile; a late load is emitted here."""
        value = self.values[tile.value]
        waiting = self.scaled.get(value.name)
        if waiting and isinstance(waiting.of, Tile):
            return self.tile(waiting.of)
        if value.name in self.late:
            name, axes = self._load_here(tile)
        else:
            name, axes = Name("value", value.name), self.axes_of(value.name)
        return name, axes, value.dtype

    # -- statements -------------------------------------------------------------------------

    def _statement(self, s: Statement) -> None:
        match s:
            case Load():
                if s.value not in self.late:
                    self._load(s)
            case Store() if self.alone:
                self.scopes.append(_Scope())
                self._store(s)
                self._put(to.Guard(to.FirstProgram(), tuple(self.scopes.pop().found)))
            case Store():
                self._store(s)
            case Fill():
                if s.value not in self.idle:
                    self._fill(s)
            case Map():
                self._map(s)
            case Reduction():
                self._reduction(s)
            case Dot():
                self._dot(s)
            case Scan():
                self._scan(s)
            case Search():
                self._search(s)
            case Take():
                self._take(s)
            case Loop():
                for part, true in peeled(s):
                    self.true = true
                    self._loop(part)
                self.true = frozenset()

    def _fill(self, s: Fill) -> None:
        dtype = self.values[s.value].dtype
        shape = self.blocks.shape(self.axes_of(s.value))
        self._assign(s.value, to.Full(typed(s.number, dtype), shape, dtype))

    def _map(self, s: Map) -> None:
        value, axes = self.values[s.value], self.axes_of(s.value)
        waiting = self.scaled.get(s.value)
        if waiting and isinstance(waiting.of, Tile):
            return
        if self._dropped(s):
            return
        expression = without(waiting.of if waiting else s.expression, self.true)
        cast = self.expressions.cast(self.expressions.typed(expression, axes), value.dtype)
        found, shape = cast.value, self.blocks.shape(axes)
        if set(axes) - cast.axes:
            scalar = not cast.axes
            found = to.Full(found, shape, value.dtype) if scalar else to.Broadcast(found, shape)
        self.masks.mapped(s)
        self._assign(s.value, found)

    def _dropped(self, s: Map) -> bool:
        """Assigns a tile to a value that lacks one of its axes, which has one element in a wider block."""
        held = s.expression.value if isinstance(s.expression, Cast) else s.expression
        if not isinstance(held, Tile):
            return False
        source, axes, dtype = self.tile(held)
        lost = tuple(i for i in axes if i not in self.values[s.value].names)
        if not lost:
            return False
        inside = tuple(spread(Name("mask", i), (i,), axes) for i in lost)
        found, left = _reduced("sum", to.Masked(inside, source, typed(0, dtype)), axes, lost)
        found = spread(found, left, self.axes_of(s.value))
        self._assign(s.value, to.Converted(found, self.values[s.value].dtype))
        return True

    def _reduction(self, s: Reduction) -> None:
        source, axes, dtype = self.tile(s.source)
        kind = self.values[s.value].dtype
        over = tuple(i for i in s.over if i in axes)
        found = self.masks.identity(s.source, source, axes, dtype, over, s.reduction)
        if dtype == "b8" or kind in ("i32", "i64") and dtype != kind:
            found = to.Converted(found, "i32" if kind == "b8" else kind)
        if self.hands_on and not s.accumulate and s.source.value in self.loads and dtype in FLOATS:
            # Hides that this reduces a loaded value: where its sum with a loop-carried value is itself loop-carried,
            # compilers reduce per thread in the loop and combine the threads after it, or fail to.
            found = to.Compute("add", (found, Number(0.0)), True)
        nan = s.value not in self.exponents and _gives_nan(s.reduction, dtype)
        found, left = _reduced(s.reduction, found, axes, over, nan)
        if factor := self.factors.get(s.source.value):
            found = to.Scaled(found, factor)
        if kind == "b8":
            found = to.Truth(found)
        found = spread(found, left, self.axes_of(s.value))
        if s.accumulate:
            found = to.Joined(s.reduction, Name("value", s.value), found, nan)
        self._assign(s.value, found)

    def _dot(self, s: Dot) -> None:
        a, b = (self._operand(t, s.over) for t in (s.a, s.b))
        value, axes, name = self.values[s.value], self.axes_of(s.value), Name("value", s.value)
        if value.dtype not in self.rules.sums or value.dtype != summed_in(a.dtype):
            sums = " or ".join(sorted(self.rules.sums))
            what = f"products of {a.dtype} are summed in {summed_in(a.dtype)}, here in {sums}"
            raise BackendError("emit", f"{what}, `{s.value}` is {value.dtype}")
        # Out-of-bounds elements need no mask: a and b are 0 there.
        scales = tuple(Operand(*self.tile(t)) for t in s.scales)
        transposed = s in self.transposed_products
        if self.rules.flat_sums and (flat := flat_sum(self.blocks, axes, a, b, transposed)):
            self.sums[name] = flat
        # With several matmuls onto one sum, each result would be converted to the layout of the sum.
        last = self.rules.k_last and self.products[s.value] == 1
        found = matmul(self.blocks, name, axes, a, b, s.accumulate, scales, last, transposed)
        self._assign(s.value, found)

    def _operand(self, tile: Tile, over: tuple[str, ...]) -> Operand:
        name, axes, dtype = self.tile(tile)
        along = tuple(i for i in over if i in axes)
        return Operand(self.masks.identity(tile, name, axes, dtype, along, "sum"), axes, dtype)

    def _scan(self, s: Scan) -> None:
        source, axes, dtype = self.tile(s.source)
        out = self.axes_of(s.value)
        found = self.masks.identity(s.source, source, axes, dtype, (s.along,), s.reduction)
        name = source
        if found != name or set(axes) == set(out) and axes != out:
            name, axes = self._temporary(permuted(found, axes, out)), out
        carry, nan, free = (
            Name("value", s.carry),
            _gives_nan(s.reduction, dtype),
            s.carry in self.idle,
        )
        if s.along not in axes:
            self._assign(s.value, name if free else to.Joined(s.reduction, carry, name, nan))
            if not free:
                self._assign(s.carry, Name("value", s.value))
            return
        run: Expr = to.Scanned(s.reduction, name, axes.index(s.along))
        if free:
            self._assign(s.value, run)
            return
        run = self._temporary(run)
        kept = tuple(i for i in out if i != s.along)
        self._assign(s.value, to.Joined(s.reduction, spread(carry, kept, out), run, nan))
        # Hides that this reduces a loaded value: compilers would give each thread a partial carry and combine them
        # after the loop, although the carry is read in it.
        at = Apply("add", (Name("origin", s.along), Number(self.blocks[s.along].width - 1)))
        place = spread(Name("positions", s.along), (s.along,), axes)
        mask = (to.Check(place, equal=at),)
        last = to.Masked(mask, run, typed(IDENTITY_ELEMENTS[s.reduction], dtype))
        found = to.Reduced(s.reduction, last, axes.index(s.along), nan)
        self._assign(s.carry, to.Joined(s.reduction, carry, found, nan))

    def _search(self, s: Search) -> None:
        source, axes, _ = self.tile(s.source)
        table = self.values[s.borders.value].tensor
        constant = Name("steps", table)
        self.steps[constant] = bits(s.count)
        found = to.Ranked(source, Name("pointer", table), s.count, constant)
        self._assign(s.value, permuted(found, axes, self.axes_of(s.value)))

    def _take(self, s: Take) -> None:
        at, axes, _ = self.tile(s.at)
        table = Name("pointer", self.values[s.table.value].tensor)
        place = to.Place(table, (to.Term(at),), self.masks.bounds(axes, axes))
        found = to.Entry(place, ZERO if place.mask else None)
        self._assign(s.value, permuted(found, axes, self.axes_of(s.value)))

    def _loop(self, s: Loop) -> None:
        loops = nested(s)
        if len(loops) > 1 and self._stages(loops[-1]) > 1 and not self.launch.resident:
            self._flattened(loops)
            return
        block = self.blocks[s.index]
        low, high = self._bound(s, "low", s.low), self._bound(s, "high", s.high)
        name = at = Name("origin", s.index)
        header = self.positions(s.index, block.size, high)
        if s.backwards:
            name = Name("step", s.index)
            origin, high = from_end(low, high, s.tile, name)
            header, low = [Assign(at, origin), *header], ZERO
        inner = any(isinstance(x, Loop) for x in s.body)
        own = self._stages(s)
        # If unrolled, all loads of a loop would be in buffers at once.
        unrolled = not inner and own < 2 and is_unrolled(s, block, low, high, self.rules)
        flat = self.launch.resident and self.rules.persistent_is_one_loop
        stages = 0 if inner or flat or unrolled else own
        body = self.block(s.body, header)
        self._put(to.Loop(name, low, high, s.tile, body, stages, unrolled, s.unroll))

    def _flattened(self, loops: tuple[Loop, ...]) -> None:
        """Perfectly nested loops as one, which prefetches across all of their steps."""
        step = Name("step", loops[-1].index)
        header: list[to.Statement] = list(origins(loops, step))
        for s in loops:
            header += self.positions(s.index, self.blocks[s.index].size)
        body = self.block(loops[-1].body, header)
        stages = self._stages(loops[-1])
        self._put(to.Loop(step, ZERO, steps(loops), 1, body, stages, unroll=loops[-1].unroll))

    def _stages(self, loop: Loop) -> int:
        """The number of stages of a loop's own loads."""
        loads = (s.value for s in loop.body if isinstance(s, Load))
        return max((self.values[n].stages for n in loads), default=0)

    def _bound(self, loop: Loop, end: str, bound: Bound) -> Expr:
        if bound.size is not None:
            return bound.size
        name = Name(end, loop.index)
        place = self.places.place(bound.tensor, (bound.entry,), (), padded=False)
        self._put(Assign(name, to.Entry(to.Place(place.tensor, place.terms))))
        return name

    def positions(self, index: str, size: Expr, jagged: Expr = ZERO) -> list[to.Statement]:
        """The statements that compute an index's positions from its origin. jagged: the end of a range whose size is in
        the data."""
        end = jagged if size == ZERO else size
        block = self.blocks[index]
        if block.scalar:
            return []
        at, name = Name("origin", index), Name("positions", index)
        untiled = index in dict(self.launch.whole)
        found: list[to.Statement] = [to.Positions(name, None if untiled else at, block.wide)]
        if not block.checks:
            return found
        if block.tile and block.tile != block.width:
            end = Apply("minimum", (end, Apply("add", (at, Number(block.tile)))))
        even = Name("even", index) if block.flag else None
        return [*found, to.Bounds(Name("mask", index), name, end, even)]

    # -- loads and stores -------------------------------------------------------------------

    def _load(self, s: Load) -> None:
        axes = self.axes_of(s.value)
        self._load_as(s, Name("value", s.value), axes)
        self.masks.loaded(s, axes)

    def _load_as(self, s: Load, name: Name, axes: tuple[str, ...]) -> None:
        """Loads a region into a variable with these axes."""
        place = self.places.place(s.tensor, s.region, axes, padded=s.pad is not None)
        made = to.Load(name, place, typed(s.pad or 0.0, self.values[s.value].dtype), s.cache)
        if s.bulk:
            descriptor, box = self._described(s, axes)
            self._bulk(descriptor, to.BoxLoad(name, box), made)
        else:
            self._put(made)

    def _load_here(self, tile: Tile) -> tuple[Name, tuple[str, ...]]:
        """Loads the part of a late value where it is used."""
        axes = self.blocks.axes(tile_axes(tile, self.values))
        for scope in self.scopes:
            if tile in scope.loaded:
                return scope.loaded[tile], axes
        s = self.loads[tile.value]
        names = [n for scope in self.scopes for n in scope.loaded.values()]
        name = Name("value", tile.value)
        if name in names:
            name = self._copy(name)
        self._load_as(s, name, axes)
        self.scopes[-1].loaded[tile] = name
        return name, axes

    def _store(self, s: Store) -> None:
        axes, region, value = self.axes_of(s.value), s.region, Name("value", s.value)
        once = tuple(to.Check(Name("origin", i), equal=ZERO) for i in s.once)
        shape = self.places.parameters[s.tensor].shape
        if self.rules.joins_axes and (one := joined(s, axes, self.blocks, shape)):
            value = to.Reshaped(permuted(value, axes, one.axes), self._join(one))
            axes, region, shape = one.into, one.region, one.shape
        place = self.places.place(s.tensor, region, axes, padded=False, extra=once, shape=shape)
        made = to.Store(place, value, s.reduction, s.cache, s.epilogue)
        if s.bulk:
            descriptor, box = self._described(s, axes)
            self._bulk(descriptor, to.BoxStore(box, made.value), made)
        else:
            self._put(made)

    def _join(self, one: Joined) -> tuple[Expr, ...]:
        """Computes the positions of a joined axis; returns the shape of what is stored."""
        self.blocks.blocks[one.block.index] = one.block
        for made in one.positions:
            self._put(made)
        return self.blocks.shape(one.into)

    def _described(self, s: Load | Store, axes: tuple[str, ...]) -> tuple[to.Descriptor, to.Box]:
        dtype = self.values[s.value].dtype
        shape = self.places.parameters[s.tensor].shape
        held = self.blocks.shape(axes)
        descriptor, box = describe(s, dtype, shape, self.blocks, held)
        if descriptor not in self.descriptors:
            self.descriptors.append(descriptor)
        return descriptor, box

    def _bulk(self, made: to.Descriptor, box: to.Statement, other: to.Statement) -> None:
        """A TMA copy where the launcher could encode the tensor map, else an access by pointers."""
        self._put(to.Guard(made.flag, (box,), (other,)))

    # -- names ------------------------------------------------------------------------------

    def axes_of(self, value: str) -> tuple[str, ...]:
        """The axes of a value's variable, in its order."""
        names = self.values[value].names
        return self.blocks.axes(self.transposed.get(value, names))

    def _assign(self, value: str, found: Expr) -> None:
        self._put(Assign(Name("value", value), found))

    def _put(self, s: to.Statement) -> None:
        self.scopes[-1].found.append(s)

    def _temporary(self, found: Expr) -> Name:
        name = self._copy(Name("part"))
        self._put(Assign(name, found))
        return name

    def _named(self, name: Name, found: Expr) -> Expr:
        """A variable for an expression, unless it already is one."""
        if _plain(found):
            return found
        for scope in self.scopes:
            if found in scope.named:
                return scope.named[found]
        taken = {n for scope in self.scopes for n in scope.named.values()}
        if name in taken:
            name = self._copy(name)
        self._put(Assign(name, found))
        self.scopes[-1].named[found] = name
        return name

    def _copy(self, name: Name) -> Name:
        """A new name with this stem, which no value has."""
        self.count += 1
        if name.sort == "value" and f"{name.stem}_{self.count}" in self.values:
            return self._copy(name)
        return Name(name.sort, name.stem, name.dim, self.count)


def _reduced(
    reduction: str, value: Expr, axes: tuple[str, ...], over: tuple[str, ...], nan: bool = False
) -> tuple[Expr, tuple[str, ...]]:
    """A tensor reduced over some of its axes, and the remaining axes."""
    for index in sorted(over, key=axes.index, reverse=True):
        value = to.Reduced(reduction, value, axes.index(index), nan)
        axes = tuple(i for i in axes if i != index)
    return value, axes


def _gives_nan(reduction: str, dtype: str) -> bool:
    """Whether NaN propagation of a reduction needs extra care; other reductions propagate NaN anyway."""
    return reduction in ("max", "min") and dtype in FLOATS


def _plain(expr: Expr) -> bool:
    """Whether an expression needs no variable: a number, or a short name."""
    match expr:
        case Number():
            return True
        case Size(name) | Name("value", name, copy=0):
            return name.isalnum()
    return False
