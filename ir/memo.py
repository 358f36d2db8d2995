"""Memo: what was found for a value lately, looked up by which object it is, or kept with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

MOST = 64

Value = TypeVar("Value")
Result = TypeVar("Result")
More = ParamSpec("More")


def by_identity(
    function: Callable[Concatenate[Value, More], Result],
) -> Callable[Concatenate[Value, More], Result]:
    """The function of an immutable value, its last results kept: to hash a large value, as caches
    by equality do, takes as long as much that is looked up by it. Further arguments are small, and
    compared."""
    kept: dict[tuple[Hashable, ...], tuple[Value, Result]] = {}

    @wraps(function)
    def found(value: Value, *more: Any) -> Result:
        known = kept.get((id(value), *more))
        if known is not None and known[0] is value:
            return known[1]
        result = function(value, *more)
        if len(kept) >= MOST:
            kept.clear()
        # The value too, so that no other gets its identity.
        kept[id(value), *more] = (value, result)
        return result

    return found


class Keeping:
    """An immutable value that keeps what its methods find: beside its fields, so that it is neither
    compared nor pickled."""

    __slots__ = ("_kept",)


def kept(method: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """The method of a `Keeping` value, called once."""
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
