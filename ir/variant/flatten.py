"""Flattens two adjacent indices into one, as in implicit GEMM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ir.affine import affine, fold_constants
from ir.errors import KernelError
from ir.linear import same
from ir.schedule import Decision
from ir.spec import (
    Apply,
    Equation,
    Expr,
    Facts,
    Index,
    Number,
    Part,
    Range,
    Read,
    Reduce,
    Scan,
    Spec,
    Tensor,
)
from ir.variant.derived import flattened, needed, require_free
from ir.variant.split_k import REDUCTIONS
from ir.verify import facts
from ir.visit import rebuilt


def flatten(spec: Spec, decision: Decision) -> Spec:
    """Applies a `flatten` decision.

    before: y[o, p, q] = sum(w[o, c, i] * x[c, p + i, q], c, i)
    after:  y[o, pq] = sum(w[o, c, i] * x[c, pq // Q + i, pq % Q], c, i)

    Every tensor that is computed with p and q is flattened, and so is an input that is only read at
    plain p and q. The memory layout of inputs and outputs does not change. Legal if p and q are
    adjacent, p first, in every input and output that is read or computed with one of them. In other
    tensors that are computed with both the two dimensions are moved next to each other; nothing
    outside the kernel sees their order. A reduction over one of them must be over both. It becomes
    one reduction over the flattened index (channels and filter taps of a convolution).
    """
    outer, inner = decision.subject, str(needed(decision, "inner"))
    spec = _adjacent(spec, outer, inner)
    known = facts(spec)
    _require_pair(spec, decision, known, outer, inner)
    name = flattened(decision)
    require_free(spec, (name,), decision)
    flat = {
        e.target: e.indices.index(outer) for e in spec.equations if {outer, inner} & set(e.indices)
    }
    flat |= _plain_inputs(spec, known, outer, inner)
    longest, length = known.ranges[outer].high, known.ranges[inner].high
    pair = _Pair(outer, inner, name, longest, length, flat, decision)
    return replace(
        spec,
        inputs=tuple(pair.tensor(t) for t in spec.inputs),
        outputs=tuple(pair.tensor(t) for t in spec.outputs),
        equations=tuple(pair.equation(e) for e in spec.equations),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two indices, the index that replaces them, and the tensors that are flattened."""

    outer: str
    inner: str
    name: str
    longest: Expr  # size of `outer`
    length: Expr  # size of `inner`: the stride of `outer` in the flattened index
    flat: Mapping[str, int]  # flattened tensors, each with its dimension of `outer`
    decision: Decision

    def tensor(self, t: Tensor) -> Tensor:
        """An input or output in its flattened shape."""
        if t.name not in self.flat:
            return t
        at = self.flat[t.name]
        both = fold_constants("mul", t.shape[at], t.shape[at + 1])
        flat = (*t.shape[:at], both, *t.shape[at + 2 :])
        return replace(t, shape=flat, part=t.part and self.part(t, t.part))

    def part(self, t: Tensor, own: Part) -> Part:
        """The place of an output in a larger tensor, in its flattened shape.

        The output may be a part along `outer`, if the size of `inner` is a number. Raises
        KernelError for a part along `inner`, which is not contiguous in the flattened index.
        """
        at = self.flat[t.name]
        if own.axis == at + 1 or own.axis == at and not isinstance(self.length, Number):
            raise _refused(
                self.decision, f"`{t.name}` is a part of a larger tensor along one of them"
            )
        if own.axis == at:
            length = int(self.length.value)  # type: ignore[attr-defined]
            return Part(at, own.first * length, own.whole * length)
        return replace(own, axis=own.axis - (own.axis > at))

    def equation(self, e: Equation) -> Equation:
        """Replaces the pair by one index on both sides of an equation."""
        at, sizes = e.at, e.sizes
        if e.target in self.flat:
            k = self.flat[e.target]
            at = (*at[:k], Index(self.name), *at[k + 2 :])
            if sizes:
                sizes = (*sizes[:k], fold_constants("mul", sizes[k], sizes[k + 1]), *sizes[k + 2 :])
        return replace(e, at=at, value=self.of(e.value), sizes=sizes)

    def of(self, expr: Expr) -> Expr:
        """Rewrites an expression in terms of the flattened index."""
        if isinstance(expr, Reduce) and self.outer in expr.over:
            return self.reduced(expr)
        if isinstance(expr, Index):
            part = {self.outer: "floordiv", self.inner: "mod"}.get(expr.name)
            return Apply(part, (Index(self.name), self.length)) if part else expr
        if isinstance(expr, Apply) and expr.function in ("floordiv", "mod"):
            return _nested(rebuilt(expr, self.of))
        if isinstance(expr, Read) and expr.tensor in self.flat:
            k = self.flat[expr.tensor]
            first, second = expr.at[k : k + 2]
            at = tuple(self.position(p) for p in expr.at)
            if first == Index(self.outer) and second == Index(self.inner):
                both: Expr = Index(self.name)
            elif expr.pad is None:
                both = Apply("add", (Apply("mul", (at[k], self.length)), at[k + 1]))
            else:
                # A flattened position wraps into the next row: padding could not be told from data.
                raise _refused(self.decision, f"`{expr.tensor}` is read beyond its borders")
            return replace(expr, at=(*at[:k], both, *at[k + 2 :]))
        if isinstance(expr, Read):
            return replace(expr, at=tuple(self.position(p) for p in expr.at))
        return rebuilt(expr, self.of)

    def position(self, expr: Expr) -> Expr:
        """Rewrites a position in terms of the flattened index; p * Q + q is that index itself."""
        form = affine(expr)
        step = form.coefficient(self.inner) if form else 0
        if form is None or not step or not isinstance(self.length, Number):
            return self.of(expr)
        if form.coefficient(self.outer) != step * self.length.value:
            return self.of(expr)
        others = [t for t in form.terms if t[0] not in (self.outer, self.inner)]
        made, *more = [
            Index(i) * by if by != 1 else Index(i) for i, by in [(self.name, step), *others]
        ]
        whole: Expr = made
        for part in (*more, *([] if form.offset == Number(0) else [form.offset])):
            whole = whole + part
        return whole

    def reduced(self, expr: Reduce) -> Expr:
        """Replaces a reduction over both indices by one over the flattened index."""
        own = (self.outer, self.inner)
        if any(r.partial for r in expr.ranges if r.index in own):
            raise _refused(self.decision, "a part of one of them is reduced")
        over = tuple(self.name if i == self.outer else i for i in expr.over if i != self.inner)
        ranges = tuple(r for r in expr.ranges if r.index not in own)
        both = Range(self.name, Number(0), fold_constants("mul", self.longest, self.length))
        return replace(expr, body=self.of(expr.body), over=over, ranges=(*ranges, both))


def _nested(expr: Expr) -> Expr:
    """Simplifies nested quotients and remainders: i % 24 % 8 to i % 8, and i % 24 // 8 to i // 8 %
    3.

    From the simple form a compiler sees how many neighbours are contiguous or equal. Other
    expressions are unchanged.
    """
    match expr:
        case Apply(function, (Apply("mod", (whole, Number(long))), Number(short))) if (
            long % short == 0
        ):
            if function == "mod":
                return Apply("mod", (whole, Number(short)))
            return Apply("mod", (Apply("floordiv", (whole, Number(short))), Number(long // short)))
    return expr


def _plain_inputs(spec: Spec, known: Facts, outer: str, inner: str) -> dict[str, int]:
    """The inputs that are read only at the plain pair, over its full size, each with the dimension
    of `outer`."""
    found = {}
    derived = dict(spec.derived)
    want = (known.ranges[outer].high, known.ranges[inner].high)
    for t in spec.inputs:
        reads = [r for e in spec.equations for r in e.reads() if r.tensor == t.name]
        places = {_place(r.at, outer, inner) for r in reads}
        at = places.pop() if len(places) == 1 else None
        if at is None or any(r.pad is not None for r in reads):
            continue
        if all(same(a, b, derived) for a, b in zip(t.shape[at : at + 2], want, strict=True)):
            found[t.name] = at
    return found


def _place(at: tuple[Expr, ...], outer: str, inner: str) -> int | None:
    """The dimension at which the plain pair occurs among positions; None if it does not."""
    for k in range(len(at) - 1):
        if at[k] == Index(outer) and at[k + 1] == Index(inner):
            return k
    return None


def _adjacent(spec: Spec, outer: str, inner: str) -> Spec:
    """Makes the two indices adjacent in all tensors computed with both, except outputs."""
    outputs = {t.name for t in spec.outputs}
    orders = {}
    for e in spec.equations:
        plain = all(isinstance(p, Index) for p in e.at) and not e.accumulate
        both = outer != inner and {outer, inner} <= set(e.indices)
        if e.target not in outputs and plain and both and _place(e.at, outer, inner) is None:
            others = [i for i in e.indices if i != inner]
            others.insert(others.index(outer) + 1, inner)
            orders[e.target] = tuple(map(e.indices.index, others))
    if not orders:
        return spec

    def ordered(expr: Expr) -> Expr:
        expr = rebuilt(expr, ordered)
        if isinstance(expr, Read) and expr.tensor in orders:
            return replace(expr, at=tuple(expr.at[n] for n in orders[expr.tensor]))
        return expr

    def moved(e: Equation) -> Equation:
        order = orders.get(e.target, range(len(e.at)))
        at, sizes = tuple(e.at[n] for n in order), e.sizes and tuple(e.sizes[n] for n in order)
        return replace(e, at=at, sizes=sizes, value=ordered(e.value))

    return replace(spec, equations=tuple(map(moved, spec.equations)))


def _require_pair(spec: Spec, decision: Decision, known: Facts, outer: str, inner: str) -> None:
    """Raises KernelError if the two indices cannot be flattened into one."""
    for name in (outer, inner):
        if name not in known.ranges or known.ranges[name].jagged or outer == inner:
            what = "is jagged" if name in known.ranges else "is no index"
            raise _refused(decision, f"`{name}` {what if outer != inner else 'is both of them'}")
    for e in spec.equations:
        along = (e.value.along,) if isinstance(e.value, Scan) else e.reduced
        both = isinstance(e.value, Reduce) and {outer, inner} <= set(along)
        if {outer, inner} & set(along) and not (both and e.reduce.reduction in REDUCTIONS):
            raise _refused(decision, f"`{e.target}` runs over one of them")
        scattered = e.accumulate and any(
            n == Index(i) for p in e.at for n in p.walk() for i in (outer, inner)
        )
        alone = {outer, inner} & set(e.indices) and _place(e.at, outer, inner) is None
        if alone or scattered:
            raise _refused(decision, f"`{e.target}` does not have them adjacent, in order")


def _refused(decision: Decision, why: str) -> KernelError:
    return KernelError(
        f"`{decision.subject}` and `{decision.option('inner')}` do not become one index: {why}",
        place=decision.place,
        allowed="two indices that are adjacent in all that is computed with them",
        hint=f"drop {decision}",
    )
