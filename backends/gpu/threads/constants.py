"""Launch constants: values that the launcher computes from sizes before a launch."""

from __future__ import annotations

from collections.abc import Mapping

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads.thread import All
from backends.gpu.tile import Name
from ir.sizes import power_of_two, value
from ir.spec import Apply, Expr, Number, Size


def constant(expr: Expr, sizes: Mapping[str, float], known: Mapping[Name, int] = {}) -> int:
    """The value of a launch constant. known: constants that it may refer to."""

    def of_part(e: Expr) -> int:
        return constant(e, sizes, known)

    match expr:
        case Number() | Size():
            return value(expr, sizes)
        case Name():
            return known[expr]
        case of.Tiles(size, tile):
            return -(-of_part(size) // tile)
        case of.BlockWidth(size, least):
            return max(least, power_of_two(of_part(size)))
        case of.Even(size, width):
            number = of_part(size)
            whole = of_part(width)
            return int(number % whole == 0 if isinstance(width, Number) else number == whole)
        case of.Bits(number):
            return of_part(number).bit_length()
        case All(conditions):
            return int(all(map(of_part, conditions)))
        case Apply(function, args):
            parts = tuple(Number(of_part(a)) for a in args)
            return value(Apply(function, parts), {})
    raise BackendError("emit", f"a {type(expr).__name__} is no constant of a launch")


def constants(pairs: tuple[tuple[Name, Expr], ...], sizes: Mapping[str, float]) -> dict[Name, int]:
    """The values of all launch constants, each of which may refer to earlier ones."""
    found: dict[Name, int] = {}
    for name, expr in pairs:
        found[name] = constant(expr, sizes, found)
    return found
