"""TMA boxes: parts of tensors that the TMA moves between global and shared memory.

A shared memory tile that the TMA accesses has the dimension order of its tensor, in panels with the
TMA's swizzle. One box moves one panel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.facts import FRAGMENTS
from backends.gpu.threads.plans import PANEL_BYTES
from backends.gpu.threads.products import order_of, swizzle_of
from backends.gpu.threads.signals import TensorMap
from backends.gpu.threads.taps import Tapped
from backends.gpu.threads.vectors import contiguous
from backends.gpu.threads.windows import Window, widened, windows
from backends.gpu.tile import Name
from ir.spec import DTYPES, Apply, Expr, Index, Number

BOX_ALIGNED = 1024  # alignment of a box in bytes: the widest swizzle repeats after that many
MOST_DIMENSIONS = 5  # of a tensor
BOX_MOST = 256  # elements of a box along one dimension
ROWS = 8  # rows that are only known at launch are a multiple of this
BOXES = Name("bulk")  # the constant that tells whether the TMA takes all tensors of a launch


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes that a schedule assigns to a launch."""

    loads: dict[Name, of.Box]  # by variable
    stores: dict[str, of.Box]  # by tensor, for those that one statement stores
    descriptors: dict[Name, of.Descriptor]
    # Tensors of `stores` that another launch loads in bulk. Threads store them where their tiles
    # are no boxes.
    free: frozenset[str] = frozenset()


def boxes_of(launch: of.Launch, loaded: frozenset[str] = frozenset()) -> Boxes:
    """The boxes of a launch. loaded: tensors that other launches load in bulk."""
    found = Boxes({}, {}, {d.name: d for d in launch.descriptors}, loaded)
    stored: Counter[str] = Counter()
    for s in of.statements((*launch.once, *launch.body)):
        match s:
            case of.BoxLoad(name, box):
                found.loads[name] = box
            case of.BoxStore(box):
                found.stores[found.descriptors[box.descriptor].tensor] = box
            case of.Store(place):
                stored[place.tensor.stem] += 1  # type: ignore[attr-defined]
    for tensor in (t for t, count in stored.items() if count > 1):
        found.stores.pop(tensor, None)
    return found


def loaded_in_bulk(launches: Iterable[of.Launch]) -> frozenset[str]:
    """The tensors that some launches load as boxes."""
    found = (boxes_of(one) for one in launches)
    return frozenset(b.descriptors[x.descriptor].tensor for b in found for x in b.loads.values())


