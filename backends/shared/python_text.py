"""Admitted Python texts: all readers must read them in the same way, and names must have one
meaning."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from backends.backend import BackendError
from ir.syntax import syntax_tree

# PEP 263: a file's reader would use another encoding
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=]")
# some readers treat these as ends of lines
_CONTROLS = re.compile(r"[\0\r\f\v\x1c-\x1e\x85\u2028\u2029]")
_BUILTIN = frozenset(dir(builtins))


def plain_tree(source: str) -> ast.Module:
    """The syntax tree of a text, the same as for readers of the file. Raises BackendError("build")
    if readers could differ."""
    for number, line in enumerate(source.split("\n"), 1):
        if number <= 2 and _COOKIE.search(line.lstrip("\ufeff")):
            why = "a text is UTF-8, and says nothing else"
            raise BackendError(
                "build", f"line {number}: `{line.strip()}` is not for a kernel: {why}"
            )
        if found := _CONTROLS.search(line):
            said = f"line {number}: `{found[0]!a}` is not for a kernel: a line ends in one way"
            raise BackendError("build", said)
    try:
        return syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise BackendError("build", f"the source is no Python: {error}") from None


def hidden_names(node: ast.AST) -> Iterator[str]:
    """Builtin names that a comprehension or a lambda binds; outside of it they are builtins
    again."""
    bound: list[ast.expr] = []
    if isinstance(node, ast.comprehension):
        bound = [node.target]
    elif isinstance(node, ast.Lambda):
        args = node.args
        every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        yield from (a.arg for a in every if a is not None and a.arg in _BUILTIN)
    names = (n for target in bound for n in ast.walk(target))
    yield from (n.id for n in names if isinstance(n, ast.Name) and n.id in _BUILTIN)
