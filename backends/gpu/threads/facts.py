"""Facts of a launch's tile program that determine ownership: tiles that share axes, reduced axes,
and operands that are loaded into shared memory without registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from backends.gpu import tile as of
from backends.gpu.threads.expressions import Axes, Typing, leaves, rewritten
from backends.gpu.tile import Launch, Name, statements
from backends.gpu.values import product
from ir.nest.nest import Rows
from ir.spec import Expr, Number

FRAGMENTS = ("value", "part", "factor")  # the sorts of names that hold tiles
NO_ROWS: Mapping[str, Rows] = MappingProxyType({})
Held = tuple[Name, str]  # one axis of one variable


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a matmul: a tensor with grouped axes, each group of which acts as one axis."""

    value: Expr
    groups: tuple[tuple[str, ...], ...]  # (batch), then M and K, or K and N
    k: tuple[str, ...] = ()  # the axes of K among these


@dataclass(frozen=True, slots=True)
class Matmul:
    """A matmul whose result is assigned to a variable."""

    name: Name
    a: Operand
    b: Operand
    adds: bool  # whether it accumulates onto the variable
    dtype: str  # of the operands
    scales: tuple[Operand, ...] = ()  # block scales of a and b along K

    @property
    def operands(self) -> tuple[Operand, ...]:
        """All operands, including scales."""
        return (self.a, self.b, *self.scales)

    @property
    def batch(self) -> tuple[str, ...]:
        """The axes that both operands and the result have."""
        return self.a.groups[0] if len(self.a.groups) == 3 else ()

    @property
    def m(self) -> tuple[str, ...]:
        """The axes of M."""
        return self.a.groups[-2]

    @property
    def n(self) -> tuple[str, ...]:
        """The axes of N."""
        return self.b.groups[-1]

    @property
    def k(self) -> tuple[str, ...]:
        """The axes of K."""
        return self.a.groups[-1]


@dataclass(slots=True)
class Facts:
    """The facts of a launch."""

    typing: Typing
    matmuls: dict[int, Matmul] = field(default_factory=dict)  # by the identity of the statement
    loads: dict[Name, of.Load] = field(default_factory=dict)
    places: list[tuple[Name, of.Place]] = field(default_factory=list)  # read and written
    staged: frozenset[Name] = frozenset()  # loaded only for matmuls
    # Operands that are functions of one loaded variable, which nothing else reads, by that variable.
    functions: dict[Name, dict[Name, Expr]] = field(default_factory=dict)
    # The operands among these that the matmul computes where it uses them: the variable and the function.
    at_use: dict[Name, tuple[Name, Expr]] = field(default_factory=dict)
    # The decided swizzle or padding of loaded tiles in shared memory.
    rows: Mapping[str, Rows] = field(default_factory=dict)
    reduced: set[Held] = field(default_factory=set)
    scanned: set[Held] = field(default_factory=set)
    parent: dict[Held, Held] = field(default_factory=dict)  # of the classes of axes (union-find)

    def root(self, held: Held) -> Held:
        """The representative of all axes with the same distribution."""
        while (above := self.parent.get(held, held)) != held:
            held = above
        return held

    def join(self, names: list[Name]) -> None:
        """Gives the axes of each index in these variables the same distribution."""
        first: dict[str, Held] = {}
        for name in names:
            for index in self.indices(name):
                a = self.root((name, index))
                b = self.root(first.setdefault(index, a))
                if a != b:
                    self.parent[a] = b

    def indices(self, name: Name) -> tuple[str, ...]:
        """The indices of a variable's axes."""
        return tuple(i for i in self.typing.axes(name) if i is not None)


def facts(launch: Launch, dtypes: Mapping[str, str], rows: Mapping[str, Rows] = NO_ROWS) -> Facts:
    """The facts of a launch. dtypes: of global tensors. rows: see `Facts`."""
    found = Facts(Typing(dtypes), rows=rows)
    for v in launch.variables:
        found.typing.known[v.name] = (v.dtype, v.axes)
    widths = dict(launch.widths)
    block = (*launch.once, *launch.body)
    uses: Counter[Name] = Counter()
    operands: Counter[Name] = Counter()
    for s in statements(block):
        uses.update(n for e in _read(s) for n in leaves(e))
        match s:
            case of.Assign(name, value) if made := matmul(name, value, found.typing, widths):
                found.matmuls[id(s)] = made
                _define(found, name, value)
                operands.update(n for n in map(bare, made.operands) if n)
                found.join([n for n in (name, *_onto(value)) if n.sort in FRAGMENTS])
            case of.Assign(name, value):
                _define(found, name, value)
                _relate(found, name, value)
            case of.Load(name, place):
                found.loads[name] = s
                if name not in found.typing.known:
                    found.typing.known[name] = _loaded(found.typing, place)
                found.places.append((name, place))
                found.join([name, *tiles_in(place)])
            case of.Store(place, value):
                found.places += [(n, place) for n in tiles_in(value)]
                found.join([*tiles_in(value), *tiles_in(place)])
    found.staged = frozenset(
        n for n in found.loads if operands[n] and operands[n] == uses[n] and not _moved(found, n)
    )
    found.functions = _functions(found, block, uses, operands)
    return found


