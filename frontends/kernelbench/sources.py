"""Sources of kernels as parts of one file: each keeps what its `launch` needs, under names of its own."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Mapping

from ir.errors import KernelError

LAUNCH = "launch"  # the function of a source that runs its kernel on tensors


def apart(sources: Mapping[str, str], others: set[str]) -> tuple[list[str], dict[str, str]]:
    """Sources one after another, each with what its `launch` uses, and the names of their functions `launch`:
    a name that several define is made each's own; a function that they define alike is in the first alone.

    sources: by kernel.  others: names that the rest of the file defines.
    """
    sources = {kernel: _used(kernel, source) for kernel, source in sources.items()}
    defined = {kernel: names_of(source) for kernel, source in sources.items()}
    alike = _alike(sources, others)
    taken = Counter(name for names in (*defined.values(), others) for name in names)
    made: list[str] = []
    launches: dict[str, str] = {}
    there: set[str] = set()
    for kernel, source in sources.items():
        own = {n: f"{n}_{kernel}" for n in defined[kernel] - alike if taken[n] > 1}
        made.append(_renamed(_without(source, alike & there), own).strip())
        launches[kernel] = own.get(LAUNCH, LAUNCH)
        there |= alike & defined[kernel]
    return made, launches


def _used(kernel: str, source: str) -> str:
    """A source without functions that its `launch` has no use for, such as one that checks a caller's tensors.
    KernelError where it has no `launch`."""
    if LAUNCH not in names_of(source):
        raise KernelError(f"the source of `{kernel}` defines no function `{LAUNCH}`")
    while True:
        tree = ast.parse(source)
        read = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name))
        unread = {
            f.name
            for f in tree.body
            if isinstance(f, ast.FunctionDef) and f.name != LAUNCH
            if not f.decorator_list and not read[f.name]
        }
        if not unread:
            return source
        source = _without(source, unread)


def _alike(sources: Mapping[str, str], others: set[str]) -> set[str]:
    """Functions that several sources define, all alike, and that use nothing else a source defines."""
    defined = Counter(name for source in sources.values() for name in names_of(source))
    found: Counter[tuple[str, str]] = Counter()
    for source in sources.values():
        names = names_of(source)
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                found[node.name, ast.dump(node)] += not used & (names - {node.name})
    apart = {*others, *sources}
    return {n for (n, _), count in found.items() if count == defined[n] > 1 and n not in apart}


def _without(source: str, names: set[str]) -> str:
    """A source without some of its functions."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
    return "".join(lines)


def names_of(source: str) -> set[str]:
    """What a module defines, imports left out."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return found


def _renamed(source: str, names: Mapping[str, str]) -> str:
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for before, token in reversed(list(zip([None, *tokens], tokens, strict=False))):
        attribute = before is not None and before.string == "."
        if token.type == tokenize.NAME and token.string in names and not attribute:
            row, start = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:start] + names[token.string] + line[token.end[1] :]
    return re.sub(r"\n{4,}", "\n\n\n", "".join(lines))


def without_docstring(source: str) -> str:
    """A module's text below its docstring."""
    first = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[first.end_lineno :]).strip()
