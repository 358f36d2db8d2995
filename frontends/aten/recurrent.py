"""Recurrent networks whole: layers of steps, in one direction or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frontends.aten.random import native_dropout
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import call, cast, minus, plus, quotient, times, where
from ir.spec import Expr, Index, Number

States = tuple[Value, ...]  # of all steps [T, B, H]


@dataclass(frozen=True, slots=True)
class _Net:
    """How layers are stacked, and the parameters of each: input weight [G * H, I], state weight
    [G * H, P], both biases [G * H] where there are some, projection [P, H] where there is one. P is
    H where there is none."""

    params: Sequence[Value]
    has_biases: bool
    num_layers: int
    bidirectional: bool
    dropout: float = 0.0  # the share of what goes from layer to layer that is dropped

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def of(self, n: int) -> tuple[Value | None, ...]:
        """The parameters of the n-th direction of all layers, None for biases that are not there; the
        projection last, where there is one."""
        each = len(self.params) // (self.num_layers * self.directions)
        params = tuple(self.params[n * each : (n + 1) * each])
        return params if self.has_biases else (*params[:2], None, None, *params[2:])


@dataclass(frozen=True, slots=True)
class _Steps:
    """One direction of a layer: the steps of a recurrence."""

    b: Builder
    meta: Meta  # of a state at all steps, as it is computed
    shown: str  # the dtype of states that products and the caller take, as PyTorch stores them
    step: Index
    backwards: bool

    def first(self) -> Expr:
        """The step that begins."""
        return minus(self.meta.shape[0], Number(1)) if self.backwards else Number(0)

    def declared(self, name: str) -> Value:
        return self.b.declare(self.meta, name)

    def state(self, name: str, like: Value | None = None) -> Value:
        """A state that products take. like: what its last dimension is as wide as, if not as the meta."""
        width = like.shape[-1] if like else self.meta.shape[2]
        return self.b.declare(Meta(self.shown, (*self.meta.shape[:2], width)), name)

    def before(self, state: Value, start: Value, n: int) -> Callable[[Expr, Expr, Expr], Expr]:
        """A state one step before, by positions, in its dtype; start[n] before the first."""
        lag = 1 if self.backwards else -1

        def body(t: Expr, r: Expr, j: Expr) -> Expr:
            first = start.at(n, r, j) if start.dtype == state.dtype else start.wide(n, r, j)
            earlier = state.at(t + lag, r, j, pad=0.0)
            return where(call("eq", t, self.first()), first, earlier)

        return body

    def settle(self, value: Value, body: Callable[..., Expr], over: Sequence[Expr] = ()) -> None:
        self.b.settle(value, body, over, step=self.step)

    def settle_state(self, value: Value, body: Callable[..., Expr]) -> None:
        """The equation of a state that products take, rounded as it is stored."""
        self.settle(value, lambda *at: cast(self.shown, body(*at)) if self.rounds else body(*at))

    @property
    def rounds(self) -> bool:
        """Whether states are stored in another dtype than they are computed in."""
        return self.shown != self.meta.dtype

    def products(self, state: Value, weight: Value, gates: int) -> list[Value]:
        """`sum(state[t, r, k] * weight[gate * H + j, k], k)`, a tensor for each gate."""
        size = quotient(weight.shape[0], Number(gates))
        meta = Meta(self.meta.dtype, (*self.meta.shape[:2], size))

        def made(gate: int) -> Value:
            found = self.b.declare(meta, "hidden")

            def body(t: Expr, r: Expr, j: Expr, k: Expr) -> Expr:
                return state.wide(t, r, k) * weight.wide(_row(gate, size, j), k)

            self.settle(found, body, state.shape[2:])
            return found

        return [made(gate) for gate in range(gates)]


def _row(gate: int, size: Expr, j: Expr) -> Expr:
    return plus(times(Number(gate), size), j)


def _inputs(
    b: Builder, dtype: str, x: Sequence[Value], weight: Value, biases: Sequence[Value | None]
) -> Value:
    """Of all steps at once, what the input adds to each gate [T, B, G * H]. x: the directions of
    the layer below, side by side."""
    meta = Meta(dtype, (*x[0].shape[:2], weight.shape[0]))
    parts: list[Value] = []
    begin: Expr = Number(0)
    for one in x:

        def body(t: Expr, r: Expr, g: Expr, k: Expr, one=one, begin=begin) -> Expr:
            return one.wide(t, r, k) * weight.wide(g, plus(begin, k))

        parts.append(b.reduce("sum", meta, one.shape[2:], body, "gates"))
        begin = plus(begin, one.shape[2])
    given = [bias for bias in biases if bias]
    if len(parts) == 1 and not given:
        return parts[0]

    def whole(t: Expr, r: Expr, g: Expr) -> Expr:
        made = parts[0].at(t, r, g)
        for part in parts[1:]:
            made = made + part.at(t, r, g)
        for bias in given:
            made = made + bias.wide(g)
        return made

    return b.define(meta, whole, "gates")


def _gate(function: str, added: Value, hidden: Value, gate: int, size: Expr) -> Callable:
    """An activation of what input and state add up to."""

    def body(t: Expr, r: Expr, j: Expr) -> Expr:
        return call(function, added.at(t, r, _row(gate, size, j)) + hidden.at(t, r, j))

    return body


def _lstm(s: _Steps, n: int, x: Sequence[Value], params: Sequence, start: States) -> States:
    """With a projection, the state that products take is a product of the cell's output."""
    wi, wh, *biases, projection = params if len(params) == 5 else (*params, None)
    size = s.meta.shape[2]
    added = _inputs(s.b, s.meta.dtype, x, wi, biases)
    h, c, before = s.state("h", start[0]), s.declared("c"), s.state("before", start[0])
    s.settle(before, s.before(h, start[0], n))
    hidden = s.products(before, wh, 4)
    gates = []
    for gate, function in enumerate(("sigmoid", "sigmoid", "tanh", "sigmoid")):
        gates.append(s.declared("gate"))
        s.settle(gates[-1], _gate(function, added, hidden[gate], gate, size))
    put, kept, new, shown = gates
    old = s.declared("old")
    s.settle(old, s.before(c, start[1], n))
    s.settle(c, lambda *at: kept.at(*at) * old.at(*at) + put.at(*at) * new.at(*at))
    wide = s.state("wide") if projection else h
    s.settle_state(wide, lambda *at: shown.at(*at) * call("tanh", c.at(*at)))
    if projection:
        s.settle_state(h, s.products(wide, projection, 1)[0].at)
    return h, c


