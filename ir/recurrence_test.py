"""Recurrences: which cycles are legal, what they compute, and the errors for the others."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.errors import KernelError
from ir.estimate.estimate import estimate, intensity
from ir.lower.lower import lower
from ir.nest.nest import Loop, Store
from ir.parse.parse import parse_spec
from ir.print import spec_text
from ir.recurrence import Recurrence, ordered, recurrences
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate, evaluate_storage
from ir.verify import facts
from testing.samples.right import EXACT, require_right
from testing.samples.samples import (
    RECURRENT,
    SMALL,
    WITH_REGISTERS,
    WITH_THREADS,
    lowered,
    spec_of,
    statements,
    workload,
)

SHAPES = [(1, 1, 1, 1), (3, 2, 5, 4), (6, 3, 7, 17)]  # T, B, I, H
GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def of_gates(name, shape, rng):
    """The inputs of a spec in torch's form, and the module with the same weights."""
    steps, batch, width, hidden = shape
    n = GATES[name]
    made = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[name]
    module = made(width, hidden).double()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.normal(size=tuple(p.shape))))
    held = {k: v.detach().numpy() for k, v in module.named_parameters()}
    inputs = {
        "x": rng.normal(size=(steps, batch, width)),
        "wi": held["weight_ih_l0"].reshape(n, hidden, width),
        "wh": held["weight_hh_l0"].reshape(n, hidden, hidden),
    }
    biases = [held[f"bias_{k}_l0"].reshape(n, hidden) for k in ("ih", "hh")]
    if name == "gru":
        inputs |= {"bi": biases[0], "bh": biases[1]}
    else:
        inputs["bias"] = sum(biases)
    if name == "rnn":
        inputs = {k: a[0] if k in ("wi", "wh", "bias") else a for k, a in inputs.items()}
    else:
        inputs["h0"] = rng.normal(size=(batch, hidden))
    if name == "lstm":
        inputs["c0"] = rng.normal(size=(batch, hidden))
    return inputs, module


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", GATES)
def test_the_reference_gives_what_torch_gives(name, shape):
    inputs, module = of_gates(name, shape, np.random.default_rng(3))
    start = [torch.from_numpy(inputs[k])[None] for k in ("h0", "c0") if k in inputs]
    first = tuple(start) if name == "lstm" else start[0] if start else None
    states, last = module(torch.from_numpy(inputs["x"]), first)
    found = evaluate(workload(name).spec, inputs, dict(zip("TBIH", shape, strict=True)))
    np.testing.assert_allclose(found["h"], states.detach(), EXACT, EXACT)
    if name == "lstm":
        np.testing.assert_allclose(found["hn"], last[0][0].detach(), EXACT, EXACT)
        np.testing.assert_allclose(found["cn"], last[1][0].detach(), EXACT, EXACT)


def test_a_recurrence_that_reads_the_next_step_runs_from_the_end():
    a, x = np.random.default_rng(1).normal(size=(2, 5, 3))
    state, expected = np.zeros(3), np.empty((5, 3))
    for t in range(5)[::-1]:
        expected[t] = state = a[t] * state + x[t]
    found = evaluate(workload("backwards").spec, {"a": a, "x": x}, {"T": 5, "D": 3})
    np.testing.assert_allclose(found["s"], expected, EXACT)


def test_results_between_steps_are_rounded_to_what_is_stored():
    spec = parse_spec(
        'def f(x: bf16[T, D]) -> bf16[T, D]:\n    """F."""\n'
        "    s[t, d] = f32(pad(s[t - 1, d], 0.0)) + f32(x[t, d])\n    return s\n"
    )
    x = np.array([[1.0], [2.0**-9], [2.0**-9]])
    assert evaluate_storage(spec, {"x": x}, {"T": 3, "D": 1})["s"][2, 0] == 1.0
    assert evaluate(spec, {"x": x}, {"T": 3, "D": 1})["s"][2, 0] == 1 + 2.0**-8


# -- what is a recurrence ---------------------------------------------------------------------


def test_the_equations_of_a_cycle_are_one_recurrence_and_no_others():
    found = recurrences(workload("lstm").spec)
    assert [r.index for r in found] == ["t"]
    assert found[0].targets[0] == "before" and found[0].targets[-1] == "h"
    assert not {"gx", "hn", "cn"} & set(found[0].targets)
    assert recurrences(workload("backwards").spec) == (Recurrence("t", ("s",), True),)
    assert recurrences(workload("softmax").spec) == ()


def test_equations_between_those_of_a_recurrence_come_before_it_or_after_it():
    spec = parse_spec(
        'def f(x: f32[M, K]) -> (f32[M, K], f32[M, K]):\n    """F."""\n'
        "    a[m, k] = pad(y[m - 1, k], 0.0) + x[m, k]\n"
        "    apart[m, k] = x[m, k] * 2.0\n"
        "    after[m, k] = a[m, k] + 1.0\n"
        "    y[m, k] = a[m, k] * apart[m, k]\n"
        "    return y, after\n"
    )
    assert [e.target for e in ordered(spec)] == ["apart", "a", "y", "after"]
    x = np.random.default_rng(0).normal(size=(4, 3))
    found = evaluate(spec, {"x": x}, {"M": 4, "K": 3})
    nest = lower(spec, plain(spec, SMALL, {"M": 4, "K": 3}), SMALL, {"M": 4, "K": 3})
    for name, array in interpret(nest, {"x": x}, {"M": 4, "K": 3}).items():
        np.testing.assert_allclose(array, found[name], EXACT)


