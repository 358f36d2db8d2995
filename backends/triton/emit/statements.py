"""Statements: a launch's program as lines of Triton, resolved so that the template only formats."""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.backend import BackendError
from backends.triton.emit import spelling
from backends.triton.emit.blocks import Blocks
from backends.triton.emit.descriptors import Descriptor, describe
from backends.triton.emit.exponents import exponents
from backends.triton.emit.expressions import Expressions, permuted, spread
from backends.triton.emit.lines import Block, Call, Line
from backends.triton.emit.nested import origins, trips
from backends.triton.emit.outside import Outside
from backends.triton.emit.peel import peeled, without
from backends.triton.emit.products import Operand, Products
from backends.triton.emit.reductions import fold_text
from backends.triton.emit.regions import Regions
from backends.triton.emit.scales import scales
from backends.triton.emit.uses import deferred, hands_on, idle, turned
from ir.lower.limits import NEUTRAL
from ir.nest.nest import (
    Bound,
    Dot,
    Fill,
    Fold,
    Launch,
    Load,
    Loop,
    Map,
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
from ir.spec import FLOATS, Cast, Expr, Number

ATOMICS = {"sum": "tl.atomic_add"}  # what folds a value into what memory holds
UNROLLED = 8  # trips of a loop of scalars up to which it is written out
Known = tuple[str, tuple[str, ...], str]  # a variable, its axes, its dtype


@dataclass(slots=True)
class _Scope:
    """The lines being written, and what is at hand in them: deferred loads by what they read,
    variables by the expressions that they stand for."""

    lines: list[object] = field(default_factory=list)
    loaded: dict[object, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)


class Statements:
    """Writes the statements of one launch. descriptors: of what the copy engine moves.  steps:
    of searches, the constants that a launch passes.  wide: tensors with positions of 64 bits."""

    def __init__(self, launch: Launch, wide: frozenset[str] = frozenset()):
        self.launch = launch
        self.values: dict[str, Value] = {v.name: v for v in launch.values}
        self.blocks = Blocks(launch)
        parameters = {p.name: p for p in launch.parameters}
        self.regions = Regions(self.blocks, parameters, self.tile, self._named, wide)
        self.products = Products(self.blocks)
        self.scaled = scales(launch)
        self.exponents = exponents(launch)
        self.factors = {n: f"{spelling.value(n)}_factor" for n in self.scaled}
        self.expressions = Expressions(self.blocks, self.tile, self._temporary, self.factors)
        self.factor_lines = [
            Line(f"{self.factors[n]} = {self.expressions.text(found.factor, ()).code}")
            for n, found in self.scaled.items()
        ]
        self.loads = {s.value: s for s in launch.statements() if isinstance(s, Load)}
        self.deferred = deferred(launch)
        self.turned = turned(launch, self.deferred)
        self.idle = idle(launch)
        self.hands_on = hands_on(launch)
        self.outside = Outside(self.blocks, {n: self.loads[n] for n in self.deferred})
        self.true: frozenset[Expr] = frozenset()  # comparisons that hold where lines are written
        self.scopes: list[_Scope] = []
        self.alone = False  # whether what is written belongs to one program
        self.count = 0
        self.steps: dict[str, str] = {}
        self.descriptors: list[Descriptor] = []

    def once(self, statements: tuple[Statement, ...], header: tuple[Line, ...]) -> tuple:
        """The lines of what no grid index enters: every program does it, one stores it."""
        self.alone = True
        lines = self.block(statements, header)
        self.alone = False
        return lines

    def block(self, statements: tuple[Statement, ...], header: tuple[Line, ...] = ()) -> tuple:
        """The lines of a block of statements, after those of a header."""
        self.scopes.append(_Scope(list(header)))
        for s in statements:
            self._statement(s)
        return tuple(self.scopes.pop().lines)

    def tile(self, tile: Tile) -> Known:
        """The variable, the axes and the dtype of a tile; what is loaded at its use, is here."""
        value = self.values[tile.value]
        waiting = self.scaled.get(value.name)
        if waiting and isinstance(waiting.of, Tile):
            return self.tile(waiting.of)
        if value.name in self.deferred:
            name, axes = self._load_here(tile)
        else:
            name, axes = spelling.value(value.name), self._axes(value.name)
        return name, axes, value.dtype

    # -- statements -------------------------------------------------------------------------

    def _statement(self, s: Statement) -> None:
        match s:
            case Load():
                if s.value not in self.deferred:
                    self._load(s)
            case Store() if self.alone:
                self.scopes.append(_Scope())
                self._store(s)
                body = tuple(self.scopes.pop().lines)
                self._line(Block("if tl.program_id(0) == 0:", body))
            case Store():
                self._store(s)
            case Fill():
                if s.value not in self.idle:
                    self._fill(s)
            case Map():
                self._map(s)
            case Fold():
                self._fold(s)
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
        number = spelling.number(spelling.typed(s.number, dtype))
        shape, kind = self.blocks.shape(self._axes(s.value)), spelling.DTYPES[dtype]
        self._assign(s.value, f"tl.full({shape}, {number}, {kind})")

    def _map(self, s: Map) -> None:
        value, axes = self.values[s.value], self._axes(s.value)
        waiting = self.scaled.get(s.value)
        if waiting and isinstance(waiting.of, Tile):
            return
        if self._dropped(s):
            return
        expression = without(waiting.of if waiting else s.expression, self.true)
        text = self.expressions.text(expression, axes)
        cast = self.expressions.cast(text, value.dtype)
        code = cast.code
        if set(axes) - cast.axes:
            code = f"tl.broadcast_to({code}, {self.blocks.shape(axes)})"
            if not cast.axes:
                kind = spelling.DTYPES[value.dtype]
                code = f"tl.full({self.blocks.shape(axes)}, {cast.code}, {kind})"
        self.outside.mapped(s)
        self._assign(s.value, code)

    def _dropped(self, s: Map) -> bool:
        """Writes a tile into a value that lacks an axis of it, of one element in a wider block."""
        held = s.expression.value if isinstance(s.expression, Cast) else s.expression
        if not isinstance(held, Tile):
            return False
        source, axes, dtype = self.tile(held)
        lost = tuple(i for i in axes if i not in self.values[s.value].names)
        if not lost:
            return False
        masks = " & ".join(spread(spelling.inside(i), (i,), axes) for i in lost)
        zero = spelling.number(spelling.typed(0, dtype))
        code, left = f"tl.where({masks}, {source}, {zero})", axes
        for index in sorted(lost, key=axes.index, reverse=True):
            code = fold_text("sum", dtype).over.format(code, left.index(index))
            left = tuple(i for i in left if i != index)
        code = spread(code, left, self._axes(s.value))
        self._assign(s.value, f"{_operand(code)}.to({spelling.DTYPES[self.values[s.value].dtype]})")
        return True

    def _fold(self, s: Fold) -> None:
        source, axes, dtype = self.tile(s.source)
        kind = self.values[s.value].dtype
        over = tuple(i for i in s.over if i in axes)
        code = self.outside.neutral(s.source, source, axes, dtype, over, s.fold)
        if dtype == "b8" or kind in ("i32", "i64") and dtype != kind:
            code = f"{_operand(code)}.to({spelling.DTYPES['i32' if kind == 'b8' else kind]})"
        if self.hands_on and not s.accumulate and s.source.value in self.loads and dtype in FLOATS:
            # Not the fold of what was loaded: where its sum with what was handed on is handed on,
            # Triton folds in each thread first and joins them after the loop, or fails to.
            code = f"{_operand(code)} + 0.0"
        left = axes
        factor = self.factors.get(s.source.value)
        fold = fold_text(s.fold, dtype, nan=s.value not in self.exponents)
        for index in sorted(over, key=axes.index, reverse=True):
            code = fold.over.format(code, left.index(index))
            left = tuple(i for i in left if i != index)
        if factor:
            code = f"{code} * {factor}"
        if kind == "b8":
            code = f"({code} != 0)"
        code = spread(code, left, self._axes(s.value))
        if s.accumulate:
            code = fold.onto.format(spelling.value(s.value), code)
        self._assign(s.value, code)

    def _dot(self, s: Dot) -> None:
        a, b = (self._operand(t, s.over) for t in (s.a, s.b))
        value, axes = self.values[s.value], self._axes(s.value)
        name = spelling.value(s.value)
        if value.dtype != "f32":
            raise BackendError("emit", f"products are summed in f32, `{s.value}` is {value.dtype}")
        self._assign(s.value, self.products.text(name, axes, a, b, s.accumulate))

    def _operand(self, tile: Tile, over: tuple[str, ...]) -> Operand:
        name, axes, dtype = self.tile(tile)
        summed = tuple(i for i in over if i in axes)
        code = self.outside.neutral(tile, name, axes, dtype, summed, "sum")
        return Operand(code, axes, dtype)

    def _scan(self, s: Scan) -> None:
        source, axes, dtype = self.tile(s.source)
        out = self._axes(s.value)
        kept = tuple(i for i in out if i != s.along)
        code = self.outside.neutral(s.source, source, axes, dtype, (s.along,), s.fold)
        name = source
        if code != name or set(axes) == set(out) and axes != out:
            name = self._temporary(permuted(code, axes, out))
            axes = out
        carry = spelling.value(s.carry)
        fold = fold_text(s.fold, dtype)
        if s.along not in axes and s.carry in self.idle:
            self._assign(s.value, name)
            return
        if s.along not in axes:
            self._assign(s.value, fold.onto.format(carry, name))
            self._assign(s.carry, spelling.value(s.value))
            return
        run = fold.scan.format(name, axes.index(s.along))
        if s.carry in self.idle:
            self._assign(s.value, run)
            return
        run = self._temporary(run)
        self._assign(s.value, fold.onto.format(spread(carry, kept, out), run))
        # Not the fold of what was loaded: Triton gives each thread its own part of such a carry
        # and joins them after the loop, though the carry is read in it.
        at = f"{spelling.origin(s.along)} + {self.blocks[s.along].width - 1}"
        last = f"{spread(spelling.offsets(s.along), (s.along,), axes)} == {at}"
        neutral = spelling.number(spelling.typed(NEUTRAL[s.fold], dtype))
        last = fold.over.format(f"tl.where({last}, {run}, {neutral})", axes.index(s.along))
        self._assign(s.carry, fold.onto.format(carry, last))

    def _search(self, s: Search) -> None:
        source, axes, _ = self.tile(s.source)
        table = self.values[s.borders.value].tensor
        constant = f"STEPS_{table.upper()}"
        known = isinstance(s.count, Number)
        steps = (
            str(s.count.value.bit_length()) if known else f"{spelling.factor(s.count)}.bit_length()"
        )
        self.steps[constant] = steps
        count = spelling.size(s.count)
        call = f"rank({source}, {spelling.pointer(table)}, {count}, {constant})"
        self._assign(s.value, call)

    def _take(self, s: Take) -> None:
        at, axes, _ = self.tile(s.at)
        table = self.values[s.table.value].tensor
        masks = [spread(spelling.inside(i), (i,), axes) for i in axes if self.blocks[i].checks]
        mask = f", mask={' & '.join(masks)}, other=0" if masks else ""
        self._assign(s.value, f"tl.load({spelling.pointer(table)} + {at}{mask})")

    def _loop(self, s: Loop) -> None:
        loops = nested(s)
        if len(loops) > 1 and self._depth(loops[-1]) > 1 and not self.launch.resident:
            self._as_one(loops)
            return
        block = self.blocks[s.index]
        low, high = self._bound(s, "low", s.low), self._bound(s, "high", s.high)
        at = spelling.origin(s.index)
        header = tuple(self.positions(s.index, self.blocks[s.index].size, high))
        if s.backwards:
            step = f"{s.index}_step"
            header = (Line(f"{at} = {high} - 1 - {step}"), *header)
            at = step
        inner = any(isinstance(x, Loop) for x in s.body)
        fixed = low.isdigit() and high.isdigit()
        depth = self._depth(s)
        short = fixed and block.scalar and int(high) - int(low) <= UNROLLED
        if short and not inner and depth < 2:  # unrolled, all its loads would be in buffers at once
            head = f"for {at} in tl.static_range({low}, {high}):"
        else:
            step = "" if s.tile == 1 else f", {s.tile}"
            flat = self.launch.resident  # one loop with that around it, staged as the launch says
            stages = f", num_stages={depth}" if depth and not inner and not flat else ""
            word = "tl.range" if stages else "range"
            head = f"for {at} in {word}({low}, {high}{step}{stages}):"
        self._line(Block(head, self.block(s.body, header)))

    def _as_one(self, loops: tuple[Loop, ...]) -> None:
        """Loops around each other as one, which loads ahead across all of their steps."""
        step = f"{loops[-1].index}_step"
        header = list(origins(loops, step))
        for s in loops:
            header += self.positions(s.index, self.blocks[s.index].size)
        depth = self._depth(loops[-1])
        head = f"for {step} in tl.range(0, {trips(loops)}, num_stages={depth}):"
        self._line(Block(head, self.block(loops[-1].body, tuple(header))))

    def _depth(self, loop: Loop) -> int:
        """How many tiles its own loads have under way."""
        loads = (s.value for s in loop.body if isinstance(s, Load))
        return max((self.values[n].depth for n in loads), default=0)

    def _bound(self, loop: Loop, end: str, bound: Bound) -> str:
        if bound.size is not None:
            return spelling.size(bound.size)
        name = f"{loop.index}_{end}"
        place = self.regions.place(bound.tensor, (bound.position,), (), padded=False)
        self._line(Line(f"{name} = tl.load({place.pointers})"))
        return name

    def positions(self, index: str, size: Expr, jagged: str = "") -> list[Line]:
        """The lines that give an index's positions from its origin. jagged: where a range ends
        whose size is in the data."""
        end = jagged if size == Number(0) else spelling.size(size)
        block = self.blocks[index]
        if block.scalar:
            return []
        at, offsets = spelling.origin(index), spelling.offsets(index)
        untiled = index in dict(self.launch.whole)
        start = "" if untiled else f"{at} + "
        lines = [Line(f"{offsets} = {start}tl.arange(0, {block.text})")]
        if not block.checks:
            return lines
        if block.tile and block.tile != block.width:
            end = f"min({end}, {at} + {block.tile})"
        test = f"{offsets} < {end}"
        if block.flag:
            test = f"({test}) | {spelling.even(index)}"
        lines.append(Line(f"{spelling.inside(index)} = {test}"))
        return lines

    # -- loads and stores -------------------------------------------------------------------

    def _load(self, s: Load) -> None:
        axes = self._axes(s.value)
        call = self._loaded(s, spelling.value(s.value), axes)
        if s.bulk:
            made = self._described(s)
            self._bulk(made, Line(f"{call.name} = {made.load(self.blocks.shape(axes))}"), call)
        else:
            self._line(call)
        self.outside.loaded(s, axes, self.regions.parameters[s.tensor].shape)

    def _loaded(self, s: Load, name: str, axes: tuple[str, ...]) -> Call:
        place = self.regions.place(s.tensor, s.region, axes, padded=s.pad is not None)
        if not place.mask:
            return Call(name, "tl.load", (place.pointers,))
        other = spelling.number(spelling.typed(s.pad or 0.0, self.values[s.value].dtype))
        return Call(name, "tl.load", (place.pointers, f"mask={place.mask}", f"other={other}"))

    def _load_here(self, tile: Tile) -> tuple[str, tuple[str, ...]]:
        """Reads a deferred value's part where it is used."""
        axes = self.blocks.axes(tile_axes(tile, self.values))
        for scope in self.scopes:
            if tile in scope.loaded:
                return scope.loaded[tile], axes
        s = self.loads[tile.value]
        names = [n for scope in self.scopes for n in scope.loaded.values()]
        name = spelling.value(tile.value)
        if name in names:
            name = self._name(name)
        self._line(self._loaded(s, name, axes))
        self.scopes[-1].loaded[tile] = name
        return name, axes

    def _store(self, s: Store) -> None:
        axes = self._axes(s.value)
        once = tuple(f"({spelling.origin(i)} == 0)" for i in s.once)
        place = self.regions.place(s.tensor, s.region, axes, padded=False, extra=once)
        mask = (f"mask={place.mask}",) if place.mask else ()
        call = Call("", "tl.store", (place.pointers, spelling.value(s.value), *mask))
        if s.fold:
            arguments = (*call.args, 'sem="relaxed"')
            call = Call("", ATOMICS[s.fold], arguments)
        if s.bulk:
            made = self._described(s)
            self._bulk(
                made, Line(made.store(spelling.value(s.value), self.blocks.shape(axes))), call
            )
        else:
            self._line(call)

    def _described(self, s: Load | Store) -> Descriptor:
        dtype = self.values[s.value].dtype
        shape = self.regions.parameters[s.tensor].shape
        made = describe(s, dtype, shape, self.blocks)
        if made not in self.descriptors:
            self.descriptors.append(made)
        return made

    def _bulk(self, made: Descriptor, line: Line, other: Call) -> None:
        """By the copy engine where the launcher could describe the tensor, else by pointers."""
        self._line(Block(f"if {made.flag}:", (line,)))
        self._line(Block("else:", (other,)))

    # -- lines ------------------------------------------------------------------------------

    def _axes(self, value: str) -> tuple[str, ...]:
        """The axes of a value's variable, in the order in which it holds them."""
        names = self.values[value].names
        return self.blocks.axes(self.turned.get(value, names))

    def _assign(self, value: str, code: str) -> None:
        name = spelling.value(value)
        if code.startswith(f"{name} + "):
            self._line(Line(f"{name} += {code.removeprefix(f'{name} + ')}"))
            return
        self._line(Line(f"{name} = {code}"))

    def _line(self, line: object) -> None:
        self.scopes[-1].lines.append(line)

    def _temporary(self, code: str) -> str:
        name = self._name("part")
        self._line(Line(f"{name} = {code}"))
        return name

    def _named(self, stem: str, code: str) -> str:
        """A variable of a stem for an expression, unless it is one already."""
        if code.lstrip("-").isalnum():
            return code
        for scope in self.scopes:
            if code in scope.named:
                return scope.named[code]
        taken = {n for scope in self.scopes for n in scope.named.values()}
        name = self._name(stem) if stem in taken else stem
        self._line(Line(f"{name} = {code}"))
        self.scopes[-1].named[code] = name
        return name

    def _name(self, stem: str) -> str:
        self.count += 1
        name = f"{stem}_{self.count}"
        return self._name(stem) if name in self.values else name


def _operand(code: str) -> str:
    return code if code.isidentifier() or code.startswith("tl.") else f"({code})"