def _gru(s: _Steps, n: int, x: Sequence[Value], params: Sequence, start: States) -> States:
    """The bias of the state's part of the third gate is inside the reset gate's product. The state
    before is written out where it is mixed with the new one: one of its elements is taken there, a
    row of it in products, and what both took would be a launch of its own in each step."""
    wi, wh, bi, bh = params
    size = s.meta.shape[2]
    added = _inputs(s.b, s.meta.dtype, x, wi, (bi,))
    h, before = s.state("h"), s.state("before")
    s.settle(before, s.before(h, start[0], n))

    def earlier(*at: Expr) -> Expr:
        made = s.before(h, start[0], n)(*at)
        return cast("f32", made) if s.rounds else made

    hidden = s.products(before, wh, 3)

    def moved(gate: int, *at: Expr) -> Expr:
        made = hidden[gate].at(*at)
        return made + bh.wide(_row(gate, size, at[2])) if bh else made

    def given(gate: int, *at: Expr) -> Expr:
        return added.at(*at[:2], _row(gate, size, at[2]))

    reset, update, new = s.declared("reset"), s.declared("update"), s.declared("new")
    s.settle(reset, lambda *at: call("sigmoid", given(0, *at) + moved(0, *at)))
    s.settle(update, lambda *at: call("sigmoid", given(1, *at) + moved(1, *at)))
    s.settle(new, lambda *at: call("tanh", given(2, *at) + reset.at(*at) * moved(2, *at)))
    s.settle_state(h, lambda *at: new.at(*at) + update.at(*at) * (earlier(*at) - new.at(*at)))
    return (h,)


