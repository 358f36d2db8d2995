"""Static figures of a kernel's C++ text: its loads, reductions and matmuls, from its tokens.

It reads kernels, loops and commands of a processing element in the style of the device interface.
Other styles are not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|[A-Za-z_]\w*|\d[\w.]*|::|[^\s\w]",
    re.DOTALL,
)
_LOOPS = ("for", "while")
_OPEN, _CLOSE = "([{", ")]}"
_AFRESH = ("afresh", "false")
# factor on a tile's size for each further axis: a guess, because the text has no extents
_LARGER = 16
_WRITES = {
    "load": 0,
    "load_shared": 0,
    "map": 1,
    "reduce": 1,
    "scan": 1,
    "matmul": 0,
    "fill": 0,
    "iota": 0,
    "bucketize": 0,
    "take": 0,
    "receive": 0,
}


@dataclass(frozen=True, slots=True)
class Command:
    """`pe.name(args)`. args: the tokens of each. block: numbers of its kernel and its loop. depth:
    number of enclosing loops, -1 outside of the loop over the grid's tiles."""

    name: str
    args: tuple[tuple[str, ...], ...]
    block: tuple[int, int]
    depth: int

    def variable(self, number: int) -> str:
        """The first name in an argument, which is the tile's or the tensor's."""
        if number >= len(self.args):
            return ""
        return next((t for t in self.args[number] if t[0].isalpha()), "")


@dataclass(slots=True)
class _Kernel:
    """The contents of one kernel. stages: slots of each buffer. sizes: relative sizes of
    buffers."""

    commands: list[Command] = field(default_factory=list)
    stages: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)

    def loads(self) -> Iterator[tuple[Command, float]]:
        """The loads with their relative sizes."""
        found = (c for c in self.commands if c.name in ("load", "load_shared"))
        yield from ((c, self.sizes.get(c.variable(0), 1.0)) for c in found)


def static_figures(source: str) -> Mapping[str, float]:
    """The facts of `ir.estimate.kernel_features` that the text shows; empty if it has no kernel."""
    kernels = [_read(body, n) for n, body in enumerate(_bodies(_tokens(source)))]
    commands = [c for k in kernels for c in k.commands]
    if not commands:
        return {}
    loads = [(k, c, size) for k in kernels for c, size in k.loads()]
    whole = sum(size for _, _, size in loads) or 1.0
    ahead = sum(size for k, c, size in loads if k.stages.get(c.variable(0), 1) > 1)
    found = [c.name for c in commands]
    return {
        "reused": sum(size for k, c, size in loads if _reused(k, c)) / whole,
        "ahead": ahead / whole,
        "passes": float(_passes(commands)),
        "carried": float(sum(_carries(c) for c in commands)),
        "matrix_share": float("matmul" in found),
        "barriers": float(sum(n in ("load_shared", "barrier", "receive") for n in found)),
        "collectives": float(found.count("reduce") + found.count("scan")),
        "atomics": float(found.count("add")),
    }


def _tokens(source: str) -> list[str]:
    return [t for t in _TOKEN.findall(source) if not t.startswith(("//", "/*"))]


def _bodies(tokens: list[str]) -> Iterator[list[str]]:
    """The tokens between the braces of each kernel."""
    for at, token in enumerate(tokens):
        if token == "KERNEL" and "{" in tokens[at:]:
            begin = tokens.index("{", at)
            yield tokens[begin + 1 : _end(tokens, begin)]


def _end(tokens: Sequence[str], begin: int) -> int:
    """The position of the bracket that matches the one at `begin`; the end if there is none."""
    open_ = 0
    for at in range(begin, len(tokens)):
        if len(tokens[at]) == 1:
            open_ += (tokens[at] in _OPEN) - (tokens[at] in _CLOSE)
        if not open_:
            return at
    return len(tokens)


def _read(body: list[str], number: int) -> _Kernel:
    """The commands of a kernel."""
    kernel = _Kernel()
    over_grid = any(body[at] in _LOOPS and _over_grid(_head(body, at)) for at in range(len(body)))
    loops: list[tuple[int, int]] = []  # end and number of each enclosing loop
    at = 0
    while at < len(body):
        loops = [loop for loop in loops if at < loop[0]]
        if body[at] in _LOOPS and body[at + 1 : at + 2] == ["("]:
            head = _end(body, at + 1)
            loops.append((_statement_end(body, head + 1), at))
            at = head + 1
        elif body[at : at + 2] == ["pe", "."] and body[at + 3 : at + 4] == ["("]:
            args = _arguments(body[at + 4 : _end(body, at + 3)])
            if body[at + 2] == "buffer":
                kernel.stages[body[at - 2]] = _number(args[-1])
                kernel.sizes[body[at - 2]] = float(_LARGER ** "".join(args[2]).count("{"))
            block = (number, loops[-1][1] if loops else -1)
            kernel.commands.append(Command(body[at + 2], args, block, len(loops) - over_grid))
            at += 4
        else:
            at += 1
    return kernel


def _head(body: list[str], at: int) -> list[str]:
    """The tokens between the brackets after a word."""
    return body[at + 2 : _end(body, at + 1)] if body[at + 1 : at + 2] == ["("] else []


def _over_grid(head: list[str]) -> bool:
    """Whether a loop's head is that of the loop over the grid's tiles."""
    return "pe" in head and "id" in head


def _statement_end(body: Sequence[str], at: int) -> int:
    """The end of the statement that begins at `at`."""
    if body[at : at + 1] == ["{"]:
        return _end(body, at)
    while at < len(body) and body[at] != ";":
        at = _end(body, at) + 1 if body[at] in _OPEN else at + 1
    return at


def _arguments(tokens: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The tokens of each argument, split at the outer commas."""
    args: list[list[str]] = [[]]
    open_ = 0
    for token in tokens:
        if len(token) == 1:
            open_ += (token in _OPEN) - (token in _CLOSE)
        if token == "," and not open_:
            args.append([])
        else:
            args[-1].append(token)
    return tuple(tuple(a) for a in args)


def _number(tokens: tuple[str, ...]) -> int:
    return int(tokens[0]) if len(tokens) == 1 and tokens[0].isdigit() else 1


def _reused(kernel: _Kernel, load: Command) -> bool:
    """Whether a loaded tile is read more than once; see `ir.estimate.kernel_features`."""
    name = load.variable(0)
    readers = [c for c in kernel.commands if name in _reads(c)]
    return (
        load.name == "load_shared"
        or len(readers) > 1
        or any(c.name == "matmul" or c.depth > load.depth for c in readers)
    )


def _reads(command: Command) -> set[str]:
    """The names in a command's arguments, except for what it writes."""
    if command.name in ("buffer", "number", "barrier"):
        return set()
    written = _WRITES.get(command.name)
    return {t for n, arg in enumerate(command.args) if n != written for t in arg}


def _passes(commands: list[Command]) -> int:
    """The largest number of places that load one tensor, or that store it."""
    places: dict[str, set[tuple[tuple[int, int], bool]]] = {}
    for c in commands:
        if c.name in ("load", "load_shared"):
            places.setdefault(c.variable(1), set()).add((c.block, True))
        elif c.name in ("store", "add"):
            places.setdefault(c.variable(0), set()).add((c.block, False))
    return max((len(p) for p in places.values()), default=1)


def _carries(command: Command) -> bool:
    """Whether a reduction or a matmul accumulates over the iterations of a loop."""
    if command.depth < 1:
        return False
    afresh = [(word,) for word in _AFRESH]
    onto = command.name in ("reduce", "matmul") and command.args[-1] not in afresh
    return onto or command.name == "scan"
