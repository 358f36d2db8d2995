"""Lowers the statements of a tile program to statements of all threads of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.flags import Acquire, AcquireAll, Publish
from backends.gpu.threads import thread as to
from backends.gpu.threads.constants import constant
from backends.gpu.threads.distribution import Spread, bits_of, parts_of, replicated
from backends.gpu.threads.expressions import rewritten
from backends.gpu.threads.facts import FRAGMENTS, Facts, tiles_in
from backends.gpu.threads.owners import Owners
from backends.gpu.threads.scans import EXCHANGE, scan
from backends.gpu.threads.vectors import aligned, contiguous
from backends.gpu.tile import CLUSTER, CONSTANTS, Name
from ir.spec import DTYPES, FLOATS, SMALL, Apply, Expr, Index, Number

Context = Mapping[str, to.Axis]  # the distribution of each index where an expression is computed
_SUMMED_IN_F32 = ("f16", "bf16", "tf32", *SMALL)
_EXACT_IN_TF32 = ("f16", "bf16", *SMALL)


class Lowering:
    """The statements of one launch, and the fragments, tiles and constants that they use."""

    def __init__(
        self,
        launch: of.Launch,
        facts: Facts,
        owners: Owners,
        tiles: Mapping[str, int],
        sizes: Mapping[str, float],
    ):
        self.launch = launch
        self.facts = facts
        self.owners = owners
        self.tiles = tiles  # tile size of each tiled index
        self.typing = facts.typing
        self.widths = dict(launch.widths)
        self.threads = 1 << owners.bits
        self.fragments: dict[Name, to.Fragment] = {}
        self.shared: dict[Name, to.Shared] = {}
        self.constants: dict[Name, Expr] = {}
        self.sizes = sizes  # for which the nest is tuned
        self.ends: dict[str, Expr] = {}  # the size that bounds the positions of an index
        self.distributions: dict[str, list[to.Axis]] = {}  # those whose positions are computed
        # The distributions of copies, which compute their own positions
        self.passing: set[to.Axis] = set()
        self.found: list[to.Statement] = []
        self.parts = max((n.copy for n in self.typing.known if n.sort == "part"), default=0)

    # -- names --------------------------------------------------------------------------------

    def axis(self, index: str, spread: Spread) -> to.Axis:
        """An axis of an index. A group of indices has the product of their widths."""
        return spread.axis(index, self.width(index), self.threads)

    def width(self, index: str) -> Expr:
        """Elements along an index."""
        return self.widths[index]

    def axes_of(self, name: Name) -> tuple[to.Axis, ...]:
        """The axes of a variable."""
        return tuple(self.axis(i, self.owners.of(name, i)) for i in self.facts.indices(name))

    def fragment(self, name: Name, dtype: str, axes: Iterable[to.Axis] = ()) -> Name:
        """Records a fragment, if it is new."""
        self.fragments.setdefault(name, to.Fragment(name, dtype, tuple(axes)))
        return name

    def variable(self, name: Name) -> Name:
        """The fragment of a variable of the tile program."""
        if name.sort not in FRAGMENTS:
            return self.fragment(name, "i32")
        return self.fragment(name, self.typing.known[name][0], self.axes_of(name))

    def temporary(self, dtype: str, axes: Iterable[to.Axis]) -> Name:
        """A new fragment."""
        self.parts += 1
        return self.fragment(Name("part", copy=self.parts), dtype, axes)

    def positions(self, axis: to.Axis) -> int:
        """The number of an axis among the distributions of its index."""
        known = self.distributions.setdefault(axis.index, [])
        if axis not in known:
            known.append(axis)
        return known.index(axis)

    def standing(self, index: str) -> list[to.Axis]:
        """The distributions of an index whose positions are computed where its origin is defined."""
        return [a for a in self.distributions.get(index, ()) if a not in self.passing]

    def put(self, s: to.Statement) -> None:
        """Appends a statement."""
        self.found.append(s)

    @contextmanager
    def apart(self) -> Iterator[list[to.Statement]]:
        """A separate list for statements that are appended within the context."""
        outer, self.found = self.found, []
        yield self.found
        self.found = outer

    def block(self, statements: Iterable[of.Statement]) -> tuple[to.Statement, ...]:
        """The statements of a block."""
        with self.apart() as found:
            for s in statements:
                self.statement(s)
        return tuple(found)

    # -- statements ---------------------------------------------------------------------------

    def statement(self, s: of.Statement) -> None:
        """Appends the statements for one statement of the tile program."""
        match s:
            case of.Assign() if id(s) in self.facts.matmuls:
                raise BackendError("emit", "this launch has no plan for its matmuls")
            case of.Assign(name, value):
                self.assign(name, value)
            case of.Positions(name, origin, _):
                for axis in self.standing(name.stem):
                    self.position(axis, origin)
            case of.Bounds(name, _, end, even):
                self.bound(name.stem, end, even)
            case of.StepOrigin():
                self.put(to.Each(self.variable(s.name), self.scalar(_step(s))))
            case of.Load():
                self.load(s)
            case of.Store():
                self.store(s)
            case of.Guard(condition, body, others):
                self.put(to.Guard(self.scalar(condition), self.block(body), self.block(others)))
            case of.Loop():
                self.loop(s)
            case Publish(flag):
                self.put(to.Barrier())
                self.by_one(to.DeviceFence(), to.Raise(self.place(flag, {})))
            case Acquire(flag):
                self.by_one(to.AwaitRaised(self.place(flag, {})), to.DeviceFence())
                self.put(to.Barrier())
            case AcquireAll(first, count):
                self.put(to.AwaitRaised(self.place(first, {}), self.scalar(count)))
                self.put(to.Barrier())
            case _:
                raise BackendError("emit", f"a {type(s).__name__} has no threads")

    def by_one(self, *statements: to.Statement) -> None:
        """Statements that only the first thread executes."""
        self.put(to.Guard(of.Check(to.Thread(), equal=Number(0)), statements))

    def loop(self, s: of.Loop) -> None:
        """A loop whose loads are not prefetched."""
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        self.put(to.Loop(name, low, high, s.tile, self.block(s.body), s.unrolled))

    def position(self, axis: to.Axis, origin: Expr | None) -> None:
        """The positions of an index in one distribution."""
        name = Name("positions", axis.index, copy=self.positions(axis))
        self.fragment(name, "i32", (axis,))
        self.put(to.Positions(name, None if origin is None else self.scalar(origin)))

    def bound(self, index: str, end: Expr, even: Name | None) -> None:
        """The bounds masks of an index, in each distribution."""
        self.ended(index, end)
        for axis in self.standing(index):
            copy = self.positions(axis)
            name = self.fragment(Name("mask", index, copy=copy), "b8", (axis,))
            self.put(to.Each(name, self.inside(axis, end, even)))

    def ended(self, index: str, end: Expr) -> None:
        """Records the end of the positions of an index, if it is a size."""
        if not any(isinstance(n, Name | Index) for n in end.walk()):
            self.ends[index] = end

    def inside(self, axis: to.Axis, end: Expr, even: Name | None) -> Expr:
        """Whether a position is in bounds."""
        at = to.Element(Name("positions", axis.index, copy=self.positions(axis)), (axis.index,))
        test: Expr = of.Check(at, below=self.scalar(end))
        return test if even is None else of.Compute("or", (test, even))

    def assign(self, name: Name, value: Expr) -> None:
        """Assigns a variable of the tile program."""
        axes = self.axes_of(name) if name.sort in FRAGMENTS else ()
        held = self.variable(name)
        if isinstance(value, of.Reduced):
            reduced, _ = self.reduced(value, _context(axes), held)
            if reduced == held:
                return
            self.put(to.Each(held, to.Element(reduced, tuple(a.index for a in axes))))
            return
        self.put(to.Each(held, self.element(value, _context(axes))))

    def load(self, s: of.Load) -> None:
        """A load into registers."""
        name = self.variable(s.name)
        axes = self.fragments[name].axes
        place = self.place(s.place, _context(axes))
        vector = self.vector(s.place, axes, self.dtype_of(s.place))
        self.put(to.Load(name, place, s.other, vector, s.cache))

    def store(self, s: of.Store) -> None:
        """A store from registers; one of several copies of an element is stored."""
        axes = {a.index: a for n in tiles_in(s.value) for a in self.axes_of(n)}
        held = tuple(axes[i] for i in self.typing.axes(s.value) if i is not None)
        place, value = self.place(s.place, axes), self.element(s.value, axes)
        vector = None if s.reduction else self.vector(s.place, held, self.dtype_of(s.place))
        self.put(to.Store(place, value, held, self.copies(held), s.reduction, vector, s.cache))

    def dtype_of(self, place: of.Place) -> str:
        """The dtype of the tensor of a place."""
        return self.typing.dtypes[place.tensor.stem]  # type: ignore[attr-defined]

    def copies(self, axes: Iterable[to.Axis]) -> int:
        """A mask of the bits of the thread index that distinguish copies of an element."""
        own = frozenset().union(*map(bits_of, axes))
        return sum(1 << b for b in range(self.owners.bits) if b not in own)

    def vector(self, place: of.Place, axes: tuple[to.Axis, ...], dtype: str) -> to.Vector | None:
        """The vector access of registers along the contiguous axis; None where there is none."""
        along = contiguous(place)
        axis = next((a for a in axes if a.index == along), None)
        if axis is None or axis is not axes[-1]:
            return None
        extent, stride = axis.register.flat[0]
        return self.run(place, along, min(extent, 16 // DTYPES[dtype]) if stride == 1 else 1)

    def run(self, place: of.Place, along: str, most: int) -> to.Vector | None:
        """The longest vector of up to `most` elements that is aligned at the tuned sizes, else the
        longest that is aligned at any. None where there is none."""
        found = dict(self._runs(place, along, most))
        if not found:
            return None
        tuned = self.tuned_run(place, along, most)
        count = tuned if tuned in found else max(found)
        return to.Vector(along, count, self.flag(place, found[count]))

    def tuned_run(self, place: of.Place, along: str, most: int) -> int:
        """The longest vector of up to `most` elements that is aligned at the tuned sizes."""
        runs = self._runs(place, along, most)
        return next((n for n, condition in runs if constant(condition, self.sizes)), 1)

    def _runs(self, place: of.Place, along: str, most: int) -> Iterator[tuple[int, Expr]]:
        """Vector lengths, longest first, each with the condition on sizes under which it is aligned."""
        while most > 1:
            condition = aligned(place, along, most, self.tiles, self.ends)
            if condition is not None:
                yield most, condition
            most //= 2

    def flag(self, place: of.Place, condition: Expr) -> Name | None:
        """The constant that tells whether a condition on sizes holds; None where it always does."""
        if condition == to.All(()):
            return None
        for name, known in self.constants.items():
            if known == condition:
                return name
        stem = place.tensor.stem  # type: ignore[attr-defined]
        copy = sum(n.sort == "aligned" and n.stem == stem for n in self.constants)
        name = Name("aligned", stem, copy=copy)
        self.constants[name] = condition
        return name

    # -- expressions --------------------------------------------------------------------------

    def scalar(self, expr: Expr) -> Expr:
        """An expression without axes."""
        return self.element(expr, {})

    def place(self, place: of.Place, context: Context) -> of.Place:
        """A place, element by element."""
        return self.element(place, context)  # type: ignore[return-value]

    def element(self, expr: Expr, context: Context) -> Expr:
        """An expression of tiles as one of elements; reductions in it are computed first."""

        def change(node: Expr) -> Expr | None:
            match node:
                case Name("positions" | "mask" as sort, index):
                    copy = self.positions(context[index])
                    return to.Element(Name(sort, index, copy=copy), (index,))
                case Name() if node.sort in FRAGMENTS:
                    return to.Element(self.variable(node), self.facts.indices(node))
                case Name():
                    return (
                        node if node.sort in (*CONSTANTS, CLUSTER, "pointer") else self._plain(node)
                    )
                case Index(name):
                    return self._plain(Name("origin", name))
                case of.Spread(value) | of.Permuted(value) | of.Broadcast(value):
                    return self.element(value, context)
                case of.Compute("round_tf32", (of.Converted(value, "f32") as short,)) if (
                    self.typing.dtype(value) in _EXACT_IN_TF32
                ):
                    return self.element(short, context)
                case of.Full(value, _, dtype):
                    return of.Converted(self.element(value, context), dtype, True)
                case of.Reduced():
                    return _element(*self.reduced(node, context))
                case of.Scanned():
                    return _element(*self.scanned(node, context))
            return None

        return rewritten(expr, change)

    def _plain(self, name: Name) -> to.Element:
        return to.Element(self.fragment(name, "i32"))

    def axes(self, value: Expr, context: Context) -> tuple[to.Axis, ...]:
        """The axes along which an expression is computed: those of its variables, else those of its
        context, else the first distribution of its index."""
        known = dict(context) | {a.index: a for n in tiles_in(value) for a in self.axes_of(n)}
        found = []
        for index in (i for i in self.typing.axes(value) if i is not None):
            if index not in known:
                held = self.standing(index)
                known[index] = held[0] if held else self.axis(index, replicated())
            found.append(known[index])
        return tuple(found)

    # -- reductions ---------------------------------------------------------------------------

    def reduced(
        self, e: of.Reduced, context: Context, into: Name | None = None
    ) -> tuple[Name, tuple[to.Axis, ...]]:
        """A reduction: within each thread's registers, then within warps, then across warps.

        into: a fragment for the result, if it has the same axes and dtype.
        """
        axes = self.axes(e.value, context)
        index = self.typing.axes(e.value)[e.axis]
        over = next(a for a in axes if a.index == index)
        rest = tuple(a for a in axes if a is not over)
        dtype = self.typing.dtype(e.value)
        if dtype in _SUMMED_IN_F32 and e.reduction in ("sum", "prod"):
            dtype = "f32"
        value = self.element(e.value, _context(axes))
        held = self.fragments.get(into) if into else None
        fits = held is not None and (held.dtype, held.axes) == (dtype, rest)
        name = into if fits and into else self.temporary(dtype, rest)
        self.put(to.Reduce(name, e.reduction, value, axes, over.index, e.nan))
        bits = bits_of(over)
        if within := tuple(1 << b for b in sorted(bits) if b < self.owners.warp_bits):
            self.put(to.Shuffle(name, e.reduction, within, e.nan))
        if warps := sorted(b for b in bits if b >= self.owners.warp_bits):
            self.exchange(name, e.reduction, warps, e.nan)
        return name, rest

    def exchange(self, name: Name, reduction: str, warps: list[int], nan: bool) -> None:
        """Combines the partial reductions of warps through shared memory."""
        held = self.fragments[name]
        tile = Name("shared", "part", copy=self.parts)
        own, every = parts_of(warps, Number(1 << len(warps)), self.threads)
        given = self.temporary(held.dtype, (own, *held.axes))
        taken = self.temporary(held.dtype, (every, *held.axes))
        indices = tuple(a.index for a in held.axes)
        self.put(to.Each(given, to.Element(name, indices)))
        self.passed(tile, given, taken)
        value = to.Element(taken, ("part", *indices))
        self.put(to.Reduce(name, reduction, value, (every, *held.axes), "part", nan))

    def exchanged(
        self, tile: Name, dtype: str, axes: Iterable[to.Axis], region: str, padding: int = 0
    ) -> None:
        """Records a shared memory tile with these axes."""
        indices, extents = zip(*((a.index, a.width) for a in axes), strict=True)
        self.shared[tile] = to.Shared(tile, dtype, indices, extents, region, padding=padding)

    def passed(
        self, tile: Name, given: Name, taken: Name, region: str = EXCHANGE, padding: int = 0
    ) -> None:
        """Passes a fragment through shared memory to one with another distribution."""
        held = self.fragments[given]
        self.exchanged(tile, held.dtype, self.fragments[taken].axes, region, padding)
        self.put(to.SharedStore(tile, given, copies=self.copies(held.axes)))
        self.put(to.SharedLoad(taken, tile))

    def scanned(self, e: of.Scanned, context: Context) -> tuple[Name, tuple[to.Axis, ...]]:
        """A scan along an axis whose positions threads hold in order."""
        axes = self.axes(e.value, context)
        index = self.typing.axes(e.value)[e.axis]
        over = next(a for a in axes if a.index == index)
        dtype = self.typing.dtype(e.value)
        name = self.temporary(dtype, axes)
        nan = e.reduction in ("max", "min") and dtype in FLOATS
        value = self.element(e.value, _context(axes))
        scan(self, name, e.reduction, value, over, nan)
        return name, axes


def _element(name: Name, axes: Iterable[to.Axis]) -> to.Element:
    return to.Element(name, tuple(a.index for a in axes))


def _context(axes: Iterable[to.Axis]) -> dict[str, to.Axis]:
    return {a.index: a for a in axes}


def _step(s: of.StepOrigin) -> Expr:
    """The origin of one of several loops that are flattened into one."""
    at: Expr = s.step
    if s.within is not None:
        at = Apply("floordiv", (at, s.within))
    if s.count is not None:
        at = Apply("mod", (at, s.count))
    return Apply("mul", (at, Number(s.tile))) if s.tile != 1 else at
