"""A problem scaled down: the same model at sizes that can be simulated.

Numbers of the file's own assignments and of its two functions are halved, in a fixed order, as long
as the problem still runs on tensors without values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from frontends.kernelbench.problem import Problem
from frontends.pytorch.trace import fake_mode, quiet
from ir.errors import KernelError

ELEMENTS = 200_000  # of one tensor at most, where the problem can be made so small
WORK = 20_000_000  # floating point operations and elements computed, likewise
_FUNCTIONS = ("get_inputs", "get_init_inputs")
_KEPT = re.compile(r"kernel|strid|pad|dilat|heads|layers$|stages|ratio|divisor|pool")
_GROUPS = re.compile(r"group")
_BATCH = re.compile(r"batch|^b$")
_SPACE = re.compile(r"height|width|depth|len|seq|image|dim\d|^[dhwij]$|^[hwd]_")
_LOWEST = (2, 8, 8, 4, 8)  # of a batch, a length, another name, no name, how many groups
_SIZE, _NO_NAME, _COUNT = 2, 3, 4  # kinds of numbers


@dataclass(frozen=True, slots=True)
class CallCost:
    """What a call of a model takes."""

    elements: int  # of the largest input or parameter
    work: int

    @property
    def small(self) -> bool:
        return self.elements <= ELEMENTS and self.work <= WORK

    def below(self, other: CallCost) -> bool:
        """Whether something is less and nothing more."""
        less = self.elements <= other.elements and self.work <= other.work
        return less and self != other


@dataclass(frozen=True, slots=True)
class Site:
    """A number of a file: its places (line, column), its name, and its kind, the sooner the
    better to halve: 0 a batch, 1 a length, 2 another name, 3 none; 4 how many groups there are,
    which is only halved with a size, so that their members do not become few."""

    places: tuple[tuple[int, int], ...]
    name: str
    value: int
    kind: int


def scaled(problem: Problem) -> Problem:
    """The problem at smaller sizes; itself where it is small. It runs: do this apart."""
    load = load_of(problem)
    if load is None:
        raise KernelError("the problem does not run on tensors without values", where=problem.path)
    now = {site: site.value for site in sites(problem.source)}
    for kind in range(_COUNT):
        open_ = [s for s in now if s.kind == kind]
        while open_ and not load.small:
            site = max(open_, key=lambda s: now[s])  # the first of the largest
            for halved in _halved(now, site):
                found = load_of(edited(problem, now | halved))
                if found is not None and found.below(load):
                    now, load = now | halved, found
                    break
            else:
                open_.remove(site)
    return edited(problem, now)


def _halved(now: Mapping[Site, int], site: Site) -> Iterator[dict[Site, int]]:
    """A number halved, a size first with how many groups there are; then all that are equal to it,
    as sizes may have to be."""
    able = [s for s in now if now[s] // 2 >= _LOWEST[s.kind]]
    alike = [s for s in able if now[s] == now[site] and s.kind != _COUNT]
    groups = [s for s in able if s.kind == _COUNT and site.kind == _SIZE]
    if site in alike and groups:
        yield {s: now[s] // 2 for s in (site, *groups)}
    if site in alike:
        yield {site: now[site] // 2}
    if site in alike and len(alike) > 1:
        yield {s: now[s] // 2 for s in alike}


def load_of(problem: Problem) -> CallCost | None:
    """What the problem takes, told without values; None where it does not run."""
    try:
        with quiet():
            return _load(problem)
    except Exception:  # sizes that do not fit each other: code of others
        return None


def _load(problem: Problem) -> CallCost:
    counted = _Elements()
    made = problem.made(fake=True)
    given = tree_leaves(made.inputs)
    modes = [t.fake_mode for t in given if isinstance(t, FakeTensor)]
    with modes[0] if modes else fake_mode(), FlopCounterMode(display=False) as flops, counted:
        made.model(*made.inputs)
    held = [*given, *made.model.parameters()]
    largest = max((t.numel() for t in held if isinstance(t, torch.Tensor)), default=0)
    return CallCost(largest, flops.get_total_flops() + counted.total)


class _Elements(TorchDispatchMode):
    """Counts the elements of all results."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.total += sum(t.numel() for t in tree_leaves(result) if isinstance(t, torch.Tensor))
        return result


def sites(source: str) -> list[Site]:
    """The numbers that may be halved, in the order in which they are."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += _assigned(targets, node.value)
        elif isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS:
            found += _grouped("", [n for part in node.body for n in _numbers(part)])
    return sorted(found, key=lambda s: (s.kind, s.places))


def _assigned(targets: list[ast.expr], value: ast.expr) -> list[Site]:
    first = targets[0]
    if isinstance(first, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(first.elts, value.elts, strict=False)
        sites_ = [s for target, part in pairs for s in _assigned([target], part)]
        kinds = {s.value: s for s in sites_}
        return [
            replace(s, places=tuple(p for t in sites_ if t.value == v for p in t.places))
            for v, s in kinds.items()
        ]
    name = first.id if isinstance(first, ast.Name) else ""
    return [] if _KEPT.search(name.lower()) else _grouped(name, _numbers(value))


def _numbers(node: ast.AST) -> list[ast.Constant]:
    """The whole numbers in a piece of code, but for those that repeat a list."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        lists = [s for s in sides if isinstance(s, ast.List | ast.Tuple)]
        if lists:
            return [n for s in lists for n in _numbers(s)]
    if isinstance(node, ast.Constant):
        return [node] if type(node.value) is int else []
    return [n for child in ast.iter_child_nodes(node) for n in _numbers(child)]


def _grouped(name: str, numbers: list[ast.Constant]) -> list[Site]:
    lowest = 8 if _kind(name) else 4
    values = sorted({n.value for n in numbers if n.value >= lowest}, reverse=True)
    return [
        Site(
            tuple((n.lineno, n.col_offset) for n in numbers if n.value == value),
            name,
            value,
            _kind(name),
        )
        for value in values
    ]


def _kind(name: str) -> int:
    if not name:
        return _NO_NAME
    low = name.lower()
    if _GROUPS.search(low):
        return _COUNT
    return 0 if _BATCH.search(low) else 1 if _SPACE.search(low) else _SIZE


def edited(problem: Problem, chosen: Mapping[Site, int]) -> Problem:
    """The problem with other numbers."""
    lines = problem.source.splitlines(keepends=True)
    edits = [(p, str(s.value), str(v)) for s, v in chosen.items() for p in s.places]
    for (line, column), before, after in sorted(edits, reverse=True):
        raw = lines[line - 1].encode()
        end = column + len(before)
        if raw[column:end].decode() != before:
            raise AssertionError(f"{problem.path}:{line}: `{before}` is written otherwise")
        lines[line - 1] = (raw[:column] + after.encode() + raw[end:]).decode()
    return replace(problem, source="".join(lines))
