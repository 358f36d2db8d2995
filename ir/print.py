"""Prints specs, workloads and expressions as canonical text, which parses to the same value."""

from __future__ import annotations

from collections.abc import Iterable

from ir.functions import POINTWISE, SCANS
from ir.spec import (
    Apply,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Index,
    Number,
    Range,
    Read,
    Reduce,
    Scan,
    Size,
    Spec,
    Tensor,
)
from ir.workload import Sizes, Workload

_COMPARE, _UNARY, _POWER, _ATOM = 1, 8, 9, 10
_BINDS = {
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), _COMPARE),
    "or": 2,
    "xor": 3,
    "and": 4,
    **dict.fromkeys(("shl", "shr"), 5),
    **dict.fromkeys(("add", "sub"), 6),
    **dict.fromkeys(("mul", "div", "floordiv", "mod"), 7),
    **dict.fromkeys(("neg", "not"), _UNARY),
    "pow": _POWER,
}
_SCAN_NAMES = {reduction: name for name, reduction in SCANS.items()}


def spec_text(spec: Spec) -> str:
    """The spec as one `def`, ending in a newline."""
    arguments = [f"    {t.name}: {tensor_type(t)},\n" for t in spec.inputs]
    arguments += [f"    {name}={number_text(v)},\n" for name, v in spec.attributes]
    arguments += [f"    {name}={expression_text(e)},\n" for name, e in spec.derived]
    inputs = "\n" + "".join(arguments) if arguments else ""
    outputs = ", ".join(map(tensor_type, spec.outputs))
    if len(spec.outputs) > 1:
        outputs = f"({outputs})"
    body = "".join(f"    {_range_text(t)}\n" for t in spec.inputs if t.range)
    body += "".join(f"    {equation_text(e)}\n" for e in spec.equations)
    returned = ", ".join(t.name for t in spec.outputs)
    return (
        f"def {spec.name}({inputs}) -> {outputs}:\n"
        f'    """{_escaped(spec.doc)}"""\n{body}    return {returned}\n'
    )


def signature(spec: Spec) -> str:
    """`name(x: f32[M, K]) -> f32[M]` on one line: inputs, attributes, outputs."""
    given = [f"{t.name}: {tensor_type(t)}" for t in spec.inputs]
    given += [f"{name}={number_text(v)}" for name, v in spec.attributes]
    outputs = ", ".join(map(tensor_type, spec.outputs))
    results = f"({outputs})" if len(spec.outputs) > 1 else outputs
    return f"{spec.name}({', '.join(given)}) -> {results}"


def workload_text(workload: Workload) -> str:
    """The spec, then its `tune` and `check` lines, as in a `.kir` file."""
    lines = [_sizes("tune", workload.tune)] if workload.tune is not None else []
    lines += [_sizes("check", sizes) for sizes in workload.checks]
    return spec_text(workload.spec) + ("\n" + "".join(lines) if lines else "")


def tensor_type(tensor: Tensor) -> str:
    """A tensor's type: `f32[M, K]`, `f32[M, part(16, first=0, of=48)]`."""
    return f"{tensor.dtype}[{_dimensions(tensor)}]"


def _dimensions(tensor: Tensor) -> str:
    if tensor.part is None:
        return _positions(tensor.shape)
    axis, first, whole = tensor.part.axis, tensor.part.first, tensor.part.whole
    sizes = list(map(expression_text, tensor.shape))
    sizes[axis] = f"part({sizes[axis]}, first={first}, of={whole})"
    return ", ".join(sizes)


def _range_text(tensor: Tensor) -> str:
    low, high = map(expression_text, tensor.range)
    return f"range({tensor.name}, {low}, {high})"


def equation_text(equation: Equation) -> str:
    """`t[i, j] = value` on one line."""
    sign = "+=" if equation.accumulate else "="
    if equation.sizes:
        sign = f": [{', '.join(map(expression_text, equation.sizes))}] ="
    left = f"{equation.target}[{_positions(equation.at)}]"
    space = "" if equation.sizes else " "
    return f"{left}{space}{sign} {expression_text(equation.value)}"


def expression_text(expr: Expr) -> str:
    """The expression with as few parentheses as its meaning allows."""
    return _text(expr)[0]


def number_text(value: float | int | bool) -> str:
    """A constant as text that the parser reads back."""
    return repr(value)


def _text(expr: Expr) -> tuple[str, int]:
    """The text of an expression, and the precedence of its outermost operator."""
    match expr:
        case Number(value):
            text = number_text(value)
            return text, _UNARY if text.startswith("-") else _ATOM
        case Size(name) | Index(name):
            return name, _ATOM
        case Read(tensor, at, pad):
            text = f"{tensor}[{_positions(at)}]"
            return (text if pad is None else f"pad({text}, {number_text(pad)})"), _ATOM
        case Cast(dtype, value):
            return f"{dtype}({expression_text(value)})", _ATOM
        case Bucketize(value, borders):
            return f"bucketize({expression_text(value)}, {borders})", _ATOM
        case Reduce():
            return _reduce(expr), _ATOM
        case Scan():
            return _scan(expr), _ATOM
        case Apply():
            return _apply(expr)
    raise AssertionError(f"no text for {type(expr).__name__}")


def _apply(expr: Apply) -> tuple[str, int]:
    name = expr.function
    if name not in _BINDS:
        return f"{name}({_list(expr.args)})", _ATOM
    operator, binds = POINTWISE[name].operator, _BINDS[name]
    if binds == _UNARY:
        return operator + _inside(expr.args[0], _UNARY), binds
    left, right = expr.args
    if binds == _POWER:  # right-associative, and a sign may follow it
        return f"{_inside(left, _ATOM)} ** {_inside(right, _UNARY)}", binds
    least = binds + 1 if binds == _COMPARE else binds  # comparisons do not chain
    return f"{_inside(left, least)} {operator} {_inside(right, binds + 1)}", binds


def _inside(expr: Expr, least: int) -> str:
    text, binds = _text(expr)
    return text if binds >= least else f"({text})"


def _reduce(expr: Reduce) -> str:
    ranged = {r.index: r for r in expr.ranges}
    plain = [i for i in expr.over if i not in ranged]
    written = [f"{i}={_range(ranged[i])}" for i in expr.over if i in ranged]
    return f"{expr.reduction}({', '.join((expression_text(expr.body), *plain, *written))})"


def _range(expr: Range) -> str:
    if expr.jagged or expr.partial:
        return f"range({expression_text(expr.low)}, {expression_text(expr.high)})"
    return expression_text(expr.high)


def _scan(expr: Scan) -> str:
    flags = [f"{name}=True" for name in ("reverse", "exclusive") if getattr(expr, name)]
    arguments = (expression_text(expr.body), expr.along, *flags)
    return f"{_SCAN_NAMES[expr.reduction]}({', '.join(arguments)})"


def _positions(at: Iterable[Expr]) -> str:
    return _list(at) or "()"


def _list(exprs: Iterable[Expr]) -> str:
    return ", ".join(map(expression_text, exprs))


def _sizes(verb: str, sizes: Sizes) -> str:
    return f"{verb}({', '.join(f'{name}={number}' for name, number in sizes.items())})\n"


def _escaped(doc: str) -> str:
    """A docstring escaped so that it reads back from between triple quotes."""
    text = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )
