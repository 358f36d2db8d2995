"""Owners: which thread holds which elements of each tile.

The distribution of a tile is a product of distributions of its axes. Axes that meet in an
expression have the same distribution, so values need no exchange. The result of a matmul has the
distribution of its instruction. Other axes share the remaining bits of the thread index, starting
with the contiguous axis of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from backends.gpu.threads.distribution import Spread, replicated, split, spread
from backends.gpu.threads.facts import Facts, Held, Matmul, Operand
from backends.gpu.threads.vectors import contiguous
from backends.gpu.tile import Name, Place

VECTOR_BYTES = 16
# Registers of a thread, in bytes, that a computed operand may take: a quarter of them
OPERAND_BYTES = 256


@dataclass(slots=True)
class Owners:
    """The distribution of each axis of each variable."""

    facts: Facts
    widths: Mapping[str, int]  # of each index, at the sizes for which the kernel is tuned
    bits: int  # of the thread index in its block
    warp_bits: int  # of these, within a warp
    bytes_of: Mapping[str, int]  # by dtype
    found: dict[Held, Spread] = field(default_factory=dict)  # by class

    def of(self, name: Name, index: str) -> Spread:
        """The distribution of an axis."""
        return self.found.get(self.facts.root((name, index))) or replicated()

    def anchored(self, matmul: Matmul, m: Spread, n: Spread) -> bool:
        """Gives a matmul's result the distribution of its instruction; False where its axes already have another."""
        parts = self._parts(matmul.m, m) | self._parts(matmul.n, n)
        parts |= {i: replicated() for i in matmul.batch}
        held = {i: self.facts.root((matmul.name, i)) for i in parts}
        if any(self.found.get(held[i], s) != s for i, s in parts.items()):
            return False
        self.found |= {held[i]: s for i, s in parts.items()}
        return True

    def _parts(self, group: tuple[str, ...], whole: Spread) -> dict[str, Spread]:
        if len(group) == 1:
            return {group[0]: whole}
        return split(whole, {i: self.widths[i] for i in group})

    def prefer(self, operand: Operand, wanted: tuple[Spread, Spread]) -> None:
        """Gives the axes of a computed operand these distributions, unless they have others
        already, or would share bits with another axis of a tile."""
        names = [n for n in operand.value.walk() if n in self.facts.typing.known]
        grouped = any(len(group) != 1 for group in operand.groups)
        if grouped or len(operand.groups) != 2 or any(n in self.facts.staged for n in names):
            return
        size = self.bytes_of[self.facts.typing.dtype(operand.value)]
        for (index,), one in zip(operand.groups, wanted, strict=True):
            size *= one.registers(self.widths[index])
        if size > OPERAND_BYTES:
            return
        together = self._together(self._tiles())
        for name in names:
            for (index,), one in zip(operand.groups, wanted, strict=True):
                held = self.facts.root((name, index))
                others = (o for o in together.get(held, ()) if o in self.found)
                taken = {b for o in others for b in self.found[o].thread_bits()}
                if held not in self.found and not taken & one.thread_bits():
                    self.found[held] = one

    def transposing(self, operand: Operand) -> tuple[Spread, Spread] | None:
        """The distributions of K and N with which a computed operand B is stored contiguous along
        K: each thread has 16 bytes along K, and neighbouring threads are neighbours along N, along
        which the loads are contiguous. Both accesses are free of bank conflicts. None where the
        loads are not contiguous along N."""
        (k, *_), (n, *_) = operand.groups[-2:]
        names = {m for m in operand.value.walk() if m in self.facts.typing.known}
        roots = {self.facts.root((m, n)) for m in names if n in self.facts.indices(m)}
        loads = [
            contiguous(place)
            for m, place in self.facts.places
            if n in self.facts.indices(m) and self.facts.root((m, n)) in roots
        ]
        if k in loads:
            return None
        sizes = [self.bytes_of[self.facts.typing.dtype(operand.value)]]
        run = min(VECTOR_BYTES // max(sizes), self.widths[k])
        along = min(self.warp_bits, self.widths[n].bit_length() - 1)
        bits = range(along, min(self.bits, along + (self.widths[k] // run).bit_length() - 1))
        return spread(bits, run), spread(range(along), 1)

    def _together(self, tiles: Iterable[Name]) -> dict[Held, set[Held]]:
        """For each class of axes, the classes with which it forms tiles."""
        found: dict[Held, set[Held]] = {}
        for name in tiles:
            classes = {self.facts.root((name, i)) for i in self.facts.indices(name)}
            for one in classes:
                found.setdefault(one, set()).update(classes - {one})
        return found

    def rest(self) -> None:
        """Distributes all other axes over the remaining bits, large tiles first."""
        tiles = self._tiles()
        together = self._together(tiles)
        for name in sorted(tiles, key=self._elements, reverse=True):
            self._tile(name, together)

    def _tiles(self) -> list[Name]:
        held = self.facts.typing.known
        return [
            n
            for n in held
            if n.sort != "dim" and n not in self.facts.staged and self.facts.indices(n)
        ]

    def _elements(self, name: Name) -> int:
        return prod(self.widths[i] for i in self.facts.indices(name))

    def _tile(self, name: Name, together: Mapping[Held, set[Held]]) -> None:
        """Distributes those axes of a tile that have no owner yet."""
        roots = {i: self.facts.root((name, i)) for i in self.facts.indices(name)}
        fresh = [i for i, held in roots.items() if held not in self.found]
        along = self._along(name, fresh)
        order = [*([along] if along else []), *(i for i in reversed(fresh) if i != along)]
        for place, index in enumerate(order):
            held = roots[index]
            taken = {
                b for o in together[held] if o in self.found for b in self.found[o].thread_bits()
            }
            free = [b for b in range(self.bits) if b not in taken]
            others = sum(self.widths[i].bit_length() - 1 for i in order[place + 1 :])
            vector = self._vector(name, index, len(free)) if index == along else 1
            most = max(0, (self.widths[index] // vector).bit_length() - 1)
            count = min(len(free), most)
            exchanged = self._is(held, self.facts.reduced | self.facts.scanned)
            if exchanged and count > self.warp_bits:
                count = min(count, max(self.warp_bits, len(free) - others))
            self.found[held] = spread(free[:count], vector)

    def _along(self, name: Name, fresh: Iterable[str]) -> str:
        """The axis along which a tile is contiguous in global memory, else its last axis without owner; empty: none."""
        fresh = list(fresh)
        for place in self._places(name):
            axis = contiguous(place)
            if axis in fresh:
                return axis
        return fresh[-1] if fresh else ""

    def _places(self, name: Name) -> list[Place]:
        """The global memory places of variables with this variable's distribution."""
        roots = {self.facts.root((name, i)) for i in self.facts.indices(name)}
        found: list[tuple[bool, Place]] = []
        for n, place in self.facts.places:
            if {self.facts.root((n, i)) for i in self.facts.indices(n)} & roots:
                found.append((n != name, place))
        return [place for _, place in sorted(found, key=lambda pair: pair[0])]

    def _vector(self, name: Name, index: str, free: int) -> int:
        """Elements of a thread's vector along the contiguous axis: 16 bytes, or fewer where threads
        would be idle. One where a large tile is not contiguous along that axis, since neighbouring
        threads would access distant memory."""
        root, whole = self.facts.root((name, index)), self._elements(name)
        kinds = []
        for n, place in self.facts.places:
            if index in self.facts.indices(n) and self.facts.root((n, index)) == root:
                if contiguous(place) != index and 2 * self._elements(n) >= whole:
                    return 1
                kinds.append(self.bytes_of[self.facts.typing.known[n][0]])
        most = VECTOR_BYTES // max(kinds, default=4)
        while most > 1 and (self.widths[index] % most or whole < most << free):
            most //= 2
        return max(1, most)

    def _is(self, held: Held, marks: set[Held]) -> bool:
        return any(self.facts.root(m) == held for m in marks)
