"""Renames parts of a nest for a target language, to avoid keywords and names of emitted code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import count, islice
from typing import Any

from ir.nest.nest import Launch, LoopNest
from ir.spec import Spec

Refuses = Callable[[str], bool]
Spells = Callable[[str], Iterable[str]]
MOST_TRIED = 1000  # A language that refuses so many names has a fault.
# String fields that do not name a tensor, value, index or size.
_OTHERS = frozenset("dtype reduction function role machine schedule doc place".split())


def legal(nest: LoopNest, refuses: Refuses, spells: Spells) -> LoopNest:
    """The nest with new names for those that a language cannot use; the same nest if there are
    none.

    No two names share an identifier. Kernels and launches keep their names. Raises ValueError if
    the language refuses every similar name.

    refuses: whether a name is not allowed in the language.
    spells: all identifiers that the emitted text derives from a name.
    """
    chosen: dict[str, str] = {}
    used: set[str] = set()
    for name in dict.fromkeys(_names(nest)):
        tried = islice(_candidates(name), MOST_TRIED)
        free = (n for n in tried if not refuses(n) and used.isdisjoint(spells(n)))
        chosen[name] = next(free, "")
        if not chosen[name]:
            shown = ", ".join(dict.fromkeys(islice(_candidates(name), 4)))
            raise ValueError(f"no name for `{name}`: the language refuses {shown} and all others")
        used.update(spells(chosen[name]))
    changed = {old: new for old, new in chosen.items() if old != new}
    return _renamed(nest, changed) if changed else nest


def _candidates(name: str) -> Iterator[str]:
    """The name, then an endless sequence of similar ones."""
    stem = re.sub("__+", "_", name).strip("_") or "x"
    prefixed = f"X_{stem}" if stem.isupper() else f"x_{stem}"
    yield from (name, *([] if stem[0].isdigit() else [stem, f"{stem}_"]), prefixed)
    yield from (f"{prefixed}_{n}" for n in count(2))


def _names(nest: LoopNest) -> Iterator[str]:
    spec = nest.spec
    yield from (t.name for t in (*spec.inputs, *spec.outputs))
    yield from (n for n, _ in (*nest.sizes, *spec.attributes, *spec.derived))
    for launch in nest.launches:
        yield from (p.name for p in launch.parameters)
        yield from launch.sizes
        yield from (n for n, _ in (*launch.tiles, *launch.whole))
        yield from (n for v in launch.values for n in (v.name, *v.names))


def _renamed(node: Any, names: dict[str, str]) -> Any:
    if isinstance(node, str):
        return names.get(node, node)
    if isinstance(node, tuple):
        return tuple(_renamed(n, names) for n in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    kept = {*_OTHERS, "name"} if isinstance(node, Launch | Spec) else _OTHERS
    own = [f.name for f in fields(node) if f.name not in kept]
    return replace(node, **{n: _renamed(getattr(node, n), names) for n in own})
