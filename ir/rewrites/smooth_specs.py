"""Hypothesis strategies for tests of rewrites: specs whose values hardly change with rounding.

All their functions are continuous. So the values of two specs that are equal in real arithmetic
differ only by the rounding of float64.
"""

from __future__ import annotations

import re

from hypothesis import strategies as st

from ir.rewrites.small_specs import spec_of
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Size, Spec, Tensor

INPUTS = {"x": ("m", "k"), "z": ("m", "k"), "c": ("m",), "g": ("k",), "b": ("n",)}
EXTENTS = {"m": Size("M"), "k": Size("K"), "n": Size("N")}
_SHAPES = (("m", "k"), ("m",), ("k",), ("m", "n"), ("k", "n"))
_ONE = ("square", "tanh", "sigmoid", "silu", "exp", "log", "reciprocal", "root", "power", "relu")


# Equations to which a rewrite applies; F, G over m and k, C over m are placeholders for
# expressions.
THEMES = (
    "e[m, k] = exp(tanh(F)); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m]",
    "e[m, k] = exp(tanh(F)); s[m] = sum(e[m, k] * G, k); t[m] = sum(e[m, k], k); "
    "y[m] = s[m] / t[m]",
    "v[m, k] = 9.0 * tanh(F); mx[m] = max(v[m, k], k); s[m] = sum(exp(v[m, k] - mx[m]), k); "
    "y[m, k] = exp(v[m, k] - mx[m]) * G / s[m]",
    "v[m, k] = tanh(F); s[m] = sum(exp(v[m, k]), k); y[m, k] = log(exp(v[m, k]) / s[m])",
    "s[m] = sum(F, k); mean[m] = s[m] / K; y[m] = sum((F - mean[m]) ** 2, k)",
    "y[m] = sum(square(F - C), k)",
    "t[k, j] = sum(x[i, k] * z[i, j], i); y[m, j] = sum(x[m, k] * G * t[k, j], k)",
    "t[m, k] = sum(F * u[m, k, j], j); y[m] = sum(t[m, k], k)",
    "y[m] = sum(F * u[m, k, j] * C, k, j)",
    "t[m] = sum(F, k); y[m] = t[m] * C",
    "t[m] = sum(F, k); y[m] = t[m] / (1.5 + C ** 2)",
    "s[m] = sum(F, k); t[m] = sum(G, k); y[m] = s[m] - t[m]",
    "s[m] = sum(F, k); t[n] = sum(x[n, i], i); y[m] = s[m] * t[m]",
    "s[m] = sum(x[m, k], k); t[n] = sum(x[n, i], i); y[m] = s[m] * t[m] + C",
    "y[m, k] = F / (1.0 + exp(-F)) + maximum(G, 0.0)",
    "y[m] = max(F / exp(C) - C, k)",
    "y[m] = min(F * sigmoid(C), k)",
)
_F = ("x[m, k]", "x[m, k] * g[k]", "(x[m, k] + z[m, k])", "(c[m] - z[m, k])", "silu(z[m, k])")
_C = ("c[m]", "tanh(c[m])", "(c[m] + 0.5)", "c[m] ** 2")


@st.composite
def themed_specs(draw: st.DrawFn) -> Spec:
    """A spec of one of the themes."""
    text = draw(st.sampled_from(THEMES))
    text = text.replace("F", draw(st.sampled_from(_F))).replace("G", draw(st.sampled_from(_F)))
    text = text.replace("C", draw(st.sampled_from(_C)))
    inputs = ((name, at) for name, at in _SIGNATURE.items() if re.search(rf"\b{name}\[", text))
    signature = ", ".join(f"{name}: f32[{at}]" for name, at in inputs)
    last = text.rsplit("; ", 1)[-1].split("]")[0].removeprefix("y[")
    result = ", ".join({"m": "M", "k": "K", "j": "K"}[i] for i in last.split(", "))
    return spec_of(text, signature, f"f32[{result}]")


_SIGNATURE = {"x": "M, K", "z": "M, K", "c": "M", "g": "K", "u": "M, K, 3"}


