"""Infers the ranges of indices and the shapes of intermediates from their use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from ir.errors import KernelError, SourceRange
from ir.linear import never_negative, polynomial, same, subtracted
from ir.print import expression_text, tensor_type
from ir.spec import Equation, Expr, Index, Number, Range, Read, Reduce, Spec, Tensor

Shape = list[Expr | None]


class Ranges:
    """The inferred ranges and shapes of one spec."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self.derived = dict(spec.derived)
        self.found: dict[str, Range] = {}  # by index
        # By index whose range the signature or the text declares: the declaration. Only a read
        # through such an index may leave a part of its tensor unread.
        self.declared: dict[str, str] = {}
        # By tensor; None for an unknown dimension.
        self.shapes: dict[str, Shape] = {
            t.name: list(t.shape) for t in (*spec.inputs, *spec.outputs)
        }
        for e in spec.equations:
            self.shapes.setdefault(e.target, [None] * len(e.at))

    def infer(self) -> None:
        """Infers every range and shape. Raises KernelError if one is missing or two conflict."""
        for e in self.spec.equations:
            self._written(e)
            self._sized(e)
        for t in self.spec.outputs:
            self._signature(t)
        self._settle(padded=False)
        # The index of a padded read can run past the tensor, so padded reads count only if nothing
        # else gives a range.
        self._settle(padded=True)
        for e in self.spec.equations:
            self._check(e)

    def extent(self, index: str) -> Expr | None:
        """The size that an index runs to; None if it is jagged or unknown."""
        found = self.found.get(index)
        return None if found is None or found.jagged else found.high

    def shape(self, tensor: str) -> tuple[Expr, ...]:
        """The shape of a tensor, all of whose dimensions are inferred."""
        return tuple(cast("list[Expr]", self.shapes[tensor]))

    def _written(self, e: Equation) -> None:
        for r in e.value.ranges if isinstance(e.value, Reduce) else ():
            if r.partial:
                continue
            before = self.found.setdefault(r.index, r)
            if before.jagged or r.jagged:
                agree = before == r
            else:
                agree = same(before.high, r.high, self.derived)
            if not agree:
                raise _conflict(r.index, "another range in another equation", "this one", r.place)
            self.declared.setdefault(r.index, "the range written with it")

    def _sized(self, e: Equation) -> None:
        """Takes the sizes that are written on a left side."""
        shape = self.shapes[e.target]
        for k, size in enumerate(e.sizes):
            shape[k] = size if shape[k] is None else shape[k]
        text = f"`{e.target}[...]: [{', '.join(map(expression_text, e.sizes))}]`"
        self._ranged(zip(e.at, e.sizes, strict=False), e.target, text)

    def _signature(self, t: Tensor) -> None:
        at = self.spec.equation(t.name).at
        self._ranged(zip(at, t.shape, strict=True), t.name, f"`-> {tensor_type(t)}`")

    def _ranged(self, pairs: Iterable[tuple[Expr, Expr]], target: str, text: str) -> None:
        """Gives indices the sizes of the dimensions that they address. text: the declaration."""
        for expr, size in pairs:
            if not isinstance(expr, Index):
                continue
            known = self.extent(expr.name)
            jagged = expr.name in self.found and known is None
            if jagged or (known is not None and not same(known, size, self.derived)):
                first = self.declared[expr.name]
                raise _conflict(expr.name, first, f"{expression_text(size)} in {text}", expr.place)
            self.found.setdefault(expr.name, Range(expr.name, Number(0), size))
            self.declared.setdefault(expr.name, f"{expression_text(size)} in `{target}`")

    def _settle(self, padded: bool) -> None:
        """Propagates sizes between indices and intermediates to a fixed point."""
        before = None
        while before != (before := self._known()):
            for e in self.spec.equations:
                for tensor, at in self._uses(e, padded):
                    self._carry(tensor, at)

    def _known(self) -> int:
        return len(self.found) + sum(d is not None for s in self.shapes.values() for d in s)

    def _uses(self, e: Equation, padded: bool) -> Iterator[tuple[str, tuple[Expr, ...]]]:
        for read in constraining(e):
            if padded or read.pad is None:
                yield read.tensor, read.at
        yield e.target, e.at

    def _carry(self, tensor: str, at: tuple[Expr, ...]) -> None:
        shape = self.shapes[tensor]
        for k, expr in enumerate(at):
            if not isinstance(expr, Index):
                continue
            size = shape[k]
            if size is None:
                shape[k] = self.extent(expr.name)
            elif expr.name not in self.found:
                self.found[expr.name] = Range(expr.name, Number(0), size, place=expr.place)

    def _check(self, e: Equation) -> None:
        names = {n.name: n for x in (*e.at, e.value) for n in x.walk() if isinstance(n, Index)}
        for name, node in names.items():
            if name not in self.found:
                raise KernelError(
                    f"nothing gives the index `{name}` a range",
                    place=node.place,
                    hint=f"read a tensor at plain `{name}`, or write the range: "
                    f"`sum(..., {name}=3)`, `t[{name}]: [3] = ...`",
                )
        for read in constraining(e):
            if read.pad is None:
                for k, expr in enumerate(read.at):
                    self._agree(read, k, expr)
        for k, size in enumerate(self.shapes[e.target]):
            if size is None:
                raise KernelError(
                    f"nothing gives dimension {k} of `{e.target}` a size",
                    place=e.place,
                    hint=f"return `{e.target}`, or read it with an index that has a range",
                )
        self._left(e)

    def _left(self, e: Equation) -> None:
        for expr, size in zip(e.at, self.shape(e.target), strict=True):
            if isinstance(expr, Index):
                known = self.extent(expr.name)
                if known is None or not same(known, size, self.derived):
                    raise _conflict(
                        expr.name,
                        "jagged" if known is None else expression_text(known),
                        f"{expression_text(size)} in `{e.target}`",
                        expr.place,
                    )

    def _agree(self, read: Read, k: int, expr: Expr) -> None:
        if not isinstance(expr, Index):
            return
        known = self.extent(expr.name)
        size = self.shapes[read.tensor][k]
        if known is None or size is None or same(known, size, self.derived):
            return
        rest = subtracted(polynomial(size, self.derived), polynomial(known, self.derived))
        # A declared range can be shorter than the tensor.
        if expr.name in self.declared and never_negative(rest):
            return
        raise _conflict(
            expr.name,
            expression_text(known),
            f"{expression_text(size)} of `{read.tensor}`",
            expr.place,
        )


def constraining(e: Equation) -> list[Read]:
    """The reads whose plain positions give ranges: all but the bounds of jagged ranges."""
    ranges = e.value.ranges if isinstance(e.value, Reduce) else ()
    bounds = [id(n) for r in ranges for n in r.walk() if isinstance(n, Read)]
    nodes = (n for x in (*e.at, e.value) for n in x.walk())
    return [n for n in nodes if isinstance(n, Read) and id(n) not in bounds]


def _conflict(index: str, first: str, second: str, place: SourceRange | None) -> KernelError:
    return KernelError(
        f"the index `{index}` has two ranges: {first}, and {second}",
        place=place,
        allowed="one range for an index through the whole spec",
        hint="use another index for the other axis",
    )
