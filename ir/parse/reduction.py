"""Parses right sides: reductions, scans and the ranges written with them."""

from __future__ import annotations

import ast

from ir.functions import REDUCTIONS, SCANS
from ir.parse.expression import ExpressionParser, is_size, pointwise
from ir.spec import Expr, Number, Range, Reduce, Scan


class RightSides(ExpressionParser):
    """Parses the right sides of one spec's equations."""

    def right_side(self, node: ast.expr) -> Expr:
        """The right side of an equation: a reduction, a scan or a value."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in REDUCTIONS:
                return self._reduce(node, node.func.id)
            if node.func.id in SCANS:
                return self._scan(node, node.func.id)
        return self.value(node)

    def _reduce(self, node: ast.Call, reduction: str) -> Reduce:
        body = self._body(node, reduction)
        over = [self._over(a, reduction) for a in node.args[1:]]
        ranges = [self._range(k, reduction) for k in node.keywords]
        names = (*over, *(r.index for r in ranges))
        place = self.source.place(node)
        return Reduce(reduction, self.value(body), names, tuple(ranges), place=place)

    def _body(self, node: ast.Call, reduction: str) -> ast.expr:
        if not node.args or len(node.args) + len(node.keywords) < 2:
            raise self.source.fault(
                node,
                f"`{reduction}` needs a body and an index",
                allowed=f"`{reduction}(body, k)`",
                hint="name every index that it runs over",
            )
        return node.args[0]

    def _over(self, node: ast.expr, reduction: str) -> str:
        if not isinstance(node, ast.Name) or is_size(node.id) or node.id in self.tensors:
            raise self.source.fault(
                node,
                f"`{reduction}` is given `{self.source.written(node)}` as an index",
                allowed="the name of an index",
                hint=f"the body comes first, then its indices{pointwise(reduction)}",
            )
        return self.declare(node, node.id, "an index")

    def _range(self, node: ast.keyword, reduction: str) -> Range:
        if node.arg is None:
            raise self.not_allowed(node.value)
        index = self.declare(node, node.arg, "an index")
        place, value = self.source.place(node), node.value
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "range":
            return self._written_range(value, index)
        return Range(index, Number(0), self.size(value), place=place)

    def _written_range(self, node: ast.Call, index: str) -> Range:
        place = self.source.place(node)
        if len(node.args) not in (1, 2) or node.keywords:
            raise self.source.fault(
                node,
                f"`range` is given {len(node.args) + len(node.keywords)} arguments",
                allowed="`range(offsets[b], offsets[b + 1])`",
                hint="give the first position and the one after the last",
            )
        low, high = node.args if len(node.args) == 2 else (ast.Constant(0), node.args[0])
        reads = [isinstance(e, ast.Subscript) for e in (low, high)]
        if all(reads):
            return Range(index, self.value(low), self.value(high), place=place)
        if len(node.args) == 2 and not any(reads):
            part = Range(index, self.value(low), self.value(high), place=place)
            if part.partial:
                return part
        if any(reads) or not (isinstance(low, ast.Constant) and low.value == 0):
            raise self.source.fault(
                node,
                f"`{self.source.written(node)}` is no range",
                allowed="`range(offsets[b], offsets[b + 1])`, `range(0, p + 1)`, or a size: `i=3`",
                hint="a range starts at 0 and ends at a size, or runs between two reads or indices",
            )
        return Range(index, Number(0), self.size(high), place=place)

    def _scan(self, node: ast.Call, name: str) -> Scan:
        if len(node.args) != 2:
            raise self.source.fault(
                node,
                f"`{name}` is given {len(node.args)} arguments",
                allowed=f"`{name}(body, k)`, `{name}(body, k, reverse=True, exclusive=True)`",
                hint="a scan runs along one index",
            )
        flags = dict(self._flag(k, name) for k in node.keywords)
        body, along = self.value(node.args[0]), self._over(node.args[1], name)
        return Scan(SCANS[name], body, along, **flags, place=self.source.place(node))

    def _flag(self, node: ast.keyword, name: str) -> tuple[str, bool]:
        value = getattr(node.value, "value", None)
        if node.arg not in ("reverse", "exclusive") or not isinstance(value, bool):
            raise self.source.fault(
                node,
                f"`{name}` is given `{self.source.written(node)}`",
                allowed="reverse=True, exclusive=True",
                hint="leave out what is not wanted",
            )
        return node.arg, value
