"""Launch plans: the `launch` of a source is interpreted from its syntax tree and never run as
Python.

    statements      NAMES = expression     if / else      for NAME in (TENSORS) | range(..) | reversed(range(..))
                    raise ValueError("text")      assert      KERNEL[(GRID,)](ARGUMENTS, NAME=expression)
    expressions     numbers, names, arithmetic, comparisons, `x if c else y`, sizes and strides of tensors,
                    triton.cdiv, triton.next_power_of_2, min, max and the like, TensorDescriptor(..)

So the host code of an edited source cannot do anything but compute numbers.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from backends.backend import BackendError

MOST_LAUNCHES = 1 << 20
_MOST_BITS = 256  # of the result of a power or a shift
_WHY = "a launch chooses numbers: sizes, a grid, constants and options"

_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_POWERS: Mapping[type, Callable[[int, int], Any]] = {
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: Mapping[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
_COMPARED: Mapping[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "triton.cdiv": lambda x, y: (x + y - 1) // y,
    "triton.next_power_of_2": lambda n: 1 << max(n - 1, 0).bit_length(),
    **{f.__name__: f for f in (abs, bool, float, int, len, max, min, sum, tuple, list)},
}
_OF_TENSORS = ("numel", "stride", "element_size", "is_contiguous")  # methods
_DESCRIPTOR = "TensorDescriptor"


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor of the call, by position."""

    position: int


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor descriptor, created at each call. parts: its arguments after the tensor."""

    position: int
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch: values, with `Argument` and `Descriptor` in place of tensors."""

    kernel: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """The `launch` of a source."""

    tree: ast.FunctionDef
    kernels: frozenset[str]
    constants: Mapping[str, Any]  # of the module

    def launches(self, tensors: Sequence[Any]) -> list[Launched]:
        """The launches on these tensors. Raises ValueError as the source does, and
        BackendError("build") for anything that is not a launch."""
        names = [arg.arg for arg in self.tree.args.args]
        if len(names) != len(tensors):
            raise TypeError(f"launch() takes {len(names)} tensors, {len(tensors)} were given")
        held = {name: Argument(n) for n, name in enumerate(names)}
        run = _Run(self, tuple(tensors), {**self.constants, **held})
        found: list[Launched] = []
        try:
            for one in run.block(self.tree.body):
                found.append(one)
        except _Returned:
            pass
        return found


class _Returned(Exception):
    """Ends the evaluation of a launch."""


