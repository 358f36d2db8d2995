"""Writes random cases of CuTe's layout operations with the results of NVIDIA's pycute.

backends/gpu/layout/oracle_test.py compares with this table. pycute is not a requirement, because
its wheel has heavy dependencies. Unpack the wheel in the checkout and add pycute to PYTHONPATH.
(The package `pycute` on PyPI is another project.)

    pip download --no-deps nvidia-cutlass==4.2.0.0
    unzip nvidia_cutlass-4.2.0.0-py3-none-any.whl 'pycute/*' -d oracle
    PYTHONPATH=oracle python3 -m tools.cute_table
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

VERSION = "4.2.0.0"
COMMAND = "python3 -m tools.cute_table"
TABLE = Path("backends/gpu/layout/testdata/cute.json")
CASES = 340  # Cases of each operation.
SEED = 2023
_EXTENTS = (1, 2, 2, 3, 4, 4, 6, 8)
_LARGEST = 256  # Limit of a layout's size, in coordinates.


def main() -> int:
    """Writes the table. Returns exit code 2 without pycute."""
    try:
        import pycute
    except ImportError:
        print(__doc__, file=sys.stderr)
        return 2
    table = {name: list(islice(cases, CASES)) for name, cases in _operations(pycute).items()}
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text(table), encoding="utf-8")
    print(TABLE, TABLE.stat().st_size)
    return 0


def text(table: dict[str, list]) -> str:
    """Returns the table as JSON with one case per line."""
    head = {"oracle": f"pycute of nvidia-cutlass {VERSION}", "command": COMMAND, "seed": SEED}
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
    for name, cases in table.items():
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        lines.append(f"{json.dumps(name)}: [\n{rows}\n]")
    return "{" + ",\n".join(lines) + "}\n"


def _operations(pycute: Any) -> dict[str, Iterator[list]]:
    """Returns an endless iterator of cases for each operation: the arguments, then the result."""
    draw = _Draw(pycute, random.Random(SEED))
    pair, by_mode = draw.divided, draw.divided_by_mode
    return {
        "coalesce": _cases(pycute.coalesce, lambda: (draw.arbitrary(),)),
        "coalesce_by_mode": _cases(
            lambda a: pycute.coalesce(a, (1,) * len(a)), lambda: (draw.of_modes(),)
        ),
        "composition": _cases(pycute.composition, pair),
        "composition_by_mode": _cases(pycute.composition, by_mode),
        "complement": _cases(pycute.complement, lambda: (draw.spread(), draw.size())),
        "right_inverse": _cases(pycute.right_inverse, lambda: (draw.spread(),)),
        "left_inverse": _cases(pycute.left_inverse, lambda: (draw.spread(),)),
        "logical_divide": _cases(pycute.logical_divide, pair),
        "zipped_divide": _cases(pycute.zipped_divide, by_mode),
        "tiled_divide": _cases(pycute.tiled_divide, by_mode),
        "logical_product": _cases(pycute.logical_product, lambda: (draw.spread(), draw.compact())),
        "swizzle": _cases(
            lambda bits, base, shift, i: pycute.Swizzle(bits, base, shift)(i), draw.swizzle
        ),
    }


def _cases(operation: Callable, arguments: Callable[[], tuple]) -> Iterator[list]:
    """Yields cases for which the oracle gives a result. It raises AssertionError for the others."""
    while True:
        given = arguments()
        try:
            yield [*map(_spelled, given), _spelled(operation(*given))]
        except (AssertionError, ZeroDivisionError):
            continue


def _spelled(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_spelled, value))
    return value if isinstance(value, int) else str(value).replace(" ", "")


class _Draw:
    """Draws random layouts of pycute."""

    def __init__(self, pycute: Any, rng: random.Random):
        self.pycute, self.rng = pycute, rng

    def shape(self) -> tuple:
        while True:
            rank = self.rng.choice((1, 2, 2, 3))
            shape = tuple(self.mode() for _ in range(rank))
            if prod(_flat(shape)) <= _LARGEST:
                return shape

    def mode(self) -> Any:
        if self.rng.random() < 0.25:
            return (self.rng.choice(_EXTENTS), self.rng.choice(_EXTENTS))
        return self.rng.choice(_EXTENTS)

    def of_modes(self) -> Any:
        """Returns a layout with any strides, often strides that coalesce."""
        shape = self.shape()
        if self.rng.random() < 0.5:
            return self.strided(shape, gaps=(1, 1, 1, 2), ordered=True)
        strides = iter([self.rng.randrange(10) for _ in _flat(shape)])
        return self.pycute.Layout(shape, _like(shape, strides))

    def arbitrary(self) -> Any:
        layout = self.of_modes()
        return layout[0] if len(layout) == 1 else layout

    def compact(self) -> Any:
        return self.strided(self.shape(), gaps=(1,))

    def spread(self) -> Any:
        return self.strided(self.shape(), gaps=(1, 1, 2, 3))

    def strided(self, shape: tuple, gaps: tuple, ordered: bool = False) -> Any:
        """Returns a layout whose strides nest: each is a multiple of the span of the smaller
        ones."""
        extents = _flat(shape)
        order = list(range(len(extents)))
        if not ordered:
            self.rng.shuffle(order)
        strides, reached = [0] * len(extents), 1
        for mode in order:
            strides[mode] = reached * self.rng.choice(gaps)
            reached = strides[mode] * extents[mode]
        return self.pycute.Layout(shape, _like(shape, iter(strides)))

    def tiler(self, size: int) -> Any:
        """Returns a layout of one or two modes. Most of its steps divide the size."""
        if self.rng.random() < 0.1:
            return self.pycute.Layout(self.rng.randrange(1, 9), self.rng.randrange(9))
        step = self.divisor(size)
        first = self.divisor(size // step)
        if self.rng.random() < 0.5:
            return self.pycute.Layout(first, step)
        second = self.divisor(size // step // first)
        return self.pycute.Layout((first, second), (step, step * first))

    def divisor(self, size: int) -> int:
        return self.rng.choice([d for d in range(1, size + 1) if size % d == 0])

    def divided(self) -> tuple:
        layout = self.compact()
        return layout, self.tiler(layout.size())

    def divided_by_mode(self) -> tuple:
        layout = self.compact()
        count = self.rng.randint(1, len(layout))
        return layout, tuple(self.tiler(layout[i].size()) for i in range(count))

    def size(self) -> int:
        return self.rng.randrange(1, 500)

    def swizzle(self) -> tuple:
        bits, base = self.rng.randrange(5), self.rng.randrange(6)
        shift = self.rng.randrange(max(bits, 1), 7) * self.rng.choice((1, -1))
        return bits, base, shift, self.rng.randrange(1 << 14)


def _flat(value: Any) -> list[int]:
    return [i for one in value for i in _flat(one)] if isinstance(value, tuple) else [value]


def _like(shape: Any, found: Iterator[int]) -> Any:
    return tuple(_like(one, found) for one in shape) if isinstance(shape, tuple) else next(found)


if __name__ == "__main__":
    sys.exit(main())
