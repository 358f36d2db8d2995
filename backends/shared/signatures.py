"""Signatures of the Python functions in a module's text, with the first lines of their
docstrings."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator


def signatures(module: str, names: Collection[str] | None = None) -> Iterator[str]:
    """`name(parameters)  # what it does` for each public function of a text, or for those with some
    names, in order."""
    for node in ast.parse(module).body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        if names is None or node.name in names:
            for arg in (*node.args.args, *node.args.kwonlyargs):
                arg.annotation = None if _is_any(arg.annotation) else arg.annotation
            said = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
            yield f"{node.name}({ast.unparse(node.args)})" + (f"  # {said}" if said else "")


def _is_any(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) == "Any"
