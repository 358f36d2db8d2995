"""Python texts that are admitted: one reading for all who read them, and names that mean one thing."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from backends.backend import BackendError
from ir.syntax import syntax_tree

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=]")  # PEP 263: a file's reader takes another encoding
_CONTROLS = re.compile(r"[\0\r\f\v\x1c-\x1e\x85\u2028\u2029]")  # ends of lines to some readers
_BUILTIN = frozenset(dir(builtins))


def plain_tree(source: str) -> ast.Module:
    """The tree of a text, which whoever reads the text as a file sees too; BackendError("build")."""
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
    """Python's own names that a comprehension or a lambda binds within itself: outside of it they are
    Python's again."""
    bound: list[ast.expr] = []
    if isinstance(node, ast.comprehension):
        bound = [node.target]
    elif isinstance(node, ast.Lambda):
        args = node.args
        every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
        yield from (a.arg for a in every if a is not None and a.arg in _BUILTIN)
    names = (n for target in bound for n in ast.walk(target))
    yield from (n.id for n in names if isinstance(n, ast.Name) and n.id in _BUILTIN)