def test_what_is_carried_and_not_returned_is_f32_or_wider():
    kinds = {
        "x[m, k]": "f32",
        "f64(x[m, k])": "f64",
        "f32(x[m, k]) * 2.0": "f32",
    }
    for value, dtype in kinds.items():
        spec = spec_of(
            f"s[m, k] = pad(s[m - 1, k], 0.0) + {value}",
            "y[m, k] = bf16(s[m, k])",
            inputs="x: bf16[M, K]",
            result="bf16[M, K]",
        )
        assert facts(spec).tensors["s"].dtype == dtype


@pytest.mark.parametrize("name", RECURRENT)
def test_what_prints_parses(name):
    spec = workload(name).spec
    assert parse_spec(spec_text(spec)) == spec


# -- what is none -----------------------------------------------------------------------------

HEAD = 'def f(x: f32[M, K]) -> f32[M, K]:\n    """F."""\n'
FAULTS = [
    (["y[m, k] = y[m, k] + x[m, k]"], "`y` is used before it is defined", "y[m, k]"),
    (
        ["y[m, k] = pad(z[m - 1, k], 0.0)", "z[m, k] = x[m, k]"],
        "`z` is used before it is defined",
        "pad(z[m - 1, k], 0.0)",
    ),
    (
        ["a[m, k] = y[m, k] * 2.0", "y[m, k] = pad(a[m - 1, k], 0.0) + x[m, k]"],
        "`y` is used before it is defined",
        "y[m, k]",
    ),
    (
        ["y[m, k] = pad(y[m - 2, k], 0.0) + x[m, k]"],
        "a recurrence reads `y` 2 steps away along `m`",
        "pad(y[m - 2, k], 0.0)",
    ),
    (
        ["y[m, k] = pad(y[m - 1, k - 1], 0.0) + x[m, k]"],
        "a recurrence runs over `m` and `k`",
        "pad(y[m - 1, k - 1], 0.0)",
    ),
    (
        ["y[m, k] = pad(y[m - 1, k], 0.0) + pad(y[m + 1, k], 0.0) + x[m, k]"],
        "a recurrence runs both ways along `m`",
        "pad(y[m + 1, k], 0.0)",
    ),
    (["y[m, k] = y[m - 1, k] + x[m, k]"], "the position `m - 1` leaves `y`", "m - 1"),
    (
        ["a[k] = sum(pad(y[m - 1, k], 0.0), m)", "y[m, k] = a[k] + x[m, k]"],
        "`a` is part of a recurrence over `m` and has no index `m`",
        "a[k]",
    ),
    (
        ["a[m, k] = pad(y[m - 1, k], 0.0)", "s[k] = sum(a[m, k], m)", "y[m, k] = s[k] + x[m, k]"],
        "`s` is part of a recurrence over `m` and has no index `m`",
        "s[k]",
    ),
    (
        [
            "a[m, k] = pad(y[m - 1, k], 0.0)",
            "s[m, k] = cumsum(a[m, k], m)",
            "y[m, k] = s[m, k] + x[m, k]",
        ],
        "`s` is part of a recurrence over `m` and scans along `m`",
        "cumsum(a[m, k], m)",
    ),
    (
        ["a[m, k] = pad(y[m - 1, k], 0.0)", "y[m, k] = pad(a[m - 3, k], 0.0) + x[m, k]"],
        "`a` is part of a recurrence over `m` and is read there at `m - 3`",
        "pad(a[m - 3, k], 0.0)",
    ),
]


@pytest.mark.parametrize(("lines", "what", "caret"), FAULTS)
def test_a_cycle_that_cannot_be_stepped_through_is_refused(lines, what, caret):
    text = HEAD + "".join(f"    {line}\n" for line in (*lines, "return y"))
    with pytest.raises(KernelError) as error:
        parse_spec(text)
    assert what in error.value.what
    place = error.value.place
    underlined = text.splitlines()[place.line - 1][place.column :]
    assert underlined.startswith(caret)
    assert error.value.hint


# -- lowering ---------------------------------------------------------------------------------


def require_right_when_checked(name, machine, schedule, sizes):
    spec = workload(name).spec
    nest = lower(spec, schedule, machine, sizes)
    for checked in workload(name).checks:
        require_right(nest, checked)
    return nest


@pytest.mark.parametrize("machine", [SMALL, WITH_REGISTERS, WITH_THREADS], ids=lambda m: m.name)
@pytest.mark.parametrize("scheduler", [autoschedule, plain])
@pytest.mark.parametrize("name", RECURRENT)
def test_every_step_computes_what_the_reference_computes(name, scheduler, machine):
    sizes = workload(name).checks[-1]
    schedule = scheduler(workload(name).spec, machine, sizes)
    require_right_when_checked(name, machine, schedule, sizes)


