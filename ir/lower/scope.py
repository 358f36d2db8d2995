"""Scopes: nested blocks under construction, and the values that are available in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ir.nest.nest import Statement


@dataclass(slots=True)
class Scope:
    """A block under construction."""

    parent: Scope | None
    binds: frozenset[str]  # indices that have a tile origin from here inwards
    statements: list[Statement] = field(default_factory=list)
    # By tensor of the spec: the value that holds its tile here.
    tensors: dict[str, str] = field(default_factory=dict)
    # By read of a global tensor: the value that holds its region.
    loads: dict[object, str] = field(default_factory=dict)
    # By the same keys: values that loops in this scope keep for later loops.
    kept: dict[object, str] = field(default_factory=dict)
    # By expression and dtype: operands of the loops in this scope that are hoisted out of them.
    operands: dict[object, str] = field(default_factory=dict)
    bound: frozenset[str] = field(init=False)  # every index that has an origin here

    def __post_init__(self) -> None:
        self.bound = self.binds | self.parent.bound if self.parent else self.binds

    def chain(self) -> Iterator[Scope]:
        """This scope and the enclosing ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def home(self, needed: set[str]) -> Scope | None:
        """The outermost scope of the chain in which all these indices have an origin; None if there
        is none."""
        found = None
        for scope in self.chain():
            if needed <= scope.bound:
                found = scope
        return found

    def tensor(self, name: str) -> str | None:
        """The value that holds a tensor's tile here, or None."""
        return next((s.tensors[name] for s in self.chain() if name in s.tensors), None)

    def load(self, key: object) -> str | None:
        """The value that holds a read's region here, or None."""
        return next((s.loads[key] for s in self.chain() if key in s.loads), None)
