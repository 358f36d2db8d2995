"""The table of ATen operators: which rule makes the equations of which operator.

A rule is a function `rule(b, out, **arguments)`: b, the builder; out, a `Meta` for each result as
PyTorch computes it (a single one where the operator has one result); then the arguments by the
names of the operator's schema, tensors as `Value`, sizes as int or expression. It returns a
`Value` for each result. The files beside this one hold the rules, grouped by sort.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from ir.errors import KernelError

Rule = Callable[..., Any]
# Modules beside this one that hold no rules; all others do.
_NO_RULES = ("apply", "against", "arguments", "table")

_RULES: dict[str, Rule] = {}


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Registers a function as the rule of operators, named with or without an overload: `add` is
    for all overloads that are not named themselves, `add.Scalar` for one. An operator of another
    library has its namespace before it, `project::product`; the library need not be there."""

    def registered(function: Rule) -> Rule:
        for name in operators:
            if name in _RULES:
                raise AssertionError(f"`{name}` has two rules")
            _RULES[name] = function
        return function

    return registered


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by the operator's name."""
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name not in _NO_RULES and not module.name.endswith("_test"):
            import_module(f"{__package__}.{module.name}")
    return _RULES


def find(operator: str) -> Rule | None:
    """The rule of `add.Tensor`, or None."""
    table = rules()
    return table.get(operator) or table.get(operator.partition(".")[0])


def require(operator: str, where: str = "") -> Rule:
    """The rule of an operator; KernelError where there is none."""
    found = find(operator)
    if found is None:
        raise KernelError(
            f"the operator `aten.{operator}` has no equations" + (f" ({where})" if where else ""),
            hint=f"a rule in frontends/aten/, or --allow-torch {operator.partition('.')[0]}",
        )
    return found
