"""Texts of small kernels for cases: heads from inputs and outputs, and lines of check sizes."""

from __future__ import annotations

from collections.abc import Mapping

Checks = tuple[Mapping[str, int], ...]


def kernel(inputs: str, outputs: Mapping[str, tuple[str, str]], checks: Checks, *more: str) -> str:
    """A `.kir` text. outputs: of each, its type and its equation's left and right side.

    more: equations before them, for tensors in between.
    """
    types = ", ".join(t for t, _ in outputs.values())
    made = f"({types})" if len(outputs) > 1 else types
    lines = [*more, *(equation for _, equation in outputs.values())]
    body = "".join(f"    {line}\n" for line in lines)
    head = f'def f({inputs}) -> {made}:\n    """A case."""\n'
    return f"{head}{body}    return {', '.join(outputs)}\n{check_lines(checks)}"


def check_lines(checks: Checks) -> str:
    """The lines that name check sizes."""
    return "".join(
        f"\ncheck({', '.join(f'{name}={size}' for name, size in sizes.items())})"
        for sizes in checks
    ).rstrip() + ("\n" if checks else "")


def equations(texts: Mapping[str, str], dtype: str, axes: str, shape: str) -> dict:
    """Outputs of one type: by name the right sides of equations over the same axes."""
    return {n: (f"{dtype}[{shape}]", f"{n}[{axes}] = {text}") for n, text in texts.items()}
