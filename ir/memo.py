"""Memoisation for immutable values: looked up by identity, or kept in the value itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

MOST = 64  # results that a function keeps

Value = TypeVar("Value")
Result = TypeVar("Result")
More = TypeVarTuple("More")


def by_identity(
    function: Callable[[Value, *More], Result],
) -> Callable[[Value, *More], Result]:
    """Memoises a function of an immutable value by the value's identity, as hashing a large value
    can take as long as the work that it saves. Further arguments are small and are compared by
    equality."""
    kept: dict[tuple[Hashable, ...], tuple[Value, Result]] = {}

    @wraps(function)
    def found(value: Value, *more: *More) -> Result:
        known = kept.get((id(value), *more))
        if known is not None and known[0] is value:
            return known[1]
        result = function(value, *more)
        if len(kept) >= MOST:
            kept.clear()
        # Keep the value alive too, so that no other object gets its id.
        kept[id(value), *more] = (value, result)
        return result

    return found


class Keeping:
    """An immutable value that stores results of its methods beside its fields, where they are
    neither compared nor pickled."""

    __slots__ = ("_kept",)
    _kept: dict[str, Any]  # by method


def kept(method: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Memoises a method without arguments of a `Keeping` value."""
    name = method.__name__

    @wraps(method)
    def found(self: Keeping) -> Result:
        try:
            return self._kept[name]
        except AttributeError:
            object.__setattr__(self, "_kept", {})
        except KeyError:
            pass
        self._kept[name] = result = method(self)
        return result

    return found