@pytest.mark.parametrize(("name", "launches"), [("rnn", 2), ("gru", 2), ("lstm", 3)])
def test_a_step_is_one_launch(name, launches):
    w = workload(name)
    schedule = autoschedule(w.spec, WITH_THREADS, w.tune)
    nest = require_right_when_checked(name, WITH_THREADS, schedule, w.tune)
    steps = [launch for launch in nest.launches if launch.repeat]
    assert len(steps) == 1 and len(nest.launches) == launches
    assert steps[0].times({"T": 64}) == 64
    assert [g.index for g in nest.launches[0].grid] != []  # what needs no step lies before
    assert all(launch.repeat is None for launch in nest.launches if launch is not steps[0])


def test_sums_of_a_step_that_run_in_a_loop_share_it():
    w = workload("lstm")
    nest = lower(w.spec, autoschedule(w.spec, WITH_THREADS, w.tune), WITH_THREADS, w.tune)
    (step,) = (launch for launch in nest.launches if launch.repeat)
    assert len([s for s in step.statements() if isinstance(s, Loop)]) <= 1


def test_a_launch_may_end_within_a_step():
    nest = lowered("lstm", "kernel(c)", "tile(j, size=4)", "place(j.outer, level=grid)")
    groups = [(repeat and repeat.index, len(launches)) for repeat, launches in nest.groups()]
    assert groups == [(None, 1), ("t", 2), (None, 1)]
    require_right_when_checked("lstm", SMALL, nest.schedule, workload("lstm").checks[-1])


def test_two_recurrences_over_one_index_run_one_after_the_other():
    spec = spec_of(
        "a[m, k] = pad(a[m - 1, k], 0.0) * 0.5 + x[m, k]",
        "y[m, k] = pad(y[m + 1, k], 0.0) * 0.5 + a[m, k]",
    )
    nest = lowered(spec, sizes={"M": 5, "K": 3})
    assert [(r.of, r.backwards) for r, _ in nest.groups()] == [("a", False), ("y", True)]
    x = np.random.default_rng(0).normal(size=(5, 3))
    expected = evaluate(spec, {"x": x}, {"M": 5, "K": 3})["y"]
    np.testing.assert_allclose(interpret(nest, {"x": x}, {"M": 5, "K": 3})["y"], expected, EXACT)


def test_what_a_step_hands_on_is_stored_and_nothing_else():
    nest = lowered("gru", sizes=workload("gru").checks[-1])
    (step,) = (launch for launch in nest.launches if launch.repeat)
    assert {s.tensor for s in step.statements() if isinstance(s, Store)} == {"h"}
    assert len(statements(nest, Store)) == 2  # the product before the steps, too


@pytest.mark.parametrize("machine", [SMALL, WITH_THREADS], ids=lambda m: m.name)
def test_an_estimate_counts_the_steps(machine):
    w = workload("backwards")
    nest = lower(w.spec, plain(w.spec, machine, w.tune), machine, w.tune)
    once = estimate(nest, machine, w.tune | {"T": 1})
    assert estimate(nest, machine, w.tune | {"T": 10}) >= 9 * once
    assert intensity(nest, machine, w.tune | {"T": 10})["launches"] == 10


@given(st.data())
def test_any_small_recurrence_is_lowered_as_the_reference_reads_it(data):
    lag = data.draw(st.sampled_from(["- 1", "+ 1"]))
    start = data.draw(st.sampled_from(["0.0", "1.5", "-2.0"]))
    other = data.draw(
        st.sampled_from(
            [
                "a[m, k] * 0.5",
                "sum(a[m, j] * w[j, k], j)",
                "max(a[m, j] + w[j, k], j)",
                "cumsum(a[m, k], k)",
            ]
        )
    )
    first = data.draw(
        st.sampled_from(
            [
                f"pad(y[m {lag}, k], {start})",
                f"where(m == 0, w[k, 0], pad(y[m {lag}, k], {start}))",
                f"pad(y[m {lag}, k], {start}) - pad(a[m {lag}, k], 0.0)",
            ]
        )
    )
    used = "x: f32[M, K], w: f32[K, K]" if "w[" in first + other else "x: f32[M, K]"
    spec = spec_of(
        f"a[m, k] = {first} * 0.5 + x[m, k]",
        f"b[m, k] = {other}",
        "y[m, k] = tanh(b[m, k] + x[m, k])",
        inputs=used,
    )
    sizes = {"M": data.draw(st.integers(1, 5)), "K": data.draw(st.integers(1, 6))}
    machine = data.draw(st.sampled_from([SMALL, WITH_THREADS]))
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    expected = evaluate(spec, inputs, sizes)["y"]
    nest = lower(spec, plain(spec, machine, sizes), machine, sizes)
    np.testing.assert_allclose(interpret(nest, inputs, sizes)["y"], expected, EXACT, EXACT)