def _plain(function: str) -> Callable[..., States]:
    def cell(s: _Steps, n: int, x: Sequence[Value], params: Sequence, start: States) -> States:
        wi, wh, *biases = params
        added = _inputs(s.b, s.meta.dtype, x, wi, biases)
        h, before = s.state("h"), s.state("before")
        s.settle(before, s.before(h, start[0], n))
        (hidden,) = s.products(before, wh, 1)
        s.settle_state(h, _gate(function, added, hidden, 0, s.meta.shape[2]))
        return (h,)

    return cell


def _run(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    start: States,
    net: _Net,
    batch_first: bool,
    cell: Callable[..., States],
) -> tuple[Value, ...]:
    """The last layer's states at all steps, then each sort of state of all layers at the end."""
    dtype = computed(input.dtype)
    if batch_first:
        input = _transposed(b, input)
    meta = Meta(dtype, (*input.shape[:2], start[-1].shape[2]))
    below: tuple[Value, ...] = (input,)
    ends = []
    for layer in range(net.num_layers):
        made = []
        for direction in range(net.directions):
            n = layer * net.directions + direction
            steps = _Steps(b, meta, input.dtype, b.indices(1)[0], direction == 1)
            found = cell(steps, n, below, net.of(n), start)
            made.append(found[0])
            last = minus(meta.shape[0], Number(1)) if direction == 0 else Number(0)
            ends.append((found, last))
        below = tuple(made)
        if net.dropout and layer + 1 < net.num_layers:
            below = tuple(_dropped(b, x, net.dropout) for x in below)
    states = [_ended(b, out[k + 1], ends, k) for k in range(len(start))]
    return _joined(b, out[0], below, batch_first), *states


def _dropped(b: Builder, x: Value, share: float) -> Value:
    """What the next layer takes of one."""
    return native_dropout(b, (x.meta, Meta("b8", x.shape)), x, share)[0]


def _transposed(b: Builder, x: Value) -> Value:
    """[T, B, I] of [B, T, I]"""
    rows, steps, size = x.shape
    return b.define(Meta(x.dtype, (steps, rows, size)), lambda t, r, i: x.at(r, t, i), "x")


def _joined(b: Builder, out: Meta, parts: Sequence[Value], batch_first: bool) -> Value:
    """Both directions side by side."""
    size = parts[0].shape[2]

    def body(first: Expr, second: Expr, j: Expr) -> Expr:
        t, r = (second, first) if batch_first else (first, second)
        if len(parts) == 1:
            return parts[0].at(t, r, j)
        back = parts[1].at(t, r, j - size, pad=0.0)
        return where(j < size, parts[0].at(t, r, j, pad=0.0), back)

    return b.define(out, body, "output")


def _ended(b: Builder, out: Meta, ends: Sequence, which: int) -> Value:
    """[layers * directions, B, H]"""

    def body(n: Expr, r: Expr, j: Expr) -> Expr:
        made = None
        for k, (states, last) in enumerate(ends):
            read = states[which].at(last, r, j)
            made = read if made is None else where(n < k, made, read)
        return made

    return b.define(out, body, "end")


@rule("lstm.input")
def lstm(
    b: Builder,
    out: Sequence[Meta],
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    net = _Net(params, has_biases, num_layers, bidirectional, dropout if train else 0.0)
    return _run(b, out, input, tuple(hx), net, batch_first, _lstm)


def _of_one_state(operator: str, cell: Callable[..., States]) -> None:
    @rule(f"{operator}.input")
    def network(
        b: Builder,
        out: Sequence[Meta],
        input: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Value, ...]:
        net = _Net(params, has_biases, num_layers, bidirectional, dropout if train else 0.0)
        return _run(b, out, input, (hx,), net, batch_first, cell)


_of_one_state("gru", _gru)
_of_one_state("rnn_tanh", _plain("tanh"))
_of_one_state("rnn_relu", _plain("relu"))
