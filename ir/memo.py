"""Memo: what was found for a value lately, looked up by which object it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

MOST = 64

Value = TypeVar("Value")
Result = TypeVar("Result")


def by_identity(function: Callable[[Value], Result]) -> Callable[[Value], Result]:
    """The function of an immutable value, its last results kept: to hash a large value, as caches
    by equality do, takes as long as much that is looked up by it."""
    kept: dict[int, tuple[Value, Result]] = {}

    @wraps(function)
    def found(value: Value) -> Result:
        known = kept.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        result = function(value)
        if len(kept) >= MOST:
            kept.clear()
        kept[id(value)] = (value, result)  # the value too, so that no other gets its identity
        return result

    return found
