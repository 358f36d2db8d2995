"""Compares two Python sources up to the names of variables."""

from __future__ import annotations

import ast
from typing import Any


def same_program(one: str, other: str) -> bool:
    """Whether the syntax trees are equal under a one-to-one renaming of variables.

    A name has the same new name throughout the source. Attributes, keywords of calls and constants
    must be equal, except keywords that name an argument renamed above them. A source that is not
    Python is equal only to itself.
    """
    if one == other:
        return True
    try:
        trees = ast.parse(one), ast.parse(other)
    except SyntaxError:
        return False
    return _Renaming().alike(*trees)


class _Renaming:
    """A renaming, in both directions, that grows as two trees are compared."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}
        self.back: dict[str, str] = {}

    def alike(self, one: Any, other: Any) -> bool:
        """Whether two values of a syntax tree are equal under the renaming so far."""
        if type(one) is not type(other):
            return False
        if isinstance(one, ast.keyword):
            known = (
                self.there.get(one.arg or "", one.arg),
                self.back.get(other.arg or "", other.arg),
            )
            return known == (other.arg, one.arg) and self.alike(one.value, other.value)
        if isinstance(one, ast.AST):
            return all(
                self._named(getattr(one, field), getattr(other, field))
                if (type(one), field) in _NAMES
                else self.alike(getattr(one, field), getattr(other, field))
                for field in one._fields
            )
        if isinstance(one, list):
            return len(one) == len(other) and all(map(self.alike, one, other))
        return bool(one == other) or one != one and other != other

    def _named(self, one: str | None, other: str | None) -> bool:
        if one is None or other is None:
            return one is other
        pair = self.there.setdefault(one, other), self.back.setdefault(other, one)
        return pair == (other, one)


_NAMES = {(ast.Name, "id"), (ast.arg, "arg"), (ast.FunctionDef, "name")}
