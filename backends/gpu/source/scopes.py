"""Scopes: declares each fragment as close to its uses as possible."""

from __future__ import annotations

from dataclasses import dataclass, replace

from backends.gpu.source.layouts import kept
from backends.gpu.threads.signals import CONSUMER
from backends.gpu.threads.thread import (
    Each,
    Fragment,
    Guard,
    Launch,
    Loop,
    Positions,
    Statement,
)
from backends.gpu.tile import Name, expressions


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """Declares the registers of fragments, without values."""

    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Given(Statement):
    """Declares a scalar with its first value, which a statement computes."""

    fragment: Fragment
    statement: Each | Positions
    constant: bool  # whether it is the only value


def scoped(launch: Launch) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """The statements before the first tile and of each tile, with declarations."""
    scopes = _Scopes(launch)
    every = frozenset(scopes.fragments)
    if not launch.resident and not launch.steps:
        return (), scopes.block((*launch.once, *launch.body), every)
    own = every & (_names(launch.body) - _names(launch.once))
    once = scopes.block(launch.once, every - own)
    return once, scopes.block(launch.body, own)


class _Scopes:
    def __init__(self, launch: Launch):
        every = _all((*launch.once, *launch.body))
        # The origin of a loop in reverse is computed; other loops over the index count it.
        loops = {s.name for s in every if isinstance(s, Loop)}
        known = {
            *(loops - {s.name for s in every if isinstance(s, Each)}),
            Name("tile"),
            Name("block"),
            CONSUMER,
            launch.step,
            launch.steps[0] if launch.steps else None,
        }  # the source declares these itself
        self.fragments = {f.name: f for f in launch.fragments if f.name not in known}
        self.written: dict[Name, int] = {}
        for s in every:
            name = getattr(s, "name", None) or getattr(s, "to", None)
            if name is not None:
                self.written[name] = self.written.get(name, 0) + 1

    def block(self, block: tuple[Statement, ...], own: frozenset[Name]) -> tuple[Statement, ...]:
        """The block with declarations of the fragments that only it uses."""
        first: dict[Name, int] = {}
        last: dict[Name, int] = {}
        for place, s in enumerate(block):
            for name in _free((s,)) & own:
                first.setdefault(name, place)
                last[name] = place
        found: list[Statement] = []
        for place, s in enumerate(block):
            new = [n for n in self.fragments if first.get(n) == place]
            inner = {n for n in new if last[n] == place and _inside(s, n)}
            here = [n for n in new if n not in inner]
            if isinstance(s, Each | Positions) and s.name in here and self._begins(s):
                here.remove(s.name)
                s = Given(self.fragments[s.name], s, self.written[s.name] == 1)
            if here:
                found.append(Declare(tuple(self.fragments[n] for n in here)))
            found.append(self._nested(s, frozenset(inner)))
        return tuple(found)

    def _begins(self, s: Each | Positions) -> bool:
        """Whether a statement gives a scalar its first value."""
        read = s.value if isinstance(s, Each) else s.origin
        return not kept(self.fragments[s.name].axes) and s.name not in _names((read,))

    def _nested(self, s: Statement, own: frozenset[Name]) -> Statement:
        match s:
            case Loop(body=body):
                return replace(s, body=self.block(body, own))
            case Guard(body=body, others=others):
                return replace(s, body=self.block(body, own), others=self.block(others, own))
        return s


def _inside(s: Statement, name: Name) -> bool:
    """Whether a statement uses a fragment in exactly one of its nested blocks and nowhere else."""
    match s:
        case Loop(name=own, low=low, high=high, body=body):
            return name not in _names((low, high, own)) and name in _names(body)
        case Guard(condition, body, others):
            blocks = [name in _names(b) for b in (body, others)]
            return name not in _names((condition,)) and sum(blocks) == 1
    return False


def _names(nodes: tuple) -> frozenset[Name]:
    return frozenset(e for e in expressions(*nodes) if isinstance(e, Name))


def _free(block: tuple[Statement, ...]) -> frozenset[Name]:
    """The names in statements that no loop among them declares."""
    found: frozenset[Name] = frozenset()
    for s in block:
        match s:
            case Loop(name=own, low=low, high=high, body=body):
                found |= _names((low, high)) | _free(body) - {own}
            case Guard(condition, body, others):
                found |= _names((condition,)) | _free((*body, *others))
            case _:
                found |= _names((s,))
    return found


def _all(block: tuple[Statement, ...]) -> list[Statement]:
    found: list[Statement] = []
    for s in block:
        found.append(s)
        for inner in (getattr(s, "body", ()), getattr(s, "others", ())):
            found += _all(inner)
    return found
