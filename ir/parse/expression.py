"""Parses expressions from syntax trees: values, positions, sizes, numbers."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection

from ir.errors import KernelError
from ir.functions import POINTWISE, REDUCTIONS, SCANS
from ir.source import Source, near
from ir.spec import (
    DTYPES,
    Apply,
    Bucketize,
    Cast,
    Expr,
    Index,
    Number,
    Read,
    Size,
)

DEEPEST = 100  # levels of nesting
LARGEST = 2**63 - 1
SIZE_FUNCTIONS = ("add", "sub", "mul", "floordiv", "mod", "minimum", "maximum", "neg")
CALLED = tuple(f.name for f in POINTWISE.values() if not f.operator)
_WORDS = (*CALLED, *REDUCTIONS, *SCANS, *DTYPES, "pad", "bucketize")
RESERVED = frozenset((*_WORDS, "range", "inf", *keyword.kwlist))  # names that no tensor can have
_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARE = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_UNARY = {ast.USub: "neg", ast.Invert: "not"}
_OPERATORS = "+ - * / // % ** & | ^ ~ << >> < <= > >= == !="
_INSTEAD = {
    ast.BoolOp: "write `&` and `|` for `and` and `or`",
    ast.Not: "write `~a` for `not a`",
    ast.IfExp: "write `where(condition, a, b)`",
    ast.MatMult: "write the product with its indices: `sum(a[m, k] * b[k, n], k)`",
    ast.Attribute: "tensors have no attributes: a function is called as `f(x)`",
    ast.Slice: "write an index instead of a slice",
    ast.ListComp: "write indices: an equation holds for every value of them",
    ast.GeneratorExp: "write `sum(body, k)`: the index after the body",
}


def is_size(name: str) -> bool:
    """Whether a name is that of a size: upper case."""
    return re.fullmatch(r"[A-Z][A-Z0-9_]*", name) is not None


def is_name(name: str) -> bool:
    """Whether a name is that of a tensor, an index, an attribute or a kernel: lower case."""
    return re.fullmatch(r"[a-z_][a-z0-9_]*", name) is not None


class ExpressionParser:
    """Parses the expressions of one spec."""

    def __init__(self, source: Source, attributes: Collection[str] = ()):
        self.source = source
        self.attributes = attributes  # lower-case names that denote scalars
        # The names that need positions; the caller adds those that equations define.
        self.tensors: set[str] = set()
        self._depth = 0

    def value(self, node: ast.expr) -> Expr:
        """A value computed element by element."""
        if self._depth == DEEPEST:
            raise self.source.fault(
                node,
                f"this is nested more than {DEEPEST} deep",
                hint="give the inner part an equation of its own",
            )
        self._depth += 1
        try:
            return self._value(node)
        finally:
            self._depth -= 1

    def positions(self, node: ast.expr) -> tuple[Expr, ...]:
        """The positions between the brackets of a tensor; `()` for a single number."""
        items = node.elts if isinstance(node, ast.Tuple) else [node]
        return tuple(self.value(item) for item in items)

    def size(self, node: ast.expr) -> Expr:
        """A size expression."""
        expr = self.value(node)
        for part in expr.walk():
            whole = isinstance(part, Number) and type(part.value) is int
            sized = isinstance(part, Size) and is_size(part.name)
            if not (whole or sized or _function(part) in SIZE_FUNCTIONS):
                raise self.source.fault(
                    node,
                    f"`{self.source.written(node)}` is no size expression",
                    allowed="upper-case names and integers with + - * // % minimum maximum",
                    hint="sizes are upper case, indices, tensors and attributes lower case",
                )
        return expr

    def number(self, node: ast.expr) -> float | int | bool:
        """A literal number, including a sign or `inf`."""
        expr = self.value(node) if not isinstance(node, ast.Call) else None
        if not isinstance(expr, Number):
            raise self.source.fault(
                node,
                f"`{self.source.written(node)}` is no number",
                allowed="an integer, a decimal number, inf, -inf",
                hint="write the number itself: nothing is computed here",
            )
        return expr.value

    def declare(self, node: ast.AST, name: str, what: str) -> str:
        """Checks that a lower-case name is free to be used for `what`; returns it."""
        if not is_name(name):
            raise self.source.fault(
                node,
                f"`{name}` cannot name {what}",
                allowed="lower-case letters, digits and _",
                hint="sizes are upper case, everything else is lower case",
            )
        if name in RESERVED:
            fault = f"`{name}` is a word of the language"
            raise self.source.fault(node, fault, hint=f"give {what} another name")
        return name

    def _value(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=value):
                return self._number(node, value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Subscript():
                return self._read(node)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._apply(node, _BINARY[type(op)], left, right)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return self._unary(node, _UNARY[type(op)], operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return self._apply(node, _COMPARE[type(op)], left, right)
        raise self.not_allowed(node)

    def not_allowed(self, node: ast.expr) -> KernelError:
        """The error for syntax that the language does not have."""
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            what, hint = "comparisons do not chain", "write `(a < b) & (b < c)`"
        else:
            kinds = (type(node), type(getattr(node, "op", None)))
            found = [_INSTEAD[k] for k in kinds if k in _INSTEAD]
            what = f"`{self.source.written(node)}` is not part of the language"
            hint = found[0] if found else "write it with the operators and functions allowed"
        allowed = f"numbers, sizes, indices, reads, {_OPERATORS}, {', '.join(CALLED)}"
        return self.source.fault(node, what, allowed=allowed, hint=hint)

    def _number(self, node: ast.Constant, value: object) -> Number:
        if not isinstance(value, int | float):
            raise self.not_allowed(node)
        if isinstance(value, int) and value > LARGEST:
            raise self.source.fault(
                node,
                "this integer is too large",
                allowed=f"at most {LARGEST}",
                hint="write a decimal number, such as `1e30`",
            )
        return Number(value, place=self.source.place(node))

    def _name(self, node: ast.Name, name: str) -> Expr:
        place = self.source.place(node)
        if name == "inf":
            return Number(float("inf"), place=place)
        if is_size(name) or name in self.attributes:
            return Size(name, place=place)
        if name in self.tensors:
            raise self.source.fault(
                node,
                f"the tensor `{name}` stands here without positions",
                hint=f"write `{name}[i, j]` with its indices, `{name}[()]` for a single number",
            )
        return Index(self.declare(node, name, "an index"), place=place)

    def _apply(self, node: ast.expr, function: str, *args: ast.expr) -> Apply:
        values = tuple(self.value(a) for a in args)
        return Apply(function, values, place=self.source.place(node))

    def _unary(self, node: ast.expr, function: str, operand: ast.expr) -> Expr:
        literal = isinstance(operand, ast.Constant) or (
            isinstance(operand, ast.Name) and operand.id == "inf"
        )
        value = self.value(operand)
        if function == "neg" and literal and isinstance(value, Number):
            if type(value.value) is not bool:
                return Number(-value.value, place=self.source.place(node))
        return Apply(function, (value,), place=self.source.place(node))

    def _read(self, node: ast.Subscript, pad: float | None = None) -> Read:
        if not isinstance(node.value, ast.Name):
            raise self.source.fault(
                node.value,
                f"`{self.source.written(node.value)}` is no tensor",
                allowed="`tensor[positions]`",
                hint="give the inner part an equation of its own",
            )
        tensor = self.declare(node.value, node.value.id, "a tensor")
        at = self.positions(node.slice)
        return Read(tensor, at, pad, place=self.source.place(node))

    def _call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name):
            raise self.not_allowed(node)
        name = node.func.id
        if name in REDUCTIONS or name in SCANS:
            raise self.source.fault(
                node,
                f"`{name}` must be the whole right side of an equation",
                hint="give it its own equation" + pointwise(name),
            )
        if node.keywords:
            raise self.source.fault(
                node.keywords[0],
                f"`{name}` takes no named arguments",
                hint="write the arguments in order",
            )
        if name == "pad":
            return self._pad(node)
        if name == "bucketize":
            return self._bucketize(node)
        if name in DTYPES:
            (value,) = self._arguments(node, name, 1)
            return Cast(name, self.value(value), place=self.source.place(node))
        if name not in CALLED:
            raise self.source.fault(
                node.func,
                f"there is no function `{name}`",
                allowed=", ".join(_WORDS),
                hint=near(name, _WORDS, "write it with the functions allowed"),
            )
        return self._apply(node, name, *self._arguments(node, name, POINTWISE[name].arity))

    def _arguments(self, node: ast.Call, name: str, count: int) -> list[ast.expr]:
        if len(node.args) != count:
            raise self.source.fault(
                node,
                f"`{name}` is given {len(node.args)} arguments",
                allowed=f"{count}",
                hint="look at the commas and brackets",
            )
        return node.args

    def _pad(self, node: ast.Call) -> Read:
        read, outside = self._arguments(node, "pad", 2)
        if not isinstance(read, ast.Subscript):
            raise self.source.fault(
                read,
                f"`pad` is given `{self.source.written(read)}`",
                allowed="a read: `pad(x[i - 1], 0.0)`",
                hint="pad each read; give anything else an equation of its own",
            )
        value = self._read(read, float(self.number(outside)))
        return Read(value.tensor, value.at, value.pad, place=self.source.place(node))

    def _bucketize(self, node: ast.Call) -> Bucketize:
        value, borders = self._arguments(node, "bucketize", 2)
        if not isinstance(borders, ast.Name):
            raise self.source.fault(
                borders,
                f"`bucketize` is given the borders `{self.source.written(borders)}`",
                allowed="the name of a 1-D tensor",
                hint="write the tensor's name without positions",
            )
        name = self.declare(borders, borders.id, "a tensor")
        return Bucketize(self.value(value), name, place=self.source.place(node))


def pointwise(reduction: str) -> str:
    """A hint for `max(a, b)` and `min(a, b)`, as other languages write them."""
    other = {"max": "maximum", "min": "minimum"}.get(reduction)
    return f"; the larger or smaller of two values is `{other}(a, b)`" if other else ""


def _function(expr: Expr) -> str:
    return expr.function if isinstance(expr, Apply) else ""