class _Run:
    """One evaluation of a plan, at given tensors."""

    def __init__(self, plan: Plan, tensors: tuple[Any, ...], names: dict[str, Any]):
        self.plan, self.tensors, self.names = plan, tensors, names
        self.left = MOST_LAUNCHES  # statements in loops

    def block(self, body: Sequence[ast.stmt]) -> Iterator[Launched]:
        for statement in body:
            yield from self.statement(statement)

    def statement(self, node: ast.stmt) -> Iterator[Launched]:
        match node:
            case ast.Expr(ast.Constant()) | ast.Pass():
                return
            case ast.Return(None):
                raise _Returned
            case ast.Expr(ast.Call(ast.Subscript(ast.Name(kernel), grid)) as call) if (
                kernel in self.plan.kernels
            ):
                yield self.launch(call, kernel, grid)
            case ast.Assign([target], value):
                self.bind(target, self.value(value))
            case ast.If(test, body, orelse):
                yield from self.block(body if self.value(test) else orelse)
            case ast.For(ast.Name(name), over, body, []):
                for each in self.sequence(over):
                    self.names[name] = each
                    self.left -= 1
                    if self.left < 0:
                        _refuse(node, f"it takes more than {MOST_LAUNCHES} rounds")
                    yield from self.block(body)
            case ast.Assert(test, None | ast.Constant()):
                if not self.value(test):
                    raise AssertionError(ast.unparse(test))
            case ast.Raise(ast.Call(ast.Name("ValueError"), [ast.Constant(str(text))], []), None):
                raise ValueError(text)
            case _:
                _refuse(node)

    def bind(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(name) if name not in self.plan.kernels:
                self.names[name] = value
            case ast.Tuple(targets) if isinstance(value, tuple | list) and len(targets) == len(
                value
            ):
                for inner, part in zip(targets, value, strict=True):
                    self.bind(inner, part)
            case _:
                _refuse(target)

    def launch(self, call: ast.Call, kernel: str, grid: ast.expr) -> Launched:
        extents = self.value(grid)
        extents = extents if isinstance(extents, tuple) else (extents,)
        if not 1 <= len(extents) <= 3 or not all(type(n) in (int, bool) for n in extents):
            _refuse(grid, "a grid is one to three whole numbers")
        options = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                _refuse(call)
            options[keyword.arg] = self.value(keyword.value)
        return Launched(kernel, extents, tuple(map(self.value, call.args)), options)

    def sequence(self, node: ast.expr) -> Sequence[Any]:
        match node:
            case ast.Tuple(elements) | ast.List(elements):
                return [self.value(element) for element in elements]
            case ast.Call(ast.Name("range"), arguments, []):
                return range(*map(self.number, arguments))
            case ast.Call(ast.Name("reversed"), [inner], []):
                return self.sequence(inner)[::-1]
        _refuse(node)

    def number(self, node: ast.expr) -> int:
        found = self.value(node)
        if not isinstance(found, int):
            _refuse(node, "it is no whole number")
        return found

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(held) if held is None or isinstance(held, int | float | str):
                return held
            case ast.Name(name) if name in self.names:
                return self.names[name]
            case ast.Tuple(elements):
                return tuple(map(self.value, elements))
            case ast.List(elements):
                return [self.value(element) for element in elements]
            case ast.IfExp(test, body, orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.BoolOp(op, values):
                return self.first(values, isinstance(op, ast.Or))
            case ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return self.arithmetic(node)
            case ast.Subscript(value, index):
                return self.element(value, index)
            case ast.Attribute(ast.Name(name), "shape"):
                return tuple(self.tensor(node, name).shape)
            case ast.Call(function, arguments, []):
                return self.call(node, function, arguments)
        _refuse(node)

    def first(self, values: Sequence[ast.expr], wanted: bool) -> Any:
        """The first value whose truth is `wanted`, else the last one, as `or` and `and` return it."""
        for node in values[:-1]:
            if bool(found := self.value(node)) is wanted:
                return found
        return self.value(values[-1])

    def arithmetic(self, node: ast.expr) -> Any:
        match node:
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                return self.computed(node, _BINARY[type(op)], left, right)
            case ast.BinOp(left, op, right) if type(op) in _POWERS:
                base, count = self.number(left), self.number(right)
                bits = max(base.bit_length(), 1) * max(count, 1)
                if not 0 <= count or (not isinstance(op, ast.RShift) and bits > _MOST_BITS):
                    _refuse(node, "the number is too large")
                return _POWERS[type(op)](base, count)
            case ast.UnaryOp(op, operand) if type(op) in _UNARY:
                return self.computed(node, _UNARY[type(op)], operand)
            case ast.Compare(left, operators, others):
                before = self.value(left)
                for comparison, other in zip(operators, others, strict=True):
                    kind, after = type(comparison), self.value(other)
                    same = kind in (ast.Is, ast.IsNot)  # the identity of equal numbers is undefined
                    if kind not in _COMPARED or (same and not (before is None or after is None)):
                        _refuse(node)
                    if not _COMPARED[kind](before, after):
                        return False
                    before = after
                return True
        _refuse(node)

    def computed(self, node: ast.expr, what: Callable[..., Any], *operands: ast.expr) -> Any:
        values = [self.value(operand) for operand in operands]
        if not all(isinstance(value, int | float) for value in values):
            _refuse(node, "it is no number")
        return what(*values)

    def element(self, value: ast.expr, index: ast.expr) -> Any:
        of = self.value(value)
        if not isinstance(of, tuple | list):
            _refuse(value)
        return of[self.number(index)]

    def tensor(self, node: ast.expr, name: str) -> Any:
        found = self.names.get(name)
        if not isinstance(found, Argument):
            _refuse(node)
        return self.tensors[found.position]

    def call(self, node: ast.Call, function: ast.expr, arguments: list[ast.expr]) -> Any:
        name = ast.unparse(function)
        if name == _DESCRIPTOR and arguments:
            first, *rest = map(self.value, arguments)
            if isinstance(first, Argument):
                return Descriptor(first.position, tuple(rest))
        elif name == f"{_DESCRIPTOR}.from_tensor" and len(arguments) == 2:
            first, box = map(self.value, arguments)
            if isinstance(first, Argument):
                tensor = self.tensors[first.position]
                return Descriptor(first.position, (tensor.shape, tensor.stride(), box))
        elif name in _FUNCTIONS:
            values = [self.value(argument) for argument in arguments]
            if not any(isinstance(value, Argument | Descriptor | str) for value in values):
                return _FUNCTIONS[name](*values)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            of = self.names.get(function.value.id)
            if isinstance(of, int) and function.attr == "bit_length" and not arguments:
                return of.bit_length()
            if function.attr in _OF_TENSORS:
                method = getattr(self.tensor(node, function.value.id), function.attr)
                return method(*map(self.number, arguments))
        _refuse(node)


def plan_of(tree: ast.Module) -> Plan | None:
    """The plan of a tree's `launch`; None where it has none."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    kernels = frozenset(node.name for node in functions if node.decorator_list)
    found = [node for node in functions if node.name == "launch" and not node.decorator_list]
    if not found:
        return None
    args = found[-1].args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults:
        _refuse(found[-1], "a launch takes tensors")
    return Plan(found[-1], kernels, _constants(tree))


def _constants(tree: ast.Module) -> dict[str, Any]:
    """The numbers and texts that names of a module are assigned."""
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found |= {t.id: node.value.value for t in node.targets if isinstance(t, ast.Name)}
    return found


def _refuse(node: ast.AST, why: str = _WHY) -> NoReturn:
    text = ast.unparse(node).splitlines()[0]
    raise BackendError(
        "build", f"line {getattr(node, 'lineno', 0)}: `{text}` is not for a launch: {why}"
    )
