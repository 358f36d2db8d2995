"""Parses specs and workloads: Python's syntax, never executed."""

from __future__ import annotations

import ast
from dataclasses import replace
from math import isfinite
from typing import cast

from ir.dtypes import is_bool, is_float
from ir.errors import KernelError
from ir.parse.expression import is_name, is_size
from ir.parse.reduction import RightSides
from ir.parse.schedule import parse_schedule as parse_schedule
from ir.sizes import bind
from ir.source import Source, near
from ir.spec import DTYPES, Equation, Expr, Index, Number, Part, Spec, Tensor
from ir.verify import facts
from ir.workload import Workload

_ARGUMENT = "`x: f32[M, K]` (a tensor), `eps=1e-06` (an attribute), `P=H // 2` (a derived size)"


def parse_spec(text: str, where: str = "") -> Spec:
    """The verified spec of a text with one `def`. Raises KernelError at the first fault."""
    source = Source(text, where)
    tree = source.tree()
    first, rest = (tree[0], tree[1:]) if tree else (None, [])
    spec = _spec(source, first)
    if rest:
        raise source.fault(
            rest[0],
            "a spec ends with its `return`",
            allowed="one `def`",
            hint="`tune(...)` and `check(...)` lines belong in a .kir file",
        )
    return spec


def parse_workload(text: str, where: str = "") -> Workload:
    """Parses a `.kir` file: one `def`, then `tune(M=...)` and `check(M=...)` lines."""
    source = Source(text, where)
    tree = source.tree()
    first, rest = (tree[0], tree[1:]) if tree else (None, [])
    spec = _spec(source, first)
    tune, checks = None, []
    for line in rest:
        verb, sizes = _sizes(source, line, spec)
        if verb == "check":
            checks.append(sizes)
        elif tune is None:
            tune = sizes
        else:
            raise source.fault(
                line, "`tune` is given twice", allowed="one `tune` line", hint="remove one of them"
            )
    return Workload(spec, tune, tuple(checks))


def _spec(source: Source, node: ast.stmt | None) -> Spec:
    if not isinstance(node, ast.FunctionDef):
        raise source.fault(
            node,
            "a spec is one `def`",
            allowed="`def name(x: f32[M, K]) -> f32[M]:`",
            hint="start with `def`; write no imports and no other statements",
        )
    if node.decorator_list:
        raise source.fault(
            node.decorator_list[0], "a spec has no decorators", hint="remove the line"
        )
    if not is_name(node.name):
        raise source.fault(
            node,
            f"`{node.name}` cannot name a kernel",
            allowed="lower-case letters, digits and _",
            hint="write the name in lower case",
        )
    spec = _Reader(source, node).spec()
    try:
        facts(spec)
    except KernelError as e:
        raise e.within(source.where) from None
    return spec


def _range_call(line: ast.stmt) -> ast.Call | None:
    """The call of a line `range(...)`; None for other lines."""
    return _call_of(line.value, "range") if isinstance(line, ast.Expr) else None


def _call_of(node: ast.expr, name: str) -> ast.Call | None:
    """The node if it is a call of the named function, else None."""
    found = isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    return cast(ast.Call, node) if found else None


