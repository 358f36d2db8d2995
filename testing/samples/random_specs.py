"""Hypothesis strategies for tests: random valid specs, and sizes for them."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from ir.dtypes import Dtypes, strong
from ir.errors import KernelError
from ir.functions import POINTWISE
from ir.sizes import free_sizes
from ir.spec import (
    Apply,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Index,
    Number,
    Read,
    Reduce,
    Scan,
    Size,
    Spec,
    Tensor,
)
from ir.verify import facts

EXTENTS = {"m": Size("M"), "j": Size("M"), "n": Size("N"), "k": Size("K"), "i": Number(3)}
_SAFE = ("add", "sub", "mul", "minimum", "maximum")  # keep moderate values moderate
_ONE = (
    *("neg", "abs", "relu", "square", "tanh", "sigmoid", "erf", "silu", "gelu", "sin", "floor"),
    *("round", "trunc", "sign", "erfc", "atan", "asinh", "cos"),
)
_BY_THREE = ("floordiv", "mod", "fmod", "shr")  # whose second operand is 3
_BITS = ("and", "or", "xor")
_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
_NUMBERS = st.sampled_from([0.5, -1.0, 2.0, 1e-06, 1.5e10]).map(Number)
_WHOLE = st.integers(0, 3).map(Number)
_INPUTS = {"x": "f32 f16 bf16", "w": "f32 f64", "idx": "i32 i64 i16 u8", "b": "f32"}


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """A valid spec of up to four equations over floats, integers and truth values."""
    maker = _Maker(draw)
    for _ in range(draw(st.integers(1, 4))):
        maker.equation()
    spec = maker.spec()
    try:
        facts(spec)
    except KernelError:
        assume(False)
    return spec


@st.composite
def sizes_for(draw: st.DrawFn, spec: Spec) -> dict[str, int]:
    """Small sizes for a spec."""
    return {name: draw(st.integers(1, 6)) for name in free_sizes(spec)}


class _Maker:
    """Grows a spec equation by equation; `tensors` holds each one's indices."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.tensors: dict[str, tuple[str, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self.equations: list[Equation] = []
        for name, kinds in _INPUTS.items():
            rank = 1 if name == "b" else draw(st.integers(1, 3))
            order = draw(st.permutations(list(EXTENTS)))
            self.tensors[name] = tuple(order[:rank])
            self.dtypes[name] = draw(st.sampled_from(kinds.split()))
        self.inputs = tuple(self.tensors)

    def equation(self) -> None:
        kind = self.draw(st.sampled_from(("value", "value", "reduction", "scan", "truth", "whole")))
        make = {"truth": self._truth, "whole": self._whole}.get(kind, self._real)
        value = make(self.draw(st.integers(1, 3)))
        free = list(dict.fromkeys(n.name for n in value.walk() if isinstance(n, Index)))
        free = self.draw(st.permutations(free))
        if kind == "reduction" and free:
            over = tuple(free[: self.draw(st.integers(1, len(free)))])
            reduction = self.draw(st.sampled_from(("sum", "max", "min", "argmax", "argmin")))
            value, free = Reduce(reduction, value, over), free[len(over) :]
        elif kind == "scan" and free:
            flags: Any = {f: self.draw(st.booleans()) for f in ("reverse", "exclusive")}
            value = Scan(self.draw(st.sampled_from(("sum", "max"))), value, free[0], **flags)
        name = f"t{len(self.equations)}"
        self.equations.append(Equation(name, tuple(map(Index, free)), value))
        self.tensors[name] = tuple(free)
        self.dtypes[name] = strong(Dtypes(self.dtypes, {}).of(value))

    def spec(self) -> Spec:
        """The spec that returns whatever nothing reads."""
        read = {name for e in self.equations for name in e.sources()}
        inputs = tuple(self._tensor(n) for n in self.inputs if n in read)
        outputs = tuple(self._tensor(e.target) for e in self.equations if e.target not in read)
        doc = " ".join(self.draw(st.text(max_size=8)).split())
        return Spec("generated", doc, inputs, outputs, tuple(self.equations))

    def _tensor(self, name: str) -> Tensor:
        return Tensor(name, self.dtypes[name], tuple(EXTENTS[i] for i in self.tensors[name]))

    def _real(self, depth: int) -> Expr:
        if depth == 0:
            return self.draw(_NUMBERS) if self.draw(st.booleans()) else self._float_read()
        kinds = ("two", "two", "one", "where", "cast", "leaf", "div", "uniform")
        kind = self.draw(st.sampled_from(kinds))
        inner = depth - 1
        if kind == "uniform":
            return Apply("uniform", (self._whole(0), self._whole(inner)))
        if kind == "two":
            return Apply(self.draw(st.sampled_from(_SAFE)), (self._real(inner), self._real(inner)))
        if kind == "one":
            return _negative(self.draw(st.sampled_from(_ONE)), self._real(inner))
        if kind == "where":
            return Apply("where", (self._truth(inner), self._real(inner), self._real(inner)))
        if kind == "cast":
            return Cast(self.draw(st.sampled_from(("f32", "f64"))), self._whole(inner))
        if kind == "div":
            return Apply("div", (self._real(inner), Apply("add", (Size("M"), Number(1)))))
        return self._float_read()

    def _truth(self, depth: int) -> Expr:
        kind = self.draw(st.sampled_from(("compare", "compare", *_BITS, "not", "isfinite")))
        if kind == "isfinite":
            return Apply(kind, (self._float_read(),))
        if depth == 0 or kind == "compare":
            make = self._whole if depth == 0 else self._real
            pair = (make(0), make(0))
            return Apply(self.draw(st.sampled_from(_COMPARE)), pair)
        arity = POINTWISE[kind].arity
        return Apply(kind, tuple(self._truth(depth - 1) for _ in range(arity)))

    def _whole(self, depth: int) -> Expr:
        kind = self.draw(st.sampled_from(("read", "number", "bucketize", "two")))
        if kind == "bucketize":
            return Bucketize(self._float_read(), "b")
        if kind == "two" and depth > 0:
            functions = (*_SAFE, *_BITS, "floordiv", "mod", "fmod", "shr")
            function = self.draw(st.sampled_from(functions))
            other = Number(3) if function in _BY_THREE else self._whole(depth - 1)
            return Apply(function, (self._whole(depth - 1), other))
        return self.draw(_WHOLE) if kind == "number" else self._read("idx")

    def _float_read(self) -> Expr:
        floats = [n for n, d in self.dtypes.items() if d.startswith(("f", "bf"))]
        name = self.draw(st.sampled_from(floats))
        read = self._read(name)
        if read.at and name != "idx" and self.draw(st.integers(0, 4)) == 0:
            return self._moved(read)
        return read

    def _read(self, name: str) -> Read:
        return Read(name, tuple(Index(i) for i in self.tensors[name]))

    def _moved(self, read: Read) -> Read:
        """The read at a shifted position, padded, or through an index tensor."""
        first, *rest = read.at
        if self.draw(st.booleans()):
            return Read(read.tensor, (self._read("idx"), *rest))
        step = Number(self.draw(st.integers(1, 2)))
        shift = self.draw(st.sampled_from(("add", "sub")))
        position = Apply(shift, (Apply("mul", (step, first)), Number(1)))
        return Read(read.tensor, (position, *rest), self.draw(st.sampled_from((0.0, 1.5))))


def _negative(function: str, value: Expr) -> Expr:
    """The function of the value; a negated number is the negative number, as the parser reads."""
    if function == "neg" and isinstance(value, Number) and value.value >= 0:
        return Number(-value.value)
    return Apply(function, (value,))
