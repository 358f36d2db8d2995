"""Shared memory: its contents, and who read and wrote each element since the last barrier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from backends.gpu.layout.layout import Layout
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.state import Block
from backends.gpu.threads.interpreter.values import held_as, unknown
from backends.gpu.threads.thread import Shared
from backends.gpu.tile import Name
from ir.spec import DTYPES, Expr

ALIGNED = 16  # alignment of regions in bytes
_NEVER, _SEVERAL = -1, -1  # smaller numbers: several threads of one role
_IN_FLIGHT = 1 << 30  # the epoch of an element that a copy will write, or that a matmul is reading


@dataclass(slots=True)
class Region:
    """Memory that tiles share, with the last access and its epoch for each unit."""

    units: int
    unit_bytes: int
    written: np.ndarray = field(init=False)  # epoch
    writer: np.ndarray = field(init=False)  # epoch
    dtype: np.ndarray = field(init=False)  # thread, or _SEVERAL
    read: np.ndarray = field(init=False)  # number of the dtype that was written
    reader: np.ndarray = field(init=False)
    unread: np.ndarray = field(init=False)  # whether its box was not waited for
    data: dict[str, np.ndarray] = field(init=False, default_factory=dict)  # elements by dtype

    def __post_init__(self) -> None:
        self.written, self.read = (np.full(self.units, _NEVER, np.int32) for _ in range(2))
        self.writer, self.reader = (np.full(self.units, _SEVERAL, np.int32) for _ in range(2))
        self.dtype = np.zeros(self.units, np.int8)
        self.unread = np.zeros(self.units, bool)

    def clear(self) -> None:
        """Resets the state for a new block."""
        self.written.fill(_NEVER)
        self.read.fill(_NEVER)
        self.unread.fill(False)


@dataclass(frozen=True, slots=True)
class Tile:
    """A shared memory tile at the sizes of a launch."""

    shared: Shared
    region: Region
    extents: tuple[int, ...]
    stage: int  # elements of one stage

    def offsets(self, positions: Sequence[np.ndarray]) -> np.ndarray:
        """The offsets in a stage of the elements at positions along each axis."""
        first = len(positions) - self.shared.row
        row, column = (
            _row_major(positions[part], self.extents[part])
            for part in (slice(0, first), slice(first, None))
        )
        if self.shared.lines is not None:
            row = _among(row, self.shared.lines)
        if panel := self.shared.panel:
            found = (column // panel * prod(self.extents[:first]) + row) * panel + column % panel
        else:
            found = row * (prod(self.extents[first:]) + self.shared.padding) + column
        found = found + self.shared.begin
        return self.shared.swizzle(found) if self.shared.swizzle else found  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Access:
    """The elements of a tile that threads access, in one order."""

    elements: np.ndarray  # offsets in the tile, including its stages
    threads: np.ndarray  # of each element
    units: np.ndarray  # [elements, units of each]
    owners: np.ndarray  # the thread of each unit, or one for all units of an element

    @staticmethod
    def of(tile: Tile, elements: np.ndarray, threads: np.ndarray) -> Access:
        """The access of elements by threads, in flat arrays."""
        each = DTYPES[tile.shared.dtype] // tile.region.unit_bytes
        if each == 1:
            return Access(elements, threads, elements, threads)
        units = elements[:, None] * each + np.arange(each)
        return Access(elements, threads, units, np.broadcast_to(threads[:, None], units.shape))

    def where(self, mask: np.ndarray) -> Access:
        """The part of the access for which a mask holds."""
        return Access(self.elements[mask], self.threads[mask], self.units[mask], self.owners[mask])


@dataclass(slots=True)
class _Flight:
    """A copy that was issued and has not arrived."""

    tile: Tile
    access: Access
    values: np.ndarray


@dataclass(slots=True)
class _Own:
    """What one role has in flight, and the visibility of its writes."""

    started: list[_Flight] = field(default_factory=list)
    groups: list[list[_Flight]] = field(default_factory=list)
    # One entry per matmul in flight, oldest first.
    reading: list[list[tuple[Tile, Access]]] = field(default_factory=list)
    fenced: bool = True  # whether its threads' copies are visible to the async proxy
    loading: set[str] = field(default_factory=set)  # regions that it has loaded from since a fence
    proxied: int = 1  # the epoch since the last barrier that includes the async proxy


class SharedMemory:
    """The shared memory of one block. apart: whether its roles have separate barriers, which do not
    order accesses of other roles."""

    def __init__(
        self,
        tiles: Mapping[Name, Shared],
        number: Callable[[Expr], int],
        block: Block,
        apart: bool = False,
    ):
        self.block = block  # the role that runs
        self.apart = apart
        # The number of barriers plus one; accesses that signals order count as before all of them.
        self.epoch = 1
        self.roles: dict[int, _Own] = {}  # by the first thread of each role
        self.flown: set[str] = set()  # regions that the TMA has written
        self.regions: dict[str, Region] = {}
        self.tiles: dict[Name, Tile] = {}
        self.dtypes = sorted({s.dtype for s in tiles.values()})
        extents = {n: tuple(map(number, s.extents)) for n, s in tiles.items()}
        stages = {n: _stage(s, extents[n]) for n, s in tiles.items()}
        self.bytes = 0
        for name in dict.fromkeys(s.region for s in tiles.values()):
            own = {n: s for n, s in tiles.items() if s.region == name}
            room = max(stages[n] * s.stages * DTYPES[s.dtype] for n, s in own.items())
            unit = min(DTYPES[s.dtype] for s in own.values())
            region = self.regions[name] = Region(-(-room // unit), unit)
            self.bytes += -(-room // ALIGNED) * ALIGNED
            for n, s in own.items():
                self.tiles[n] = Tile(s, region, extents[n], stages[n])
                count = -(-room // DTYPES[s.dtype])
                region.data[s.dtype] = np.full(count, unknown(s.dtype), held_as(s.dtype))

    def begin(self) -> None:
        """Resets the state for a new block."""
        self.roles = {}
        for region in self.regions.values():
            region.clear()

    @property
    def own(self) -> _Own:
        """What the running role has in flight."""
        first = self.block.first
        if first not in self.roles:  # as if there had been a barrier before
            self.roles[first] = _Own(proxied=self.epoch)
        return self.roles[first]

    def barrier(self, proxy: bool) -> None:
        """Makes writes of threads visible to all threads; proxy: to the async proxy, too."""
        own = self.own
        own.loading.clear()
        self.epoch += 1
        if proxy:
            own.proxied = self.epoch
        if self.apart:
            for region in self.regions.values():
                self._keep(region.written, region.writer)
                self._keep(region.read, region.reader)

    def _keep(self, epochs: np.ndarray, threads: np.ndarray) -> None:
        """Moves accesses of other roles since the last barrier after this barrier, which does not order them."""
        first, last = self.block.first, self.block.first + self.block.threads
        own = (threads >= first) & (threads < last) | (threads == self._several)
        epochs[(epochs == self.epoch - 1) & ~own] = self.epoch

    @property
    def _several(self) -> int:
        """The mark for several threads: of this role only, where roles have separate barriers."""
        return _SEVERAL - 1 - self.block.first if self.apart else _SEVERAL

    def _marks(self, threads: np.ndarray) -> np.ndarray | int:
        """The mark for several threads, for units that some threads accessed before this role did."""
        if not self.apart:
            return _SEVERAL
        first, last = self.block.first, self.block.first + self.block.threads
        own = (threads >= first) & (threads < last) | (threads == self._several)
        return np.where(own, self._several, _SEVERAL)

    def fence(self) -> None:
        """Makes writes of threads visible to the async proxy."""
        self.own.fenced = True
        self.own.loading.clear()

    def passed(self, tile: Tile, stage: int, fenced: bool) -> None:
        """A signal passes on a stage of a tile: its earlier accesses are complete.

        fenced: whether earlier writes are visible to the async proxy.
        """
        if not fenced:
            self.epoch += 1  # the writes are after the last fence
        each = tile.stage * DTYPES[tile.shared.dtype] // tile.region.unit_bytes
        units = slice(stage * each, (stage + 1) * each)
        tile.region.unread[units] = False
        last = min(self.epoch, self.own.proxied) - 1 if fenced else self.epoch - 1
        for epochs in (tile.region.written[units], tile.region.read[units]):
            settled = epochs != _IN_FLIGHT
            epochs[settled] = np.minimum(epochs[settled], last)

    def fly(self, tile: Tile, access: Access, values: np.ndarray) -> None:
        """Issues a copy whose completion a signal reports."""
        self._refuse(
            faults.STAGE_IN_USE,
            "copies to what another copy brought, for which nobody waited",
            "let loops that fill one tile share a ring of stages",
            (tile, access, tile.region.unread[access.units], None),
        )
        self._may_write(tile, access, values, faults.STAGE_IN_USE, "copies to")
        self.flown.add(tile.shared.region)
        tile.region.written[access.units], tile.region.writer[access.units] = (
            _IN_FLIGHT,
            access.owners,
        )

    def land(self, tile: Tile, access: Access, values: np.ndarray) -> None:
        """Completes the copy."""
        self._put(tile, access, values, None)
        tile.region.unread[access.units] = True

    # -- accesses -----------------------------------------------------------------------------

    def read(self, tile: Tile, access: Access) -> np.ndarray:
        """The elements, in the order of the access."""
        self.own.loading.add(tile.shared.region)
        region, units, now = tile.region, access.units, self.epoch
        written = region.written[units]
        if written.size and written.max() >= now:
            self._require_landed(tile, access, written, faults.COPY_IN_FLIGHT, "reads")
            wrong = (written == now) & (region.writer[units] != access.owners)
            self._refuse(
                faults.READ_AFTER_WRITE,
                "reads what thread {other} wrote since the last barrier",
                "put a barrier between the write and this read",
                (tile, access, wrong, region.writer),
            )
        self._require_written(tile, access, written)
        before = region.reader[units]
        many = (region.read[units] == now) & (before != access.owners)
        region.read[units] = np.maximum(region.read[units], now)
        region.reader[units] = access.owners
        again = region.reader[units] != access.owners
        if many.any() or again.any():
            region.reader[units[again]] = self._several
            region.reader[units[many]] = self._marks(before[many])
        return tile.region.data[tile.shared.dtype][access.elements]

    def read_past_registers(self, tile: Tile, access: Access) -> np.ndarray:
        """The elements, as read by an instruction that many threads execute together."""
        region, units = tile.region, access.units
        written = region.written[units]
        self._require_landed(tile, access, written, faults.COPY_IN_FLIGHT, "reads")
        self._refuse(
            faults.READ_AFTER_WRITE,
            "reads, by the asynchronous proxy, what thread {other} wrote since the last barrier for it",
            "put a barrier with a fence for the asynchronous proxy between the write and this read",
            (tile, access, written >= self.own.proxied, region.writer),
        )
        self._require_written(tile, access, written)
        region.read[units], region.reader[units] = _IN_FLIGHT, self._several
        self.own.reading[-1].append((tile, access))
        return tile.region.data[tile.shared.dtype][access.elements]

    def read_at_once(self, tile: Tile, access: Access) -> np.ndarray:
        """The elements, as the TMA reads them while a thread waits."""
        self.begin_matmul()
        found = self.read_past_registers(tile, access)
        self.own.reading.pop()
        tile.region.read[access.units], tile.region.reader[access.units] = self.epoch, access.owners
        return found

    def begin_matmul(self) -> None:
        """Starts another instruction in flight, to which the following reads through the async proxy belong."""
        self.own.reading.append([])

    def settle(self, pending: int) -> None:
        """Completes the oldest matmuls until at most `pending` are in flight: their tiles have been read."""
        reading = self.own.reading
        while len(reading) > pending:
            for tile, access in reading.pop(0):
                tile.region.read[access.units] = self.epoch
            for tile, access in (one for group in reading for one in group):
                tile.region.read[access.units] = _IN_FLIGHT

    def _require_written(self, tile: Tile, access: Access, written: np.ndarray) -> None:
        lacking = (written < 0) | (tile.region.dtype[access.units] != self._number(tile))
        self._refuse(
            faults.UNINITIALISED,
            "reads what no thread wrote to this tile",
            "store all of the tile first; another tile of the region may have overwritten it",
            (tile, access, lacking, None),
        )

    def write(self, tile: Tile, access: Access, values: np.ndarray) -> None:
        """Stores the values of an access."""
        same = self._may_write(tile, access, values, faults.WRITE_AFTER_READ, "writes")
        self._put(tile, access, values, same)

    def start(self, tile: Tile, access: Access, values: np.ndarray) -> None:
        """Issues a copy, whose values arrive when its group is waited for."""
        self._may_write(tile, access, values, faults.STAGE_IN_USE, "copies to")
        region, units = tile.region, access.units
        region.written[units], region.writer[units] = _IN_FLIGHT, access.owners
        self.own.started.append(_Flight(tile, access, values))

    def commit(self) -> None:
        """Closes the group of the copies that were issued."""
        own = self.own
        own.groups.append(own.started)
        own.started = []

    def wait(self, pending: int) -> None:
        """Completes the oldest groups until at most `pending` are in flight."""
        own = self.own
        while len(own.groups) > pending:
            for flight in own.groups.pop(0):
                own.fenced = False
                self._put(flight.tile, flight.access, flight.values, None)

    def _may_write(
        self, tile: Tile, access: Access, values: np.ndarray, after_read: str, verb: str
    ) -> np.ndarray | None:
        """Checks a write. Returns which of its elements were already written since the last barrier."""
        region, units, now = tile.region, access.units, self.epoch
        used = (region.read[units] >= now) & (region.reader[units] != access.owners)
        self._refuse(
            after_read,
            f"{verb} what thread {{other}} read since the last barrier",
            "put a barrier between the read and this one, or use another stage",
            (tile, access, used, region.reader),
        )
        written = region.written[units]
        if not written.size or written.max() < now:
            return None
        self._require_landed(tile, access, written, faults.STAGE_IN_USE, verb)
        others = (written == now) & (region.writer[units] != access.owners)
        differ = _differ(region.data[tile.shared.dtype][access.elements], values)
        if units.ndim > 1:
            differ = differ[:, None]
        differ = differ | (region.dtype[units] != self._number(tile))
        self._refuse(
            faults.WRITE_AFTER_WRITE,
            f"{verb} what thread {{other}} wrote since the last barrier, with another value",
            "let one thread write each element, or put a barrier between the writes",
            (tile, access, others & differ, region.writer),
        )
        return others

    def _put(
        self, tile: Tile, access: Access, values: np.ndarray, shared: np.ndarray | None
    ) -> None:
        region, units = tile.region, access.units
        data = region.data[tile.shared.dtype]
        data[access.elements] = values
        before = region.writer[units]
        region.written[units], region.writer[units] = self.epoch, access.owners
        region.dtype[units] = self._number(tile)
        again = region.writer[units] != access.owners
        if again.any():
            lost = _differ(data[access.elements], values)
            self._refuse(
                faults.WRITE_AFTER_WRITE,
                "writes an element to which thread {other} writes another value",
                "let one thread write each element: `copies` names the bits of those that do not",
                (tile, access, again & (lost[:, None] if units.ndim > 1 else lost), region.writer),
            )
        region.writer[units[again]] = self._several
        if shared is not None and shared.any():
            region.writer[units[shared]] = self._marks(before[shared])

    # -- faults -------------------------------------------------------------------------------

    def _number(self, tile: Tile) -> int:
        return self.dtypes.index(tile.shared.dtype)

    def _require_landed(
        self, tile: Tile, access: Access, written: np.ndarray, kind: str, verb: str
    ) -> None:
        self._refuse(
            kind,
            f"{verb} what a copy of thread {{other}} has in flight",
            "wait for the copy's group, then put a barrier",
            (tile, access, written == _IN_FLIGHT, tile.region.writer),
        )

    def _refuse(
        self,
        kind: str,
        what: str,
        hint: str,
        of: tuple[Tile, Access, np.ndarray, np.ndarray | None],
    ) -> None:
        """Raises ThreadFault for the first element where a mask holds, if there is one."""
        tile, access, wrong, others = of
        if not wrong.any():
            return
        first = int(np.flatnonzero(wrong.reshape(-1))[0])
        unit = access.units.reshape(-1)[first]
        element = int(access.elements[first // max(1, wrong.size // access.elements.size)])
        thread = int(access.owners.reshape(-1)[first])
        threads: list[Any] = [thread]
        if others is not None:
            other = int(others[unit])
            what = what.format(other="several" if other < 0 else other)
            threads += [other] if other >= 0 and other != thread else []
        stage, offset = divmod(element, tile.stage)
        where = f"`{tile.shared.name.stem}` at offset {offset} of stage {stage}"
        raise self.block.fault(kind, f"thread {thread} {what}: {where}", hint, threads)


def require_room(memory: SharedMemory, limit: int, launch: str) -> None:
    """Raises ThreadFault where a block needs more shared memory than it may have."""
    if memory.bytes > limit:
        raise ThreadFault(
            faults.SHARED_MEMORY,
            f"a block needs {memory.bytes} bytes of shared memory and may have {limit}",
            "use smaller tiles or fewer stages, or let tiles that are never alive together overlap",
            launch,
        )


def _stage(s: Shared, extents: tuple[int, ...]) -> int:
    """Elements of a stage."""
    first = len(extents) - s.row
    row = prod(extents[first:])
    row = -(-row // s.panel) * s.panel if s.panel else row + s.padding
    return prod(extents[:first]) * row


def _row_major(positions: Sequence[np.ndarray], extents: Sequence[int]) -> np.ndarray:
    """The row-major index of a position among those of some axes."""
    found: np.ndarray = np.zeros((), np.int64)
    for p, extent in zip(positions, extents):
        found = found * extent + p
    return found


def _among(row: np.ndarray, lines: Layout) -> np.ndarray:
    """The row numbers of positions, by a layout of rows."""
    found, rest = np.zeros((), np.int64), row
    for extent, stride in lines.flat:
        found, rest = found + rest % extent * stride, rest // extent
    return found


def _differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    unlike = one != other
    return unlike & ~((one != one) & (other != other)) if unlike.any() else unlike