def _functions(
    found: Facts, block: tuple[of.Statement, ...], uses: Counter[Name], operands: Counter[Name]
) -> dict[Name, dict[Name, Expr]]:
    """Operands as functions of loaded variables that nothing else reads; see `Facts`."""
    written = Counter(s.name for s in statements(block) if isinstance(s, of.Assign | of.Load))
    values: dict[Name, Expr] = {n: n for n in found.loads if not _moved(found, n)}
    source = {n: n for n in values}
    seen: Counter[Name] = Counter()  # uses in functions
    for s in statements(block):
        if not isinstance(s, of.Assign) or id(s) in found.matmuls or written[s.name] > 1:
            continue
        names = leaves(s.value)
        loads = {source.get(n) for n in names}
        if len(loads) == 1 and None not in loads and all(map(_pointwise, s.value.walk())):
            values[s.name] = rewritten(
                s.value, lambda e: values.get(e) if isinstance(e, Name) else None
            )
            source[s.name] = loads.pop()  # type: ignore[assignment]
            seen.update(names)
    whole = {n: source[n] for n in values if seen[n] + operands[n] == uses[n] and written[n] == 1}
    parts: dict[Name, dict[Name, Expr]] = {}
    for n, load in source.items():
        if n != load and operands[n]:
            parts.setdefault(load, {})[n] = values[n]
    lost = {source[n] for n in values if n not in whole}
    return {n: f for n, f in parts.items() if n not in lost and not operands[n]}


def _pointwise(e: Expr) -> bool:
    """Whether a node of an expression is pointwise."""
    return isinstance(e, of.Compute | of.Converted | Number) or (
        isinstance(e, Name) and e.sort in FRAGMENTS
    )


def matmul(name: Name, value: Expr, typing: Typing, widths: Mapping[str, Expr]) -> Matmul | None:
    """The matmul that an expression is: a product, possibly accumulated onto a variable; None for others."""
    adds = False
    if isinstance(value, of.Joined) and value.reduction == "sum":
        adds, value = True, value.value
    while isinstance(value, of.Permuted | of.Reshaped):
        value = value.value
    if not isinstance(value, of.Product):
        return None
    adds = adds or value.onto is not None
    a, b = (_operand(e, typing, widths) for e in (value.a, value.b))
    a, b = replace(a, k=a.groups[-1]), replace(b, k=b.groups[-2])
    scales = tuple(_operand(e, typing, widths) for e in value.scales)
    scales = tuple(replace(s, k=s.groups[at]) for s, at in zip(scales, (-1, -2)))
    return Matmul(name, a, b, adds, value.dtype, scales)


def _operand(expr: Expr, typing: Typing, widths: Mapping[str, Expr]) -> Operand:
    """An operand with the axes of each group."""
    match expr:
        case of.Permuted(of.Reshaped() as joined, order):  # groups in another order
            lying = _operand(joined, typing, widths)
            groups = tuple(lying.groups[n] for n in order)
            axes = typing.axes(lying.value)
            places = tuple(axes.index(i) for group in groups for i in group)
            return Operand(of.Permuted(lying.value, places), groups)
    if not isinstance(expr, of.Reshaped):
        return Operand(expr, tuple((i,) for i in typing.axes(expr) if i))
    left = [i for i in typing.axes(expr.value) if i]
    found: list[tuple[str, ...]] = []
    for extent in expr.shape:
        group: list[str] = []
        while product([widths[i] for i in group]) != extent:
            group.append(left.pop(0))
        found.append(tuple(group))
    return Operand(expr.value, tuple(found))


def bare(operand: Operand) -> Name | None:
    """The variable that an operand is, possibly permuted; None for others."""
    value = operand.value
    while isinstance(value, of.Permuted):
        value = value.value
    return value if isinstance(value, Name) else None


def _onto(value: Expr) -> list[Name]:
    """The variables onto which a matmul accumulates."""
    return [n for e in value.walk() if isinstance(e, of.Joined) for n in leaves(e.onto)]


def _define(found: Facts, name: Name, value: Expr) -> None:
    """Records a temporary at its first value."""
    if name not in found.typing.known and name.sort in (*FRAGMENTS, "dim"):
        found.typing.known[name] = (found.typing.dtype(value), found.typing.axes(value))


def _relate(found: Facts, name: Name, value: Expr) -> None:
    """Records that the variables of an expression have the same distribution as its result."""
    related = tiles_in(value)
    if name.sort in FRAGMENTS:
        related.append(name)
    found.join(related)
    for e in value.walk():
        if isinstance(e, of.Reduced | of.Scanned):
            index = found.typing.axes(e.value)[e.axis]
            marks = found.reduced if isinstance(e, of.Reduced) else found.scanned
            marks |= {(n, index) for n in tiles_in(e.value) if index in found.indices(n)}


def tiles_in(expr: Expr) -> list[Name]:
    """The variables in an expression that are tiles."""
    return [n for n in leaves(expr) if n.sort in FRAGMENTS]


def _loaded(typing: Typing, place: of.Place) -> tuple[str, Axes]:
    """The dtype and axes of a late load, i.e. of a place that is read where it is used."""
    return typing.dtypes[place.tensor.stem], typing.axes(place)  # type: ignore[attr-defined]


def _moved(found: Facts, name: Name) -> bool:
    """Whether the positions of a loaded variable come from another one (a gather)."""
    return bool(tiles_in(found.loads[name].place))


def _read(s: of.Statement) -> Iterator[Expr]:
    """The expressions that a statement reads, without those of nested statements."""
    match s:
        case of.Assign(_, value):
            yield value
        case of.Load(_, place):
            yield place
        case of.Store(place, value):
            yield from (place, value)
        case of.Bounds(_, _, end):
            yield end
        case of.Guard(condition):
            yield condition
        case of.Loop(_, low, high):
            yield from (low, high)
