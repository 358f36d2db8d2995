"""Pruning: statements whose fragments nothing reads are dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from backends.gpu.threads import thread as to
from backends.gpu.tile import Name
from ir.spec import Expr

_MADE = (to.Each, to.Positions, to.Load, to.Reduce, to.Scan, to.SharedLoad, to.Regroup, to.Part)


def pruned(block: tuple[to.Statement, ...], read: frozenset[Name]) -> tuple[to.Statement, ...]:
    """A block without what makes fragments that nothing reads. read: by `reads` of the launch."""
    found: list[to.Statement] = []
    for s in block:
        match s:
            case to.Loop(body=body):
                found.append(replace(s, body=pruned(body, read)))
            case to.Guard(body=body, others=others):
                found.append(replace(s, body=pruned(body, read), others=pruned(others, read)))
            case _ if isinstance(s, _MADE) and s.name not in read:  # type: ignore[attr-defined]
                continue
            case to.Shuffle(name) | to.ScanAfter(name) if name not in read:
                continue
            case _:
                found.append(s)
    return tuple(found)


def reads(block: Iterable[to.Statement]) -> frozenset[Name]:
    """The fragments that statements read, but for a fragment's own update."""
    found: set[Name] = set()
    for s in to.statements(tuple(block)):
        match s:
            case to.Each(name, value) | to.Reduce(name, _, value) | to.Scan(name, _, value):
                found |= _names(value) - {name}
            case to.ScanAfter(_, before, totals):
                found |= {before, totals}
            case to.Positions(_, origin):
                found |= _names(origin) if origin is not None else set()
            case to.Load(_, place):
                found |= _names(place)
            case to.Store(place, value):
                found |= _names(place) | _names(value)
            case to.SharedStore(_, name, stage):
                found |= {name} | (_names(stage) if stage is not None else set())
            case to.SharedLoad(_, _, stage, at):
                found |= {n for _, e in at for n in _names(e)}
                found |= _names(stage) if stage is not None else set()
            case to.Copy(_, place, _, stage):
                found |= _names(place) | (_names(stage) if stage is not None else set())
            case to.BoxCopy(_, _, at, stage, _, part):
                own = (*at, stage) if part is None else (*at, stage, part)
                found |= {n for e in own for n in _names(e)}
            case to.BoxStore(_, _, at):
                found |= {n for e in at for n in _names(e)}
            case to.Raise(flag) | to.AwaitRaised(flag):
                found |= _names(flag)
            case to.Arrive(_, stage):
                found |= _names(stage)
            case to.Await(_, stage, parity):
                found |= _names(stage) | _names(parity)
            case to.Multiply(_, a, b, _, first):
                found |= {a, b} | (_names(first) if first is not None else set())
            case to.WarpgroupMultiply(_, a, b, _, _, a_stage, b_stage):
                found |= {a, b}
                found |= {n for e in (a_stage, b_stage) if e is not None for n in _names(e)}
            case to.WarpgroupWait(name):
                found.add(name)
            case to.Regroup(_, source):
                found.add(source)
            case to.Part(_, source, _, first):
                found |= {source} | _names(first)
            case to.Guard(condition):
                found |= _names(condition)
            case to.Loop(name, low, high):
                found |= {name} | _names(low) | _names(high)
    return frozenset(found)


def _names(expr: Expr) -> set[Name]:
    return {e.name for e in expr.walk() if isinstance(e, to.Element)}