class _Reader:
    """Parses one `def`."""

    def __init__(self, source: Source, node: ast.FunctionDef):
        self.source = source
        self.node = node
        self.expressions = RightSides(source)

    def spec(self) -> Spec:
        """The spec, not yet verified."""
        inputs, attributes, derived = self._arguments()
        self.expressions.attributes = dict(attributes)
        self.expressions.tensors |= {t.name for t in inputs}
        doc, lines = self._docstring()
        equations, returned = [], None
        while lines and (call := _range_call(lines[0])):
            inputs = self._with_range(call, inputs)
            del lines[0]
        for line in lines:
            if returned is not None:
                raise self.source.fault(
                    line, "nothing comes after `return`", hint="move `return` to the end"
                )
            if isinstance(line, ast.Return):
                returned = line
            else:
                equations.append(self._equation(line))
        outputs = self._outputs(returned)
        return Spec(self.node.name, doc, inputs, outputs, tuple(equations), attributes, derived)

    def _arguments(self) -> tuple[tuple, tuple, tuple]:
        args = self.node.args
        odd = (*args.posonlyargs, *args.kwonlyargs, args.vararg, args.kwarg)
        for arg in odd:
            if arg is not None:
                raise self.source.fault(
                    arg, "the signature has no `*` and no `/`", allowed=_ARGUMENT, hint="remove it"
                )
        plain = len(args.args) - len(args.defaults)
        inputs, attributes, derived = [], [], []
        seen: set[str] = set()
        defaults: list[ast.expr | None] = [*([None] * plain), *args.defaults]
        for arg, default in zip(args.args, defaults, strict=True):
            if arg.arg in seen:
                raise self.source.fault(
                    arg, f"`{arg.arg}` is declared twice", hint="give one of them another name"
                )
            seen.add(arg.arg)
            if default is None:
                inputs.append(self._tensor(arg, arg.arg, arg.annotation))
            elif arg.annotation is not None:
                raise self.source.fault(
                    default, "a tensor has no default", allowed=_ARGUMENT, hint="leave out the type"
                )
            elif is_size(arg.arg):
                derived.append((arg.arg, self.expressions.size(default)))
            else:
                name = self.expressions.declare(arg, arg.arg, "an attribute")
                attributes.append((name, self._attribute(default)))
        return tuple(inputs), tuple(attributes), tuple(derived)

    def _attribute(self, node: ast.expr) -> float | int:
        value = self.expressions.number(node)
        if isinstance(value, bool):
            raise self.source.fault(
                node, f"an attribute is a number, not {value}", hint="write 0 or 1"
            )
        return value

    def _tensor(self, node: ast.AST, name: str, type_: ast.expr | None) -> Tensor:
        self.expressions.declare(node, name, "a tensor")
        if not isinstance(type_, ast.Subscript) or not isinstance(type_.value, ast.Name):
            raise self.source.fault(
                type_ or node,
                f"`{name}` needs a type",
                allowed="`f32[M, K]`, `f32[()]` for a single number",
                hint=f"write `{name}: f32[M, K]` with its dtype and sizes",
            )
        dtype = type_.value.id
        if dtype not in DTYPES:
            raise self.source.fault(
                type_.value,
                f"`{name}` has the unknown dtype `{dtype}`",
                allowed=", ".join(DTYPES),
                hint=near(dtype, DTYPES, "choose one of those allowed"),
            )
        items = type_.slice.elts if isinstance(type_.slice, ast.Tuple) else [type_.slice]
        parts = {n: call for n, item in enumerate(items) if (call := _call_of(item, "part"))}
        if len(parts) > 1:
            raise self.source.fault(
                items[list(parts)[1]],
                f"`{name}` is a part along two dimensions",
                allowed="`part(size, first=0, of=size)` along one dimension",
                hint="write the plain size in the others",
            )
        part = next((self._part(n, call) for n, call in parts.items()), None)
        sizes = (parts[n].args[0] if n in parts else item for n, item in enumerate(items))
        shape = tuple(map(self._dimension, sizes))
        return Tensor(name, dtype, shape, place=self.source.place(node), part=part)

    def _part(self, axis: int, call: ast.Call) -> Part:
        """Parses `part(64, first=128, of=512)`, written as the size along an axis."""
        given = [k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)]
        numbers = [n for n in given if type(n) is int]
        named = [k.arg for k in call.keywords] == ["first", "of"]
        if len(call.args) != 1 or not named or len(numbers) != 2:
            raise self.source.fault(
                call,
                f"`{self.source.written(call)}` is no part of a larger tensor",
                allowed="`part(64, first=128, of=512)`: the own size, where it begins, the whole size",
                hint="write all three as integers",
            )
        return Part(axis, *numbers)

    def _dimension(self, node: ast.expr) -> Expr:
        expr = self.expressions.size(node)
        if isinstance(expr, Number) and expr.value < 1:
            raise self.source.fault(
                node, f"a size is at least 1, not {expr.value}", hint="leave the dimension out"
            )
        return expr

    def _docstring(self) -> tuple[str, list[ast.stmt]]:
        first = self.node.body[0]
        value = first.value if isinstance(first, ast.Expr) else None
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            raise self.source.fault(
                first,
                "a spec starts with a docstring",
                allowed='`"""What the kernel computes."""`',
                hint="say in one line what the kernel computes",
            )
        return " ".join(value.value.split()), self.node.body[1:]

    def _with_range(self, call: ast.Call, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The inputs, with the range that a line declares for one of them."""
        numbers = {t.name: t for t in inputs if not is_bool(t.dtype)}
        first = call.args[0] if call.args else None
        if len(call.args) != 3 or call.keywords or not isinstance(first, ast.Name):
            raise self.source.fault(
                call,
                f"`{self.source.written(call)}` declares no range",
                allowed="`range(i, 0, N)`: an integer input, the least entry, one above the greatest; "
                "`range(x, -8.0, 8.0)`: a float input, the least and the greatest entry",
                hint="write it right below the docstring",
            )
        if first.id not in numbers:
            raise self.source.fault(
                first,
                f"`{first.id}` is no input with numbers",
                allowed=", ".join(numbers) or "none",
                hint=near(first.id, numbers, "ranges are of inputs that are integers or floats"),
            )
        of_floats = is_float(numbers[first.id].dtype)
        end = self._end if of_floats else self.expressions.size
        low, high = map(end, call.args[1:])
        if isinstance(low, Number) and isinstance(high, Number) and low.value >= high.value:
            greatest = "the greatest entry" if of_floats else "one above the greatest entry"
            raise self.source.fault(
                call,
                f"`{self.source.written(call)}` is empty",
                hint=f"the second number is {greatest}",
            )
        return tuple(replace(t, range=(low, high)) if t.name == first.id else t for t in inputs)

    def _end(self, node: ast.expr) -> Number:
        """An end of a range of floats: a finite number."""
        number = float(self.expressions.number(node))
        if not isfinite(number):
            raise self.source.fault(
                node,
                f"`{self.source.written(node)}` is no end of a range of floats",
                allowed="a finite number",
                hint="leave the line out where every number is allowed",
            )
        return Number(number)

    def _equation(self, node: ast.stmt) -> Equation:
        accumulate = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
        target, right, written = _parts(node)
        if (
            right is None
            or not isinstance(target, ast.Subscript)
            or not isinstance(target.value, ast.Name)
        ):
            raise self.source.fault(
                node,
                f"`{self.source.written(node)}` is no equation",
                allowed="`t[i, j] = value`, `t[i, j]: [M, 3] = value`, `t[idx[i], j] += value`, "
                "`return t`",
                hint="give the left side its indices, `t[()]` for a single number",
            )
        name = self.expressions.declare(target.value, target.value.id, "a tensor")
        at = self.expressions.positions(target.slice)
        for item, expr in zip(_items(target.slice), at, strict=True):
            if not accumulate and not isinstance(expr, Index):
                raise self.source.fault(
                    item,
                    f"`{self.source.written(item)}` stands on the left side",
                    allowed="an index; with `+=` also a computed position",
                    hint="define the tensor for every value of plain indices",
                )
        sizes = self._written_sizes(written, at) if written is not None else ()
        value = self.expressions.right_side(right)
        self.expressions.tensors.add(name)
        return Equation(name, at, value, accumulate, place=self.source.place(target), sizes=sizes)

    def _written_sizes(self, node: ast.expr, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The sizes between a left side and its `=`."""
        if not isinstance(node, ast.List) or len(node.elts) != len(at):
            raise self.source.fault(
                node,
                f"`{self.source.written(node)}` are no sizes for {len(at)} indices",
                allowed="`t[i, j]: [M, 3] = value`",
                hint="write one size for each index, between brackets",
            )
        return tuple(self._dimension(item) for item in node.elts)

    def _outputs(self, returned: ast.Return | None) -> tuple[Tensor, ...]:
        names = _items(returned.value) if returned is not None and returned.value else []
        if not names or not all(isinstance(n, ast.Name) for n in names):
            raise self.source.fault(
                returned or self.node.body[-1],
                "a spec ends with the tensors it returns",
                allowed="`return y`, `return y, z`",
                hint="name the tensors without positions",
            )
        types = _items(self.node.returns) if self.node.returns is not None else []
        if len(types) != len(names):
            raise self.source.fault(
                self.node.returns or self.node,
                f"{len(names)} tensors are returned, the signature has {len(types)} types",
                allowed="`-> f32[M]:`, `-> (f32[M], i32[M]):`",
                hint="give every returned tensor its type",
            )
        pairs = zip(names, types, strict=True)
        return tuple(self._tensor(n, cast(ast.Name, n).id, type_) for n, type_ in pairs)


def _parts(node: ast.stmt) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    """The left side, the right side and the written sizes of an equation; None if missing."""
    match node:
        case ast.Assign(targets=[target], value=value):
            return target, value, None
        case ast.AnnAssign(target=target, value=value, annotation=written):
            return target, value, written
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            return target, value, None
    return None, None, None


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _sizes(source: Source, node: ast.stmt, spec: Spec) -> tuple[str, dict[str, int]]:
    """Parses a `tune(...)` or `check(...)` line."""
    call = node.value if isinstance(node, ast.Expr) else None
    verb = getattr(getattr(call, "func", None), "id", "")
    if not isinstance(call, ast.Call) or verb not in ("tune", "check") or call.args:
        raise source.fault(
            node,
            f"`{source.written(node)}` stands after the spec",
            allowed="`tune(M=1024, K=1024)`, `check(M=7, K=33)`",
            hint="name every size and give it a value",
        )
    sizes: dict[str, int] = {}
    for keyword in call.keywords:
        value = getattr(keyword.value, "value", None)
        if keyword.arg is None or type(value) is not int or keyword.arg in sizes:
            raise source.fault(
                keyword,
                f"`{source.written(keyword)}` gives no size",
                allowed="`M=1024`: each size once, as an integer",
                hint="write the number itself",
            )
        sizes[keyword.arg] = value
    try:
        bind(spec, sizes)
    except KernelError as e:
        hint = e.hint or "give every free size of the spec a positive integer"
        raise source.fault(node, e.what, allowed=e.allowed, hint=hint) from None
    return verb, sizes
