"""Evaluates size expressions, and lists the sizes that a caller must give."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ir.errors import KernelError
from ir.memo import by_identity
from ir.spec import Apply, Expr, Number, Size, Spec, Tensor

_ARITHMETIC: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "minimum": min,
    "maximum": max,
    "neg": lambda a: -a,
}


def value(expr: Expr, sizes: Mapping[str, float]) -> int:
    """The value of a size expression; KeyError names a missing size.

    sizes: can contain the attributes of the spec, too.
    """
    if isinstance(expr, Number):
        return int(expr.value)
    if isinstance(expr, Size):
        # No size expression names a float attribute.
        return sizes[expr.name]  # type: ignore[return-value]
    if isinstance(expr, Apply) and expr.function in _ARITHMETIC:
        try:
            return _ARITHMETIC[expr.function](*(value(a, sizes) for a in expr.args))
        except ZeroDivisionError:
            raise KernelError(
                f"a size divides by zero for {dict(sizes)}", place=expr.place
            ) from None
    raise KernelError("a size is made of sizes and integers with + - * // %", place=expr.place)


def bind(spec: Spec, given: Mapping[str, int]) -> dict[str, int]:
    """All sizes of a spec, derived ones included, from those that the caller gives.

    Raises KernelError if a size is missing, unknown or not positive.
    """
    derived = dict(spec.derived)
    free = free_sizes(spec)
    for name, number in given.items():
        if name not in free:
            raise KernelError(f"`{spec.name}` has no free size `{name}`", allowed=", ".join(free))
        if not isinstance(number, int) or number < 1:
            raise KernelError(f"size {name}={number} is not a positive integer")
    missing = [name for name in free if name not in given]
    if missing:
        raise KernelError(
            f"`{spec.name}` needs a value for {', '.join(missing)}",
            hint=f"give all of {', '.join(free)}",
        )
    sizes = dict(given)
    for name, expr in derived.items():
        sizes[name] = value(expr, sizes)
        if sizes[name] < 1:
            raise KernelError(f"size {name} comes out as {sizes[name]} for {dict(given)}")
    return sizes


def power_of_two(count: int) -> int:
    """The least power of two that is at least `count`."""
    return 1 << (count - 1).bit_length() if count > 1 else 1


@by_identity
def free_sizes(spec: Spec) -> tuple[str, ...]:
    """The sizes that a caller gives, in order of first use."""
    derived = {name for name, _ in spec.derived}
    names = (
        node.name
        for tensor in (*spec.inputs, *spec.outputs)
        for expr in tensor.shape
        for node in expr.walk()
        if isinstance(node, Size)
    )
    inner = (n.name for _, e in spec.derived for n in e.walk() if isinstance(n, Size))
    return tuple(n for n in dict.fromkeys((*names, *inner)) if n not in derived)


def shape(tensor: Tensor, sizes: Mapping[str, float]) -> tuple[int, ...]:
    """The shape of a tensor as numbers."""
    return tuple(value(e, sizes) for e in tensor.shape)
