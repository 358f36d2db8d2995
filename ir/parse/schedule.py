"""Parses schedules: a first line with the kernel's name, then one decision a line."""

from __future__ import annotations

import ast
import math
from typing import Any

from ir.schedule import Argument, Decision, Schedule
from ir.source import Source

_FORM = "`tile(m, size=128)`, `load(x, at=k.outer)\npipeline(x, stages=3)`"
_VALUES = "a name, a dotted name such as `k.outer`, an integer, a decimal number"


def parse_schedule(text: str, where: str = "") -> Schedule:
    """The schedule of a text; its verbs are not looked up yet. Raises KernelError at a fault."""
    source = Source(text, where)
    lines = source.tree()
    kernel = _kernel(source, lines[0] if lines else None)
    return Schedule(kernel, tuple(_decision(source, line) for line in lines[1:]))


def _kernel(source: Source, line: ast.stmt | None) -> str:
    call = line.value if isinstance(line, ast.Expr) else None
    if (
        not isinstance(call, ast.Call)
        or getattr(call.func, "id", "") != "schedule"
        or call.keywords
        or len(call.args) != 1
        or not isinstance(call.args[0], ast.Name)
    ):
        raise source.fault(
            line,
            "a schedule starts with the name of its kernel",
            allowed="`schedule(name)`",
            hint="name the spec of the kernel in the first line",
        )
    return _name(source, call.args[0])


def _decision(source: Source, line: ast.stmt) -> Decision:
    call = line.value if isinstance(line, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise source.fault(
            line,
            f"`{source.written(line)}` is no decision",
            allowed=_FORM,
            hint="write one call a line: the verb, what it is about, then named arguments",
        )
    verb = _name(source, call.func)
    if len(call.args) != 1:
        second = call.args[1] if call.args else call
        raise source.fault(
            second,
            f"`{verb}` is given {len(call.args)} arguments without a name",
            allowed=f"one, then named ones: {_FORM}",
            hint="name the arguments after the first: `flatten(p, inner=q)`",
        )
    subject = _value(source, call.args[0])
    if not isinstance(subject, str):
        raise source.fault(
            call.args[0],
            f"`{verb}` is about `{subject}`",
            allowed="the name of an index or a tensor",
            hint=f"put the name first: {_FORM}",
        )
    return Decision(verb, subject, _options(source, call), place=source.place(call))


def _options(source: Source, call: ast.Call) -> tuple[tuple[str, Argument], ...]:
    options: dict[str, Argument] = {}
    for keyword in call.keywords:
        name = keyword.arg
        if name is None or name in options or not name.isascii():
            raise source.fault(
                keyword,
                f"`{source.written(keyword)}` is no argument of a decision",
                allowed="each name once, as `size=128`",
                hint="remove it",
            )
        options[name] = _value(source, keyword.value)
    return tuple(options.items())


def _value(source: Source, node: ast.expr) -> Argument:
    sign = 1
    inner = node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, inner = -1, node.operand
    if isinstance(inner, ast.Constant):
        found: Any = inner.value
        if type(found) in (int, float) and _printable(found):
            return sign * found
    return _name(source, node)


def _name(source: Source, node: ast.expr) -> str:
    name = _dotted(node)
    if name is None:
        raise source.fault(
            node,
            f"`{source.written(node)}` is no value",
            allowed=_VALUES,
            hint="write the name or the number itself; names have no quotes",
        )
    return name


def _printable(number: float | int) -> bool:
    """Whether a number's text parses back to the same number."""
    return math.isfinite(number) if isinstance(number, float) else number < 2**63


def _dotted(node: ast.expr) -> str | None:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    name = ".".join([node.id, *reversed(parts)])
    return name if name.isascii() else None