@st.composite
def smooth_specs(draw: st.DrawFn) -> Spec:
    """A valid spec of two to six equations over floats; it returns the tensors that none reads."""
    maker = _Maker(draw)
    for number in range(draw(st.integers(2, 6))):
        maker.equation(f"t{number}")
    read = {name for e in maker.equations for name in e.sources()}
    inputs = tuple(_tensor(n, at) for n, at in INPUTS.items() if n in read)
    last = [e for e in maker.equations if e.target not in read]
    outputs = tuple(_tensor(e.target, e.indices) for e in last)
    return Spec("generated", "", inputs, outputs, tuple(maker.equations))


def _tensor(name: str, at: tuple[str, ...]) -> Tensor:
    return Tensor(name, "f32", tuple(EXTENTS[i] for i in at))


class _Maker:
    """Builds a spec; `tensors` maps names to indices."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.tensors: dict[str, tuple[str, ...]] = dict(INPUTS)
        self.equations: list[Equation] = []

    def equation(self, name: str) -> None:
        at = self.draw(st.sampled_from(_SHAPES))
        rest = tuple(i for i in EXTENTS if i not in at)
        over: tuple[str, ...] = ()
        if self.draw(st.booleans()):
            over = self.draw(st.sampled_from([(i,) for i in rest] + [rest]))
        inside = (*at, *over)
        depth = self.draw(st.integers(1, 3))
        value: Expr = self._expression(inside, depth)
        for index in inside:  # all of them, so that each has its range
            if not any(n == Index(index) for n in value.walk()):
                value = Apply(self._choice("add", "mul"), (value, self._leaf((index,))))
        if over:
            value = Reduce(self._choice("sum", "sum", "max"), value, over)
        self.equations.append(Equation(name, tuple(map(Index, at)), value))
        self.tensors[name] = at

    def _choice(self, *words: str) -> str:
        return self.draw(st.sampled_from(words))

    def _leaf(self, names: tuple[str, ...]) -> Expr:
        fitting = [t for t, at in self.tensors.items() if set(at) <= set(names)]
        if len(names) == 1:
            fitting = [t for t in fitting if self.tensors[t] == names] or fitting
        tensor = self.draw(st.sampled_from(fitting))
        return Read(tensor, tuple(map(Index, self.tensors[tensor])))

    def _expression(self, names: tuple[str, ...], depth: int) -> Expr:
        if depth == 0:
            number = Number(self.draw(st.sampled_from((0.5, 2.0, -1.5, 4.0))))
            return number if self.draw(st.integers(0, 5)) == 0 else self._leaf(names)
        one = self._expression(names, depth - 1)
        kind = self._choice("two", "two", "two", "one", "one", "alike", "deviation")
        if kind == "one":
            return _of_one(self._choice(*_ONE), one)
        two = self._expression(names, depth - 1)
        if kind == "alike":
            three = self._leaf(names)
            sides = tuple(Apply("mul", (side, three)) for side in (one, two))
            return Apply(self._choice("add", "sub"), sides)
        if kind == "deviation":
            return Apply("pow", (Apply("sub", (one, two)), Number(2)))
        function = self._choice("add", "sub", "mul", "div", "exponentials")
        if function == "div":
            return Apply("div", (one, _of_one("above", two)))
        if function == "exponentials":
            return Apply(self._choice("mul", "div"), (_of_one("exp", one), _of_one("exp", two)))
        return Apply(function, (one, two))


def _of_one(function: str, x: Expr) -> Expr:
    """A function that keeps moderate values moderate."""
    above = Apply("add", (Number(1.5), Apply("square", (Apply("tanh", (x,)),))))
    match function:
        case "exp":
            return Apply("exp", (Apply("tanh", (x,)),))
        case "above":
            return above
        case "log":
            return Apply("log", (Apply("mul", (Apply("exp", (Apply("tanh", (x,)),)), above)),))
        case "reciprocal":
            return Apply("div", (Number(1.0), Apply("sqrt", (above,))))
        case "root":
            return Apply("pow", (above, Number(0.5)))
        case "power":
            return Apply("pow", (Apply("tanh", (x,)), Number(3)))
    return Apply(function, (x,))
