"""Open sizes: PyTorch's symbolic integers as size expressions of the language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from frontends.pytorch.names import size_name
from ir.errors import KernelError
from ir.spec import Apply, Expr, Number, Size

_FUNCTIONS = {
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
    "Max": "maximum",
    "Min": "minimum",
    "IntTrueDiv": "div",
    "FloatTrueDiv": "div",
}


@dataclass(frozen=True, slots=True)
class OpenSize:
    """A size that stays open."""

    name: str
    # What the module takes, as PyTorch found it.
    low: int
    high: int | None  # None where there is no limit
    example: int  # what it was in the call that was traced


class OpenSizes:
    """The open sizes of a graph, by PyTorch's symbols."""

    def __init__(self, program: ExportedProgram, dynamic: Mapping[str, Mapping[int, str]]):
        self.symbols: dict[sympy.Symbol, OpenSize] = {}
        self._ranges = program.range_constraints
        nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
        for node in nodes:
            for dim, name in dynamic.get(node.name, {}).items():
                size = node.meta["val"].shape[dim]
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    self._named(size, size_name(name, node.name))
        for node in nodes:
            for size in getattr(node.meta.get("val"), "shape", ()):
                if isinstance(size, torch.SymInt):
                    self._unnamed(size)

    def _named(self, size: torch.SymInt, name: str) -> None:
        symbol = size.node.expr
        if symbol in self.symbols:
            return
        if any(s.name == name for s in self.symbols.values()):
            raise KernelError(
                f"the size `{name}` stands for dimensions that need not be equal",
                hint="give each a name of its own; those that must be equal come out as one",
            )
        range_ = self._ranges.get(symbol)
        low = max(int(range_.lower), 1) if range_ else 1
        high = int(range_.upper) if range_ and range_.upper.is_Integer else None
        self.symbols[symbol] = OpenSize(name, low, high, int(size.node.hint))

    def _unnamed(self, size: torch.SymInt) -> None:
        for symbol in sorted(size.node.expr.free_symbols, key=str):
            if symbol not in self.symbols:
                env = size.node.shape_env
                made = env.create_symintnode(symbol, hint=int(env.size_hint(symbol)))
                self._named(made, f"S{len(self.symbols)}")

    def written(self, size: Any) -> Expr:
        """A size as an expression, with a name of its own for what depends on data."""
        if not isinstance(size, torch.SymInt | torch.SymFloat):
            return Number(size)
        return self._expression(size.node.expr)

    def settled(self, size: Expr) -> Expr:
        """The size. KernelError for one that depends on data."""
        if not self.known(size):
            raise KernelError(
                "a size or a number depends on the values of tensors (`.item()`, `int()`, "
                "`float()`, `.tolist()`)",
                hint="keep the number a tensor of no dimensions; for a size compute with all "
                "elements and a mask: `torch.where(mask, x, 0)`",
            )
        return size

    def known(self, size: Expr) -> bool:
        """Whether a size follows from the shapes of the inputs."""
        names = {s.name for s in self.symbols.values()}
        return all(n.name in names for n in size.walk() if isinstance(n, Size))

    def _expression(self, node: sympy.Basic) -> Expr:
        if node.is_Integer:
            return Number(int(node))
        if node.is_Float or node.is_Rational:
            return Number(float(node))
        if node.is_Symbol:
            return self._size(node)
        name = type(node).__name__
        if name == "ToFloat":
            return self._expression(node.args[0])
        kind = {"Add": "add", "Mul": "mul", **_FUNCTIONS}.get(name)
        if kind is None:
            raise KernelError(f"a size is `{node}`, which the language cannot write")
        made = [self._expression(a) for a in node.args]
        whole = made[0]
        for part in made[1:]:
            whole = Apply(kind, (whole, part))
        return whole

    def _size(self, symbol: sympy.Symbol) -> Expr:
        found = self.symbols.get(symbol)
        return Size(found.name if found else str(symbol).upper())
