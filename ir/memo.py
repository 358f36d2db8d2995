"""Memoisation for immutable values: by identity, or in the value itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from operator import attrgetter
from typing import Any, Generic, TypeVar, TypeVarTuple

MOST = 64  # results that a function caches

Value = TypeVar("Value")
Result = TypeVar("Result")
More = TypeVarTuple("More")
Keeper = TypeVar("Keeper", bound="Keeping")


def by_identity(
    function: Callable[[Value, *More], Result],
) -> Callable[[Value, *More], Result]:
    """Memoises a function of an immutable value by the value's identity.

    Hashing a large value can take as long as the work that it saves. Further arguments are small
    and are compared by equality.
    """
    kept: dict[tuple[Hashable, ...], tuple[Value, Result]] = {}

    @wraps(function)
    def found(value: Value, *more: *More) -> Result:
        known = kept.get((id(value), *more))
        if known is not None and known[0] is value:
            return known[1]
        result = function(value, *more)
        if len(kept) >= MOST:
            kept.clear()
        # The cache also keeps the value alive, so that no other object gets its id.
        kept[id(value), *more] = (value, result)
        return result

    return found


def by_parts(
    *fields: str,
) -> Callable[[Callable[[Value, *More], Result]], Callable[[Value, *More], Result]]:
    """Memoises a function of an immutable value by the identity of the fields that it uses, two or
    more.

    A value in which other fields were replaced has the same result. Further arguments are small and
    are compared by equality. Callers must not change a result.
    """
    held = attrgetter(*fields)

    def memoised(function: Callable[[Value, *More], Result]) -> Callable[[Value, *More], Result]:
        kept: dict[tuple[Hashable, ...], tuple[tuple[Any, ...], Result]] = {}

        @wraps(function)
        def found(value: Value, *more: *More) -> Result:
            parts = held(value)
            key = (*map(id, parts), *more)
            known = kept.get(key)
            if known is not None:
                return known[1]
            result = function(value, *more)
            if len(kept) >= MOST:
                kept.clear()
            # The cache also keeps the parts alive, so that no other object gets the id of one.
            kept[key] = (parts, result)
            return result

        return found

    return memoised


class Recent(Generic[Value, Result]):
    """A cache by the identity of a value and by a key. It is cleared when it holds `most`
    results."""

    def __init__(self, most: int = MOST):
        self.most = most
        self._found: dict[tuple[int, Hashable], tuple[Value, Result]] = {}

    def get(self, value: Value, key: Hashable) -> Result | None:
        """The result, or None."""
        known = self._found.get((id(value), key))
        return known[1] if known is not None and known[0] is value else None

    def put(self, value: Value, key: Hashable, result: Result) -> Result:
        """Stores and returns a result. The cache keeps the value alive, so that no other object
        gets its id."""
        if len(self._found) >= self.most:
            self._found.clear()
        self._found[id(value), key] = (value, result)
        return result


class Keeping:
    """An immutable value that also stores the results of memoised functions of it.

    These results are neither compared nor pickled.
    """

    __slots__ = ("_kept",)
    _kept: dict[object, Any]  # by function


def kept(function: Callable[[Keeper], Result]) -> Callable[[Keeper], Result]:
    """Memoises a function of a `Keeping` value, or a method without arguments, in the value."""

    @wraps(function)
    def found(value: Keeper) -> Result:
        try:
            return value._kept[function]
        except AttributeError:
            object.__setattr__(value, "_kept", {})
        except KeyError:
            pass
        value._kept[function] = result = function(value)
        return result

    return found
