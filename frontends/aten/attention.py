"""Attention: a softmax of scaled products of queries and keys weighs values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from frontends.aten.random import native_dropout
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Shape, Value, computed
from frontends.expressions import Term, call, cast, constant, where
from ir.errors import KernelError
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class _Call:
    """query [.., M, D], key [.., N, D], value [.., N, E]."""

    query: Value
    key: Value
    value: Value
    mask: Value | None = None  # b8 (what takes part) or added
    causal: bool = False
    scale: float | None = None
    grouped: bool = False  # a head of keys serves several heads of queries, side by side
    dropout: float = 0.0  # the share of weights that is dropped

    def factor(self) -> Term:
        """What scores are multiplied with; the reciprocal root of D by default."""
        if self.scale is not None:
            return float(self.scale)
        depth = constant(self.query.shape[-1])
        if depth is not None:
            return 1.0 / math.sqrt(depth)
        return call("rsqrt", cast(computed(self.query.dtype), self.query.shape[-1]))

    def shared(self, b: Builder, x: Value, batch: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Where a head's queries find keys and values."""
        if self.grouped:
            ratio = self.query.shape[-3] // x.shape[-3]
            heads = constant(self.query.shape[-3]), constant(x.shape[-3])
            if heads[0] is not None and heads[1] is not None:
                ratio = Number(heads[0] // heads[1])
            batch = (*batch[:-1], batch[-1] // ratio)
        return _batch(b, x, batch)


def _batch(b: Builder, x: Value, batch: tuple[Expr, ...]) -> tuple[Expr, ...]:
    zero = Number(0)
    return b.broadcast(x, (*batch, zero, zero))[:-2]


def _scores(b: Builder, c: _Call, shape: Shape) -> Value:
    """Masked scores [.., M, N]."""
    meta = Meta(computed(c.query.dtype), shape)
    factor = c.factor()

    def product(*at: Expr) -> Expr:
        *batch, m, n, d = at
        query = c.query.wide(*_batch(b, c.query, tuple(batch)), m, d)
        return query * c.key.wide(*c.shared(b, c.key, tuple(batch)), n, d)

    raw = b.reduce("sum", meta, (c.query.shape[-1],), product, "scores")

    def masked(*at: Expr) -> Expr:
        m, n = at[-2:]
        score = raw.at(*at) * factor
        if c.mask:
            place = b.broadcast(c.mask, at[len(at) - c.mask.rank :])
            if c.mask.dtype == "b8":
                score = where(c.mask.at(*place), score, -math.inf)
            else:
                score = score + c.mask.wide(*place)
        return where(n <= m, score, -math.inf) if c.causal else score

    return b.define(meta, masked, "masked")


def _attend(b: Builder, out: Meta, c: _Call) -> tuple[Value, Value, Value, Value]:
    """The result, the exponentials that weigh values, and of each row the maximum of its masked
    scores and the sum of their exponentials. A row without any score gives zeros."""
    batch = out.shape[:-2]
    size, dtype = c.key.shape[-2], computed(c.query.dtype)
    scores = _scores(b, c, (*batch, c.query.shape[-2], size))
    row = Meta(dtype, (*batch, c.query.shape[-2]))
    top = b.reduce("max", row, (size,), scores.at, "top")

    def power(*at: Expr) -> Expr:
        return call("exp", scores.at(*at) - top.at(*at[:-1]))

    powers = b.define(scores.meta, power, "powers")
    total = b.reduce("sum", row, (size,), powers.at, "total")
    kept = powers
    if c.dropout:
        kept, _ = native_dropout(b, (powers.meta, Meta("b8", powers.shape)), powers, c.dropout)

    def weighed(*at: Expr) -> Expr:
        *outer, m, e, n = at
        value = c.value.wide(*c.shared(b, c.value, tuple(outer)), n, e)
        return kept.at(*outer, m, n) * value

    raw = b.reduce("sum", Meta(dtype, out.shape), (size,), weighed, "weighed")

    def body(*at: Expr) -> Expr:
        quotient = raw.at(*at) / total.at(*at[:-1])
        if not c.mask:
            return quotient
        return where(call("eq", top.at(*at[:-1]), -math.inf), 0.0, quotient)

    return b.define(out, body, "attention"), kept, top, total


@rule("scaled_dot_product_attention")
def scaled_dot_product_attention(
    b: Builder,
    out: Meta,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    c = _Call(query, key, value, attn_mask, is_causal, scale, enable_gqa, dropout_p)
    return _attend(b, out, c)[0]


@rule("_scaled_dot_product_attention_math")
def attention_math(
    b: Builder,
    out: tuple[Meta, Meta],
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Value | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Value, Value]:
    """The result, and the weights, of which those that were dropped are zero."""
    if dropout_mask:
        raise KernelError(
            "attention is told which weights to drop",
            allowed="dropout_p alone, without a mask",
            hint="give what it adds to the scores: `-inf` where a weight is dropped",
        )
    c = _Call(query, key, value, attn_mask, is_causal, scale, enable_gqa, dropout_p)
    made, powers, top, total = _attend(b, out[0], c)

    def weight(*at: Expr) -> Expr:
        found = powers.at(*at) / total.at(*at[:-1])
        return where(call("eq", top.at(*at[:-1]), -math.inf), 0.0, found) if attn_mask else found

    return made, b.define(out[1], weight, "weights")


def _logarithm(b: Builder, out: Meta | None, top: Value, total: Value) -> Value | None:
    """The logarithm of each row's sum of exponentials; None where it is left out or empty."""
    if out is None or out.shape != top.shape:
        return None
    return b.pointwise(out, lambda t, s: t + call("log", s), top, total, name="logsumexp")


@rule("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention_for_cpu(
    b: Builder,
    out: tuple[Meta, Meta],
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, Value | None]:
    c = _Call(query, key, value, attn_mask, is_causal, scale, dropout=dropout_p)
    made, _, top, total = _attend(b, out[0], c)
    return made, _logarithm(b, out[1], top, total)


@rule("_scaled_dot_product_efficient_attention")
def efficient_attention(
    b: Builder,
    out: tuple[Meta, ...],
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[Value | None, ...]:
    """Of its results, those that only a dropout's gradient needs are None."""
    c = _Call(query, key, value, attn_bias, is_causal, scale, dropout=dropout_p)
    made, _, top, total = _attend(b, out[0], c)
    return made, _logarithm(b, out[1], top, total), *([None] * (len(out) - 2))


@rule("_scaled_dot_product_flash_attention")
def flash_attention(
    b: Builder,
    out: tuple[Meta, ...],
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    scale: float | None = None,
) -> tuple[Value | None, ...]:
    """Of its results, those that only a dropout's gradient or sequences of several lengths need are
    None."""
    c = _Call(query, key, value, None, is_causal, scale, dropout=dropout_p)
    made, _, top, total = _attend(b, out[0], c)
    return made, _logarithm(b, out[1], top, total), *([None] * (len(out) - 2))