class Boxed(Tapped):
    """Lowering of tiles that the TMA reads and writes."""

    def __init__(self, boxes: Boxes, *args: Any):
        super().__init__(*args)
        self.boxes = boxes
        self.conditions: list[Expr] = []  # under which the TMA takes all tensors
        self.windows: dict[Name, Window] = {}  # of loads that share a box

    def require_all(self) -> None:
        """Raises BackendError where the TMA moves less than the schedule decides."""
        super().require_all()
        for name in self.boxes.loads:
            if map_of(self.windows[name].home if name in self.windows else name) not in self.maps:
                raise BackendError(
                    "emit",
                    f"`{name.stem}` is not copied in bulk: the engine fills whole tiles in rows of 32, "
                    "64 or a multiple of 128 bytes, for the block's tile or for a pipelined loop of it "
                    "whose loads are all such",
                )
        for tensor in self.boxes.stores.keys() - self.boxes.free:
            if Name("map", tensor) not in self.maps:
                raise BackendError("emit", f"`{tensor}` is not stored in bulk: its tile is no box")
        if self.launch.cluster is not None and self.launch.cluster[0] not in self.constants:
            raise BackendError(
                "emit",
                f"blocks of a cluster along `{self.launch.cluster[0].stem}` share no copies: what they "
                "read alike has no parts that are whole swizzled rows for each of them",
            )

    # -- stores -------------------------------------------------------------------------------

    def store(self, s: of.Store) -> None:
        """A store; a box is stored through shared memory where the TMA takes it."""
        box = self.boxes.stores.get(s.place.tensor.stem)  # type: ignore[attr-defined]
        if box is None or not self._stored_by_box(s, box):
            super().store(s)
            return
        held = self.fragments[self.variable(s.value)]  # type: ignore[arg-type]
        along = _ordered(held, box)[-1]
        with self.apart() as stored:
            self.in_subtiles(s, along, lambda part, start: self._boxed(s, box, part, start))
        with self.apart() as plain:
            super().store(s)
        self.put(to.Guard(BOXES, tuple(stored), tuple(plain)))

    def _boxed(self, s: of.Store, box: of.Box, held: to.Fragment, start: Expr | None) -> None:
        """The TMA store of a fragment. start: its first column."""
        axes, widths = _ordered(held, box), {a.index: a.width for a in held.axes}
        extents = (*map(self.width, axes[:-1]), widths[axes[-1]])
        name = Name("shared", "stored", copy=len(self.shared))
        tile = self.in_panels(to.Shared(name, held.dtype, axes, extents, self.free_region()))
        if isinstance(extents[-1], Number) and extents[-1].value % tile.panel:
            few = f"{extents[-1].value} columns are no panels of {tile.panel}"
            raise BackendError("emit", f"{few}, which the engine stores")
        engine = Name("map", s.place.tensor.stem)  # type: ignore[attr-defined]
        self.map(engine, box, tile)
        at = list(box.at)
        if start is not None:
            place = box.axes.index(axes[-1])
            at[place] = Apply("add", (at[place], start))
        self.put(to.SharedStore(name, held.name, copies=self.copies(held.axes)))
        self.put(to.BoxStore(name, engine, tuple(map(self.scalar, at)), s.cache))

    def _stored_by_box(self, s: of.Store, box: of.Box) -> bool:
        if s.reduction or not isinstance(s.value, Name) or s.value.sort not in FRAGMENTS:
            return False
        held = self.fragments[self.variable(s.value)]
        axes = _ordered(held, box)
        return len(axes) == len(held.axes) and self._as_boxes(axes, held.dtype, box)

    # -- tiles --------------------------------------------------------------------------------

    def fits_box(self, x: of.Load) -> bool:
        """Whether the TMA can fill the tile of a load."""
        if x.name not in self.boxes.loads:
            return False
        dtype, _ = self.typing.known[x.name]
        return self._as_boxes(self._axes(x), dtype, self.boxes.loads[x.name], x.name)

    def _axes(self, x: of.Load) -> tuple[str, ...]:
        """The axes of a load's tile; empty where several axes form its rows, as in operands with grouped axes."""
        indices = self.facts.indices(x.name)
        along = contiguous(x.place) or (indices[-1] if indices else "")
        if x.name not in self.facts.staged:
            return tuple(sorted(indices, key=lambda i: i == along))
        operand, _ = self.operands[x.name]
        return order_of(operand, along) if (along,) in operand.groups else ()

    def _as_boxes(
        self, axes: tuple[str, ...], dtype: str, box: of.Box, held: Name | None = None
    ) -> bool:
        """Whether a tile with these axes can have the layout of boxes. held: the loaded variable."""
        dimensions = tuple(i for i in box.axes if i in axes)
        if not axes or dimensions != axes or len(box.axes) > MOST_DIMENSIONS:
            return False
        extents = [int(e.value) if isinstance(e := self.width(i), Number) else 0 for i in axes]
        if held is not None and (decided := self.rows_of(held)) and decided.padding:
            return False
        panel, size = self.panel_of(held, axes[-1:], dtype), DTYPES[dtype]
        whole = prod(n or ROWS for n in extents[:-1]) * panel * size % BOX_ALIGNED == 0
        narrow = all(n <= BOX_MOST for n in extents[:-1]) and extents[-1] % panel == 0
        return whole and narrow and panel * size in (32, 64, PANEL_BYTES)

    def in_panels(self, tile: to.Shared, held: Name | None = None) -> to.Shared:
        """The tile with the layout of boxes, which is recorded. held: the loaded variable."""
        panel = self.panel_of(held, tile.axes[-1:], tile.dtype)
        swizzle = swizzle_of(panel, DTYPES[tile.dtype])
        made = replace(tile, padding=0, panel=panel, swizzle=swizzle)
        self.shared[tile.name] = made
        return made

    def boxed(self, x: of.Load, stages: int, divided: str) -> Name:
        """The tile of a load that the TMA fills, with the tensor map of its tensor. divided: the
        axis of which each block of a cluster copies a part; empty: none."""
        tile = replace(self.target(x, stages)[0], stages=stages)
        window = self.windows.get(x.name)
        if window is None:
            tile = self.in_panels(tile, x.name)
        else:
            tile = self._part(tile, x, window)
        if window is None or window.home == x.name:
            self.map(map_of(x.name), self.boxes.loads[x.name], tile, divided)
        return tile.name

    def share(self, loads: Sequence[of.Load]) -> None:
        """Records which loads of one iteration share a box."""
        if self.launch.cluster is not None:
            return
        given = []
        for x in loads:
            axes, (dtype, _) = self._axes(x), self.typing.known[x.name]
            extents = [int(e.value) if isinstance(e := self.width(i), Number) else 0 for i in axes]
            row = prod(extents[1:-1]) * self.panel_of(x.name, axes[-1:], dtype) * DTYPES[dtype]
            if len(axes) > 1 and all(extents) and row % BOX_ALIGNED == 0:
                given.append((x.name, self.boxes.loads[x.name], axes[0], extents[0]))
        found = windows(given, self.boxes.descriptors)
        most = {n: extent for n, _, _, extent in given}
        self.windows |= {n: w for n, w in found.items() if most[n] + w.more <= BOX_MOST}
        for x in (x for x in loads if x.name in self.windows and self.whole(x)):
            self.target(x, 1)  # the tile whose region the others share

    def _part(self, tile: to.Shared, x: of.Load, window: Window) -> to.Shared:
        """The tile as a part of the tile of a shared box."""
        first, *others = (int(e.value) for e in tile.extents)  # type: ignore[attr-defined]
        region = self.shared[replace(window.home, sort="shared")].region
        extents = (Number(first + window.more), *tile.extents[1:])
        made = self.in_panels(replace(tile, extents=extents, region=region), x.name)
        begin = window.rows * prod(others[:-1]) * made.panel
        self.shared[made.name] = made = replace(made, begin=begin)
        return made

    def whole(self, x: of.Load) -> bool:
        """Whether a load has a box of its own."""
        return x.name not in self.windows or self.windows[x.name].home == x.name

    def target(self, s: of.Load, stages: int) -> tuple[to.Shared, str, tuple[to.Axis, ...]]:
        """The tile to which a load is copied. Threads that copy a whole shared box get its rows."""
        tile, along, axes = super().target(s, stages)
        if s.name in self.windows:
            wide = {tile.axes[0]: tile.extents[0]}
            axes = self.distributed(tile.axes, along, DTYPES[tile.dtype], wide)
        return tile, along, axes

    def by_threads(
        self, body: Iterable[of.Statement], loads: Iterable[of.Load]
    ) -> tuple[list[of.Statement], list[of.Load]]:
        """The statements and loads of an iteration where threads copy, with shared boxes loaded whole."""

        def whole(x: of.Load) -> of.Load:
            if x.name not in self.windows:
                return x
            box, axis = self.boxes.loads[x.name], self._axes(x)[0]
            ends = self.boxes.descriptors[box.descriptor].sizes
            return widened(x, axis, ends[box.axes.index(axis)])

        left = [s for s in body if not isinstance(s, of.Load) or self.whole(s)]
        made = [whole(s) if isinstance(s, of.Load) else s for s in left]
        return made, [whole(x) for x in loads if self.whole(x)]

    def map(self, name: Name, box: of.Box, tile: to.Shared, divided: str = "") -> None:
        """Records the tensor map of a tensor, whose boxes are panels of a tile, and the condition
        under which the TMA takes it."""
        given = self.boxes.descriptors[box.descriptor]
        extents = dict(zip(tile.axes, (*tile.extents[:-1], Number(tile.panel)), strict=True))
        if divided:
            extents[divided] = self.part_of(extents[divided])
        self.maps[name] = TensorMap(
            name,
            given.tensor,
            tile.dtype,
            given.sizes,
            tuple(extents.get(i, Number(1)) for i in box.axes),
            given.steps,
            tile.panel * DTYPES[tile.dtype],
            BOXES,
        )
        condition = given.condition
        assert isinstance(condition, of.Describable)
        if condition.row is not None:
            self.conditions.append(of.Even(condition.row, Number(condition.aligned)))
        for extent in (e for e in tile.extents[:-1] if not isinstance(e, Number)):
            most = Apply("minimum", (extent, Number(BOX_MOST)))
            self.conditions += [of.Even(most, extent), of.Even(extent, Number(ROWS))]
        self.constants[BOXES] = to.All(tuple(dict.fromkeys(self.conditions)))

    # -- clusters -----------------------------------------------------------------------------

    def divided(self, x: of.Load, apart: Set[Name]) -> str:
        """The axis of a load's tile of which each block of a cluster multicasts a part: the first
        with several elements. Empty where the blocks read different boxes, or where a tile has no
        such parts. apart: variables that differ between blocks."""
        if self.launch.cluster is None:
            return ""
        axes = self._axes(x)
        dtype, _ = self.typing.known[x.name]
        alike = not any(n in apart for e in self.boxes.loads[x.name].at for n in origins(e))
        extents = [int(e.value) if isinstance(e := self.width(i), Number) else 0 for i in axes[:-1]]
        first = next((n for n, extent in enumerate(extents) if extent != 1), None)
        if not alike or first is None or 0 in extents:
            return ""
        rows, left = divmod(prod(extents), self.launch.cluster[1])
        whole = rows * self.panel_of(x.name, axes[-1:], dtype) * DTYPES[dtype] % BOX_ALIGNED == 0
        return (
            axes[first]
            if whole and not left and not extents[first] % self.launch.cluster[1]
            else ""
        )

    def part_of(self, extent: Expr) -> Expr:
        """The part of an extent that one block of a cluster copies."""
        assert self.launch.cluster is not None, "else nothing is divided"
        return Apply("floordiv", (extent, self.launch.cluster[0]))


def origins(expr: Expr) -> Iterator[Name]:
    """The variables in an expression; an index counts as its origin."""
    for n in expr.walk():
        if isinstance(n, Name | Index):
            yield n if isinstance(n, Name) else Name("origin", n.name)


def _ordered(held: to.Fragment, box: of.Box) -> tuple[str, ...]:
    """The axes of a fragment in the order of the tensor's dimensions."""
    own = {a.index for a in held.axes}
    return tuple(i for i in box.axes if i in own)


def map_of(name: Name) -> Name:
    """The name of the tensor map of a loaded variable."""
    return Name("map", name.stem, copy=name.copy)
