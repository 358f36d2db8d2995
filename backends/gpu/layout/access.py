"""Memory access cost of a layout: bank conflicts, sectors, and the widest vector of a thread."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from math import gcd

from backends.gpu.layout.algebra import coalesce
from backends.gpu.layout.layout import Layout
from backends.gpu.layout.swizzle import ComposedLayout, Swizzle
from ir.errors import KernelError

WIDTHS = (1, 2, 4, 8, 16)  # bytes that a thread moves with one instruction


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store by the threads of a warp. Raises KernelError where an address is not aligned."""

    offsets: tuple[int | None, ...]  # first byte of each thread; None: the thread is idle
    width: int  # bytes of each thread
    # Threads that shared memory serves together; empty: consecutive threads, as many as the banks
    # have bytes for. Hardware may group threads differently for some instructions.
    phases: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.width not in WIDTHS:
            raise KernelError(
                f"an access of {self.width} bytes a thread is not known",
                allowed=", ".join(map(str, WIDTHS)),
            )
        for thread, offset in enumerate(self.offsets):
            if offset is not None and offset % self.width:
                raise KernelError(
                    f"thread {thread} accesses {self.width} bytes at {offset}, which is not aligned",
                    allowed=f"multiples of {self.width}",
                )

    def swizzled(self, swizzle: Swizzle) -> Access:
        """The access after a swizzle of bytes, which must keep the access width together."""
        swizzle.of_elements(self.width)
        moved = (None if o is None else swizzle(o) for o in self.offsets)
        return replace(self, offsets=tuple(moved))


def accesses(
    layout: Layout | ComposedLayout,
    element_bytes: int,
    vector: int = 1,
    phases: tuple[tuple[int, ...], ...] = (),
) -> tuple[Access, ...]:
    """The accesses of a warp that moves `vector` registers of each thread at a time.

    layout: (thread, register) -> element; the registers of a vector must be adjacent elements.
    """
    threads, registers = (mode.size for mode in layout)
    if registers % vector:
        raise KernelError(
            f"{registers} registers are no vectors of {vector}", allowed=f"divisors of {registers}"
        )
    found = []
    for first in range(0, registers, vector):
        starts = [layout(thread, first) for thread in range(threads)]
        for thread, start in enumerate(starts):
            for i in range(1, vector):
                if layout(thread, first + i) != start + i:
                    raise KernelError(
                        f"registers {first} to {first + vector - 1} of thread {thread} are not "
                        f"adjacent elements in `{layout}`",
                        hint="`widest_vector` gives the greatest vector",
                    )
        offsets = tuple(start * element_bytes for start in starts)
        found.append(Access(offsets, vector * element_bytes, phases))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Banks:
    """Shared memory: each bank serves one word per cycle, to any number of threads."""

    count: int  # banks
    width: int = 4  # bytes of a word


@dataclass(frozen=True, slots=True)
class BankCycles:
    """The cycles of a shared memory access."""

    cycles: int
    least: int  # without conflicts: one for each phase

    @property
    def conflicts(self) -> int:
        """Cycles beyond the least."""
        return self.cycles - self.least


def bank_cycles(access: Access, banks: Banks) -> BankCycles:
    """The cycles of an access: in each phase as many as the busiest bank has words."""
    cycles = least = 0
    for threads in _phases(access, banks):
        words = defaultdict(set)
        for thread in threads:
            start = access.offsets[thread]
            if start is not None:
                for word in range(start // banks.width, -(-(start + access.width) // banks.width)):
                    words[word % banks.count].add(word)
        if words:
            cycles += max(map(len, words.values()))
            least += 1
    return BankCycles(cycles, least)


def _phases(access: Access, banks: Banks) -> tuple[tuple[int, ...], ...]:
    threads = len(access.offsets)
    if not access.phases:
        together = max(1, banks.count * banks.width // max(access.width, banks.width))
        return tuple(
            tuple(range(first, min(first + together, threads)))
            for first in range(0, threads, together)
        )
    if sorted(t for phase in access.phases for t in phase) != list(range(threads)):
        raise KernelError(
            f"the phases {access.phases} are not those of {threads} threads",
            allowed="each thread in one phase",
        )
    return access.phases


def sectors(access: Access, sector_bytes: int) -> int:
    """The sectors of global memory that an access touches; sectors are moved whole."""
    return len({b // sector_bytes for b in _bytes(access)})


def least_sectors(access: Access, sector_bytes: int) -> int:
    """The fewest sectors that hold as many bytes as the access moves."""
    return -(-len(_bytes(access)) // sector_bytes)


def _bytes(access: Access) -> set[int]:
    starts = {o for o in access.offsets if o is not None}
    return {start + i for start in starts for i in range(access.width)}


def widest_vector(
    layout: Layout | ComposedLayout, element_bytes: int, alignment: int = 16, most: int = 16
) -> int:
    """The most registers, a power of two, that each thread can move with one access.

    layout: (thread, register) -> element.
    alignment: of the tensor's address, in bytes.
    most: bytes of the widest access.

    The registers of each vector are adjacent elements, and the first is a multiple of the vector's
    length; a swizzle keeps its `2 ** base` elements together.
    """
    plain = layout.layout if isinstance(layout, ComposedLayout) else layout
    if len(plain) != 2:
        raise KernelError(f"`{layout}` is not (thread, register) -> element", allowed="two modes")
    limit = max(1, min(_power_of_two(alignment), most) // element_bytes)
    if isinstance(layout, ComposedLayout):
        limit = gcd(limit, 1 << layout.swizzle.base, layout.offset)
    threads, registers = (coalesce(mode).flat for mode in plain)
    adjacent = registers[0][0] if registers[0][1] == 1 else 1
    rest = [stride for extent, stride in (*threads, *registers) if extent > 1]
    if registers[0][1] == 1 and registers[0][0] > 1:
        rest.remove(1)
    return _power_of_two(gcd(limit, adjacent, *rest))


def _power_of_two(number: int) -> int:
    """The greatest power of two that divides a number."""
    return number & -number


def choose_swizzle(
    patterns: tuple[Access, ...], banks: Banks, tile_bytes: int, chunk_bytes: int = 16
) -> Swizzle | None:
    """The swizzle of bytes for which no access of a tile has bank conflicts; None where there is
    none.

    patterns: accesses of writer and reader in the tile without a swizzle.
    tile_bytes: bytes of the tile, which the swizzle never leaves.
    chunk_bytes: bytes that stay together.

    Prefers the fewest bits, then the shift of 3 that TMA and wgmma have, then the least shift;
    `Sw<0,4,3>` is the identity.
    """
    base = max(chunk_bytes, *(a.width for a in patterns)).bit_length() - 1
    most = max(0, (banks.count * banks.width).bit_length() - 1 - base)
    for bits in range(most + 1):
        if tile_bytes % (1 << (base + bits)):
            break
        reach = max(bits, (tile_bytes - 1).bit_length() - base)
        shifts = sorted(range(bits, reach + 1), key=lambda s: (s != 3, s)) if bits else [3]
        for shift in shifts:
            swizzle = Swizzle(bits, base, shift)
            moved = (a.swizzled(swizzle) for a in patterns)
            if not any(bank_cycles(a, banks).conflicts for a in moved):
                return swizzle
    return None
