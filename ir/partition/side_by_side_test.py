"""One-element maps that read only inputs share a kernel; others are unchanged."""

import numpy as np

from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.partition.side_by_side import MOST
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network


def outputs_of(inputs, outputs, *lines):
    """The outputs of each step, after the network's results were compared with the spec's."""
    names = ", ".join(line.partition("[")[0] for line in lines if line.partition("[")[0] in outputs)
    types = ", ".join(outputs.values())
    head = f'def f({inputs}) -> ({types}):\n    """F."""\n'
    spec = parse_spec(head + "".join(f"    {line}\n" for line in (*lines, f"return {names}")))
    given = random_inputs(spec, {}, np.random.default_rng(1))
    made = partition(spec, {})
    expected = evaluate(spec, given, {})
    for t, ours in zip(spec.outputs, evaluate_network(made, given), strict=True):
        np.testing.assert_array_equal(ours, expected[t.name])
    return [set(step.outputs) for step in made.steps]


def test_counters_of_a_network_share_a_kernel():
    steps = outputs_of(
        "a: i64[()], b: i64[()], x: f32[8, 4], c: i64[()]",
        {"n": "i64[()]", "m": "i64[()]", "y": "f32[8, 4]", "k": "i64[()]"},
        "n[()] = a[()] + 1",
        "m[()] = b[()] + 1",
        "y[i, j] = exp(x[i, j])",
        "k[()] = c[()] + 1",
    )
    assert steps == [{"n", "m", "k"}, {"y"}]


def test_what_reads_something_computed_has_its_own():
    steps = outputs_of(
        "a: i64[()], b: i64[()], x: i64[8]",
        {"n": "i64[()]", "k": "i64[()]", "m": "i64[()]"},
        "n[()] = a[()] + 1",
        "s[()] = sum(x[i], i)",
        "k[()] = s[()] + b[()]",
        "m[()] = b[()] + 1",
    )
    assert steps == [{"n", "m"}, {"k"}]


def test_a_kernel_takes_so_many():
    count = MOST + 3
    steps = outputs_of(
        ", ".join(f"a{n}: i64[()]" for n in range(count)),
        {f"n{n}": "i64[()]" for n in range(count)},
        *(f"n{n}[()] = a{n}[()] + 1" for n in range(count)),
    )
    assert [len(step) for step in steps] == [MOST, 3]


def test_maps_of_several_elements_stay_alone():
    steps = outputs_of(
        "a: f32[8], b: f32[8]",
        {"n": "f32[8]", "m": "f32[8]"},
        "n[i] = a[i] + 1.0",
        "m[i] = b[i] + 1.0",
    )
    assert steps == [{"n"}, {"m"}]
