"""Likelihoods of classes: the negative logarithm that a prediction has at each target."""

from __future__ import annotations

from frontends.aten.loss import MEAN, SUM, reduced
from frontends.aten.softmax import log_softmax
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, product, where
from ir.spec import Expr, Number


class _Classes:
    """Scores [N, C, ...] or [C], targets [N, ...] or a single one. ignore: a target that does not
    count."""

    def __init__(self, scores: Value, target: Value, weight: Value | None, ignore: int) -> None:
        self.scores, self.target, self.weight, self.ignore = scores, target, weight, ignore
        self.dtype = computed(scores.dtype)

    def counts(self, *at: Expr) -> Expr:
        """Whether the target there is no ignored one."""
        return call("ne", self.target.at(*at), self.ignore)

    def chosen(self, *at: Expr) -> Expr:
        """The class there; 0 where it does not count."""
        return where(self.counts(*at), self.target.at(*at), 0)

    def factor(self, *at: Expr) -> Expr:
        """What the place weighs: 0 where it does not count."""
        one = self.weight.wide(self.chosen(*at)) if self.weight else Number(1.0)
        return where(self.counts(*at), one, 0.0)

    def lost(self, *at: Expr) -> Expr:
        batch = at[: min(self.scores.rank - 1, 1)]
        place = (*batch, self.chosen(*at), *at[1:])
        weighed = -self.scores.wide(*place)
        if self.weight:
            weighed = weighed * self.weight.wide(self.chosen(*at))
        return where(self.counts(*at), weighed, 0.0)


def _likelihood(
    b: Builder, out: Meta, total: Meta | None, c: _Classes, reduction: int
) -> tuple[Value, Value | None]:
    """The loss; and what all places weigh, which the mean is divided by. It is 0 without a
    reduction of a batch."""
    shape = c.target.shape
    weight = Meta(c.dtype, ())
    if reduction not in (MEAN, SUM) and c.scores.rank > 1:
        made = b.define(out, c.lost, "loss")
        whole = b.define(total, lambda: 0.0, "weight") if total else None
        return made, whole
    held = b.reduce("sum", weight, shape, c.factor, "weight")
    if reduction != MEAN:
        made = b.reduce("sum", out, shape, c.lost, "loss")
    else:
        lost = b.reduce("sum", weight, shape, c.lost, "lost")
        made = b.define(out, lambda: lost.at() / held.at(), "loss")
    if total is None or total == held.meta:
        return made, held
    return made, b.define(total, held.at, "weight")


@rule("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(
    b: Builder,
    out: tuple[Meta, Meta],
    self: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Value, Value | None]:
    c = _Classes(self, target, weight, ignore_index)
    return _likelihood(b, out[0], out[1], c, reduction)


@rule("nll_loss", "nll_loss2d", "nll_loss_nd")
def nll_loss(
    b: Builder,
    out: Meta,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> Value:
    return _likelihood(b, out, None, _Classes(self, target, weight, ignore_index), reduction)[0]


@rule("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    self: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    total_weight: Value,
) -> Value:
    c = _Classes(self, target, weight, ignore_index)

    def body(*at: Expr) -> Expr:
        if self.rank > 1:
            place, k = (at[0], *at[2:]), at[1]
        else:
            place, k = (Number(0),) * target.rank, at[0]
        grad = grad_output.wide(*place) if reduction not in (MEAN, SUM) else grad_output.wide()
        made = -grad * c.factor(*place)
        if reduction == MEAN:
            made = made / total_weight.wide()
        return where(call("eq", c.chosen(*place), k), made, 0.0)

    return b.define(out, body, "grad")


@rule("cross_entropy_loss")
def cross_entropy_loss(
    b: Builder,
    out: Meta,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Value:
    """target: classes, or a probability of each class under the shape of the scores."""
    dim = 0 if self.rank == 1 else 1
    logs = log_softmax(b, Meta(computed(self.dtype), self.shape), self, dim)
    if target.rank == self.rank and target.dtype.startswith(("f", "bf")):
        return _of_probabilities(b, out, logs, target, weight, reduction, label_smoothing)
    c = _Classes(logs, target, weight, ignore_index)
    if not label_smoothing:
        return _likelihood(b, out, None, c, reduction)[0]
    classes = logs.shape[dim]

    def all_classes(*indices: Expr) -> Expr:
        *at, k = indices
        read = -logs.wide(*at[:dim], k, *at[dim:])
        read = read * weight.wide(k) if weight else read
        return where(c.counts(*at), read, 0.0)

    smooth = b.reduce("sum", Meta(c.dtype, target.shape), (classes,), all_classes, "smooth")

    def element(*at: Expr) -> Expr:
        part = label_smoothing * smooth.at(*at) / classes
        return (1.0 - label_smoothing) * c.lost(*at) + part

    if reduction != MEAN:
        return reduced(b, out, target.shape, reduction, element)
    lost = b.reduce("sum", Meta(c.dtype, ()), target.shape, element, "lost")
    held = b.reduce("sum", Meta(c.dtype, ()), target.shape, c.factor, "weight")
    return b.define(out, lambda: lost.at() / held.at(), "loss")


def _of_probabilities(
    b: Builder,
    out: Meta,
    logs: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    smoothing: float,
) -> Value:
    dim = 0 if logs.rank == 1 else 1
    classes = logs.shape[dim]

    def element(*indices: Expr) -> Expr:
        *at, k = indices
        place = (*at[:dim], k, *at[dim:])
        likely = target.wide(*place)
        if smoothing:
            likely = likely * (1.0 - smoothing) + smoothing / classes
        made = -(logs.wide(*place) * likely)
        return made * weight.wide(k) if weight else made

    rest = (*logs.shape[:dim], *logs.shape[dim + 1 :])
    lost = b.reduce("sum", Meta(logs.dtype, rest), (classes,), element, "lost")
    if reduction not in (MEAN, SUM):
        return b.define(out, lost.at, "loss")
    if reduction == SUM:
        return b.reduce("sum", out, rest, lost.at, "loss")
    total = b.reduce("sum", Meta(logs.dtype, ()), rest, lost.at, "total")
    count = product(rest)
    return b.define(out, lambda: total.at() / count, "loss")
