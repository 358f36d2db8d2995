"""Unifies specs that differ only in literal sizes into one spec over symbolic sizes.

before: y[m] = x[m] / 64,  for x: f32[64]   and   y[m] = x[m] / 96, for x: f32[96]
after:  y[m] = x[m] / S0,  for x: f32[S0],  with S0 = 64 and S0 = 96
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ir.errors import KernelError
from ir.sizes import free_sizes
from ir.spec import Number, Size, Spec
from ir.verify import facts
from ir.workload import Sizes

Numbers = tuple[int, ...]  # the values of one literal, one from each spec


class _Differ(Exception):
    """The specs differ in more than sizes."""


@dataclass(frozen=True, slots=True)
class Unified:
    """A spec over symbolic sizes that represents several literal specs."""

    spec: Spec
    sizes: tuple[Sizes, ...]  # for each of those specs, the sizes that give it


def unified(specs: Sequence[Spec]) -> Unified | None:
    """Unifies specs that are equal up to names and sizes; None if they differ in more.

    The result has the name of the first spec. Integers that differ become sizes; equal lists of
    values become the same size.
    """
    found: dict[Numbers, str] = {}
    try:
        made = _merged(tuple(replace(spec, name=specs[0].name) for spec in specs), found)
        known = facts(made)
    except (_Differ, KernelError):
        return None
    free = free_sizes(made)
    if set(free) != set(found.values()) or set(known.sizes) != set(free):
        return None  # a number differs that is no tensor's size
    numbers = {name: each for each, name in found.items()}
    return Unified(
        made, tuple({name: numbers[name][n] for name in free} for n in range(len(specs)))
    )


def _merged(values: tuple[Any, ...], found: dict[Numbers, str]) -> Any:
    first = values[0]
    if any(type(value) is not type(first) for value in values):
        raise _Differ
    if all(value == first for value in values):
        return first
    if isinstance(first, Number):
        return _size(tuple(value.value for value in values), found)
    if isinstance(first, tuple):
        if any(len(value) != len(first) for value in values):
            raise _Differ
        return tuple(_merged(parts, found) for parts in zip(*values, strict=True))
    if not is_dataclass(first) or isinstance(first, type):
        raise _Differ
    names = [f.name for f in fields(first) if f.compare]
    return replace(
        first, **{n: _merged(tuple(getattr(v, n) for v in values), found) for n in names}
    )


def _size(numbers: tuple[Any, ...], found: dict[Numbers, str]) -> Size:
    whole = all(float(n).is_integer() and n > 0 for n in numbers)
    if not whole or any(isinstance(n, bool) for n in numbers):
        raise _Differ
    return Size(found.setdefault(tuple(int(n) for n in numbers), f"S{len(found)}"))
