"""Embeddings: rows of a table at given places, alone or in bags."""

from __future__ import annotations

import math

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, cast, constant, where
from ir.errors import KernelError
from ir.spec import Apply, Expr, Number

SUM, MEAN, MAX = 0, 1, 2  # modes of bags


@rule("embedding")
def embedding(
    b: Builder,
    out: Meta,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    return b.define(out, lambda *at: weight.at(indices.at(*at[:-1]), at[-1]))


@rule("embedding_dense_backward")
def embedding_dense_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    indices: Value,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Value:
    wide = computed(out.dtype)
    rows = indices.shape
    used = None
    if scale_grad_by_freq:
        counts = Meta("i32", (out.shape[0],))
        used = b.reduce(
            "sum",
            counts,
            rows,
            lambda v, *at: where(Apply("eq", (indices.at(*at), v)), 1, 0),
            "used",
        )

    def update(*at: Expr) -> Expr:
        grad, row = grad_output.wide(*at), indices.at(*at[:-1])
        if used is not None:
            grad = grad / cast(wide, used.at(row))
        return grad if padding_idx < 0 else where(Apply("ne", (row, Number(padding_idx))), grad, 0)

    summed = b.scatter(
        Meta(wide, out.shape),
        (*rows, out.shape[1]),
        lambda *at: (indices.at(*at[:-1]), at[-1]),
        update,
        "dw",
    )
    return b.define(out, summed.at)


@rule("embedding_backward")
def embedding_backward(
    b: Builder,
    out: Meta,
    grad: Value,
    indices: Value,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Value:
    if sparse:
        raise KernelError(
            "the gradient of an embedding is sparse",
            allowed="sparse=False",
            hint="make the module with sparse=False",
        )
    return embedding_dense_backward(
        b, out, grad, indices, num_weights, padding_idx, scale_grad_by_freq
    )


@rule("embedding_renorm")
def embedding_renorm(
    b: Builder, out: Meta, self: Value, indices: Value, max_norm: float, norm_type: float
) -> Value:
    """The table with its used rows made as long as `max_norm`, where they are longer."""
    wide = computed(out.dtype)
    rows, width = self.shape

    def size(row: Expr, d: Expr) -> Expr:
        found = call("abs", self.wide(row, d))
        return found if math.isinf(norm_type) else call("pow", found, float(norm_type))

    def named(row: Expr, *at: Expr) -> Expr:
        return Apply("eq", (indices.at(*at), row))

    kind = "max" if math.isinf(norm_type) else "sum"
    powers = b.reduce(kind, Meta(wide, (rows,)), (width,), size, "powers")
    used = b.reduce("any", Meta("b8", (rows,)), indices.shape, named, "used")

    def element(row: Expr, d: Expr) -> Expr:
        norm = powers.at(row)
        norm = norm if math.isinf(norm_type) else call("pow", norm, 1.0 / norm_type)
        scaled = self.wide(row, d) * (max_norm / (norm + 1e-7))
        return where(used.at(row) & (norm > max_norm), scaled, self.wide(row, d))

    return b.define(out, element)


@rule("_embedding_bag", "embedding_bag")
def _embedding_bag(
    b: Builder,
    out: tuple[Meta, ...],
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> tuple[Value | None, ...]:
    bags = _Bags(b, weight, indices, offsets, per_sample_weights, include_last_offset, padding_idx)
    sizes = bags.counts(Meta(out[2].dtype, out[0].shape[:1]))
    made = bags.reduced(out[0], mode, sizes)
    owners = bags.owners(out[1])
    if mode == SUM:  # PyTorch leaves these at 0
        sizes = b.define(out[2], lambda i: 0)
    if mode == MAX:
        return made, owners, sizes, bags.tops(out[3], made)
    known = out[3].shape == sizes.shape  # some versions of PyTorch leave them out
    return made, owners, sizes, b.copy(sizes) if known else None


@rule("_embedding_bag_forward_only")
def _embedding_bag_forward_only(
    b: Builder,
    out: tuple[Meta, ...],
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> tuple[Value | None, ...]:
    bags = _Bags(b, weight, indices, offsets, per_sample_weights, include_last_offset, padding_idx)
    sizes = bags.counts(Meta("i64", out[0].shape[:1])) if mode != SUM else None
    return bags.reduced(out[0], mode, sizes), None, None, None


class _Bags:
    """Consecutive pieces of the indices: bag `i` is `indices[starts[i] : ends[i]]`."""

    def __init__(
        self,
        b: Builder,
        weight: Value,
        indices: Value,
        offsets: Value,
        scales: Value | None,
        last: bool,
        padding: int | None,
    ):
        self.b, self.weight, self.indices, self.scales = b, weight, indices, scales
        self.padding = -1 if padding is None else padding
        self.offsets, self.last = offsets, last
        if last:
            return
        count, total = offsets.shape[0], indices.shape[0]
        self.ends = b.define(
            offsets.meta,
            lambda i: where(i + 1 < count, offsets.at(i + 1, pad=0.0), total),
            "ends",
        )

    def segment(self, i: Expr, *_: Expr) -> tuple[Expr, Expr]:
        """Both ends of a bag."""
        return self.offsets.at(i), self.offsets.at(i + 1) if self.last else self.ends.at(i)

    def kept(self, at: Expr) -> Expr | None:
        """Whether an entry counts; None where all do."""
        if self.padding < 0:
            return None
        return Apply("ne", (self.indices.at(at), Number(self.padding)))

    def counts(self, meta: Meta) -> Value:
        """How many entries of each bag count."""

        def one(i: Expr, at: Expr) -> Expr:
            counted = Apply("ge", (self.indices.at(at), Number(0)))
            kept = self.kept(at)
            return cast(meta.dtype, counted if kept is None else kept)

        return self.b.reduce("sum", meta, (self.segment,), one, "bag_size")

    def reduced(self, out: Meta, mode: int, sizes: Value | None) -> Value:
        """The sum, mean or maximum of each bag; 0 for an empty one."""
        wide = computed(out.dtype)
        identity = -float("inf") if mode == MAX else 0.0

        def entry(i: Expr, d: Expr, at: Expr) -> Expr:
            row = self.weight.wide(self.indices.at(at), d)
            if self.scales is not None:
                row = row * self.scales.wide(at)
            kept = self.kept(at)
            return row if kept is None else where(kept, row, identity)

        if mode == SUM:
            return self.b.reduce("sum", out, (self.segment,), entry, "bags")
        whole = Meta(wide, out.shape)
        made = self.b.reduce("max" if mode == MAX else "sum", whole, (self.segment,), entry, "bags")
        if mode == MAX:
            return self.b.define(out, lambda i, d: where(sizes.at(i) > 0, made.at(i, d), 0.0))
        return self.b.define(
            out, lambda i, d: made.at(i, d) / cast(wide, call("maximum", sizes.at(i), 1))
        )

    def owners(self, meta: Meta) -> Value:
        """The bag of each entry: how many bags start at it or before, less one."""

        def started(at: Expr, i: Expr) -> Expr:
            return cast(meta.dtype, self.offsets.at(i) <= at)

        bags = self.offsets.shape[0]
        if self.last:
            known = constant(bags)
            bags = Number(known - 1) if known else bags - 1
        begun = self.b.reduce("sum", meta, (bags,), started, "begun")
        return self.b.define(meta, lambda at: begun.at(at) - 1, "offset2bag")

    def tops(self, meta: Meta, made: Value) -> Value:
        """The row that has the maximum of a bag, the first of such; 0 for an empty one."""
        none = self.indices.shape[0]

        def found(i: Expr, d: Expr, at: Expr) -> Expr:
            same = Apply("eq", (self.weight.at(self.indices.at(at), d), made.at(i, d)))
            kept = self.kept(at)
            return where(same if kept is None else same & kept, at, none)

        first = self.b.reduce("min", Meta("i32", meta.shape), (self.segment,), found, "first")
        return self.b.define(
            meta,
            lambda i, d: where(first.at(i, d) < none, self.indices.at(first.at(i, d), pad=0.0), 0),
            "max_indices",
        )
