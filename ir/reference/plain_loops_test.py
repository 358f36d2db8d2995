"""The reference agrees with a plain scalar interpreter on random specs."""

import itertools
import math
import operator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.sizes import bind, value
from ir.spec import Apply, Bucketize, Cast, Index, Number, Read, Reduce, Scan, Size
from ir.verify import facts
from testing.samples.random_specs import sizes_for, specs


def uniform(seed, counter):
    """The upper bits of the first word of a block of Philox4x32-10."""
    c = [counter & 0xFFFFFFFF, counter >> 32 & 0xFFFFFFFF, 0, 0]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            second >> 32 ^ c[1] ^ key[0],
            second & 0xFFFFFFFF,
            first >> 32 ^ c[3] ^ key[1],
            first & 0xFFFFFFFF,
        ]
        key = [(k + w) & 0xFFFFFFFF for k, w in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)]
    return (c[0] >> 8) / 2**24


PLAIN = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: a / b if b else math.inf,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda a, b: int(a) & int(b),
    "or": lambda a, b: int(a) | int(b),
    "xor": lambda a, b: int(a) ^ int(b),
    "shr": lambda a, b: int(a) >> int(b),
    "not": operator.not_,
    "where": lambda c, a, b: a if c else b,
    "minimum": min,
    "maximum": max,
    "abs": abs,
    "relu": lambda x: max(x, 0.0),
    "square": lambda x: x * x,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
    "erf": math.erf,
    "silu": lambda x: x / (1 + math.exp(-x)) if x > -700 else 0.0,
    "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
    "sin": math.sin,
    "floor": math.floor,
    "round": round,
    "trunc": math.trunc,
    "sign": lambda x: (x > 0) - (x < 0),
    "fmod": math.fmod,
    "erfc": math.erfc,
    "atan": math.atan,
    "asinh": math.asinh,
    "cos": math.cos,
    "isfinite": math.isfinite,
    "uniform": lambda seed, counter: uniform(int(seed), int(counter)),
}
REDUCTION = {"sum": sum, "max": max, "min": min}


class Plain:
    """Evaluates a spec point by point."""

    def __init__(self, spec, inputs, sizes):
        self.spec, self.tensors, self.sizes = spec, dict(inputs), bind(spec, sizes)
        self.extents = {i: value(r.high, self.sizes) for i, r in facts(spec).ranges.items()}

    def outputs(self):
        for e in self.spec.equations:
            out = np.zeros([self.extents[i] for i in e.indices])
            for at in itertools.product(*(range(n) for n in out.shape)):
                out[at] = self.right(e.value, dict(zip(e.indices, at, strict=True)))
            self.tensors[e.target] = out
        return {t.name: self.tensors[t.name] for t in self.spec.outputs}

    def right(self, expr, at):
        if isinstance(expr, Reduce):
            points = itertools.product(*(range(self.extents[i]) for i in expr.over))
            places = [{**at, **dict(zip(expr.over, p, strict=True))} for p in points]
            found = [self.of(expr.body, p) for p in places]
            if expr.reduction.startswith("arg"):
                return found.index(max(found) if expr.reduction == "argmax" else min(found))
            return REDUCTION[expr.reduction](found)
        if isinstance(expr, Scan):
            here, last = at[expr.along], self.extents[expr.along]
            span = range(here, last) if expr.reverse else range(here + 1)
            span = [k for k in span if k != here or not expr.exclusive]
            found = [self.of(expr.body, {**at, expr.along: k}) for k in span]
            return sum(found) if expr.reduction == "sum" else max([-math.inf, *found])
        return self.of(expr, at)

    def of(self, expr, at):
        match expr:
            case Number(v):
                return v
            case Size(name):
                return self.sizes[name]
            case Index(name):
                return at[name]
            case Read(tensor, positions, pad):
                array, where = self.tensors[tensor], tuple(int(self.of(p, at)) for p in positions)
                inside = all(0 <= p < n for p, n in zip(where, array.shape, strict=True))
                assert inside or pad is not None, "a read without pad stays inside"
                return array[where].item() if inside else pad
            case Cast(_, v):
                return float(self.of(v, at))
            case Bucketize(v, borders):
                found = self.of(v, at)
                return sum(1 for b in self.tensors[borders].tolist() if b < found)
            case Apply(function, args):
                return PLAIN[function](*(self.of(a, at) for a in args))
        raise AssertionError(expr)


@settings(max_examples=100)
@given(st.data(), st.integers(0, 2**32))
def test_agrees_with_plain_loops(data, seed):
    spec = data.draw(specs())
    sizes = data.draw(sizes_for(spec))
    inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
    expected = Plain(spec, inputs, sizes).outputs()
    for name, array in evaluate(spec, inputs, sizes).items():
        np.testing.assert_allclose(array.astype(float), expected[name], rtol=1e-9, atol=1e-9)
