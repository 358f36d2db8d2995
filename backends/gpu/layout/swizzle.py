"""Swizzles, which permute blocks of an index by XOR, and layouts followed by a swizzle."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.layout.layout import IntTuple, Layout
from ir.errors import KernelError


@dataclass(frozen=True, slots=True)
class Swizzle:
    """CuTe's `Sw<bits,base,shift>`: XORs the bits from `base` up with those from `base + shift` up.

    With a negative shift the higher bits change. Raises KernelError where the two groups of bits
    overlap.
    """

    bits: int  # of each group
    base: int  # number of low bits that never change: 2 ** base indices stay together
    shift: int  # distance between the two groups

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise KernelError(
                f"`{self}` is no swizzle", allowed="bits and base of 0 or more, |shift| >= bits"
            )

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def __call__(self, index: int) -> int:
        mask = (1 << self.bits) - 1
        source = index >> (self.base + max(0, self.shift)) & mask
        return index ^ source << (self.base + max(0, -self.shift))

    @property
    def size(self) -> int:
        """The number of indices after which the pattern repeats."""
        return 1 << (self.bits + self.base + abs(self.shift))

    def of_elements(self, element_bytes: int) -> Swizzle:
        """The swizzle of elements that corresponds to this swizzle of bytes."""
        log = element_bytes.bit_length() - 1
        if element_bytes != 1 << log or log > self.base:
            raise KernelError(
                f"`{self}` of bytes would take elements of {element_bytes} bytes apart",
                allowed=f"a power of two, {1 << self.base} at most",
            )
        return Swizzle(self.bits, self.base - log, self.shift)


@dataclass(frozen=True, slots=True)
class ComposedLayout:
    """A layout followed by a swizzle: `swizzle(offset + layout(c))`."""

    swizzle: Swizzle
    offset: int
    layout: Layout

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise KernelError(f"the offset of `{self}` is below 0", allowed="0 or more")

    def __str__(self) -> str:
        return f"{self.swizzle} o {self.offset} o {self.layout}"

    def __call__(self, *coordinate: IntTuple) -> int:
        return self.swizzle(self.offset + self.layout(*coordinate))

    def __len__(self) -> int:
        return len(self.layout)

    def __getitem__(self, mode: int) -> ComposedLayout:
        return ComposedLayout(self.swizzle, self.offset, self.layout[mode])

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.layout.size

    def indices(self) -> list[int]:
        """The indices of all coordinates, in the order of linear indices."""
        return [self.swizzle(self.offset + i) for i in self.layout.indices()]
