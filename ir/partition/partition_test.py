"""A network computes what its spec does, with as few kernels as is safe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.network import Outside
from ir.parse.parse import parse_spec, parse_workload
from ir.partition.partition import partition
from ir.recurrence import recurrences
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network
from ir.spec import Number, Spec
from testing.samples.random_specs import sizes_for, specs
from testing.samples.samples import KERNELS, RECURRENT, RECURRENT_SPECS, workload


def agree(spec: Spec, sizes, aliases=None, inputs=None, **options):
    """The network of a spec, after its results were compared with the spec's."""
    made = partition(spec, sizes, aliases, **options)
    inputs = inputs or random_inputs(spec, sizes, np.random.default_rng(1))
    expected = evaluate(spec, inputs, sizes)
    found = evaluate_network(made, inputs)
    for t, ours in zip(spec.outputs, found, strict=True):
        np.testing.assert_allclose(ours, expected[t.name], rtol=1e-9, atol=1e-12)
    return made


def spec_of(inputs: str, result: str, *lines: str, returned: str = "y") -> Spec:
    body = "\n".join(f"    {line}" for line in (*lines, f"return {returned}"))
    return parse_spec(f'def f({inputs}) -> {result}:\n    """F."""\n{body}\n')


@given(st.data(), specs())
def test_any_spec_is_computed_by_its_network(data, spec):
    agree(spec, data.draw(sizes_for(spec)))


@given(st.data(), specs())
def test_so_it_is_where_each_equation_has_a_kernel_of_its_own(data, spec):
    def alone(one: Spec) -> None:
        if len(one.equations) > 1:
            raise KernelError("too large")

    made = agree(spec, data.draw(sizes_for(spec)), lowers=alone)
    assert all(len(step.spec.equations) == 1 for step in made.steps)


@pytest.mark.parametrize("name", KERNELS)
def test_the_library_is_computed_by_its_networks(name):
    found = workload(name)
    agree(found.spec, found.checks[-1])


@pytest.mark.parametrize("name", RECURRENT)
def test_a_recurrence_is_one_kernel(name):
    found = workload(name)
    for sizes in found.checks:
        made = agree(found.spec, sizes)
        assert sum(bool(recurrences(step.spec)) for step in made.steps) == 1


def test_what_is_done_to_results_of_a_product_is_done_in_its_kernel():
    made = agree(
        spec_of(
            "x: f32[4, 6], w: f32[6, 3], b: f32[3]",
            "f32[4, 3]",
            "a[m, n] = sum(x[m, k] * w[k, n], k)",
            "c[i, j] = a[i, j] + b[j]",
            "y[p, q] = relu(c[p, q])",
        ),
        {},
    )
    (step,) = made.steps
    assert [e.target for e in step.spec.equations] == ["a", "c", "y"]
    assert {e.indices for e in step.spec.equations} == {("i", "j")}


def test_a_softmax_is_one_kernel_over_one_pair_of_indices():
    made = agree(
        spec_of(
            "x: f32[4, 6]",
            "f32[4, 6]",
            "m[i]: [4] = max(x[i, j], j)",
            "p[a, b] = exp(x[a, b] - m[a])",
            "l[c] = sum(p[c, d], d)",
            "y[e, f] = p[e, f] / l[e]",
        ),
        {},
    )
    (step,) = made.steps
    assert {i for e in step.spec.equations for i in (*e.indices, *e.reduced)} == {"i", "j"}


def test_views_cost_no_kernel():
    made = agree(
        spec_of(
            "x: f32[4, 6]",
            "f32[3, 4]",
            "t[a, b] = x[b, a]",
            "h[i, j]: [3, 4] = t[2 * i, j]",
            "y[i, j] = exp(h[i, j])",
        ),
        {},
    )
    assert len(made.steps) == 1 and len(made.steps[0].spec.equations) == 1


@pytest.mark.parametrize("reduced", ["y[i]: [12] = cumsum(m[i // 4], i)", "y[()] = sum(m[j], j)"])
def test_what_a_reduction_or_scan_runs_along_stays_in_its_body(reduced):
    result = "f32[12]" if "cumsum" in reduced else "f32[()]"
    agree(spec_of("x: f32[()]", result, "m[a]: [3] = x[()]", reduced), {})


def test_another_shape_of_what_lies_in_memory_costs_no_kernel():
    spec = spec_of(
        "x: f32[4, 6]",
        "f32[8, 3]",
        "t[a, b] = x[a, b] + 1.0",
        "v[i, j]: [8, 3] = t[(i * 3 + j) // 6, (i * 3 + j) % 6]",
        "y[i, j] = exp(v[i, j])",
    )
    made = agree(spec, {}, aliases={"v": "t"})
    assert [s.outputs for s in made.steps] == [("t",), ("y",)]
    assert made.steps[1].spec.inputs[0].shape == (Number(24),)


def test_an_output_may_be_another_shape_of_an_input():
    spec = spec_of("x: f32[4, 6]", "f32[24]", "y[i]: [24] = x[i // 6, i % 6]")
    assert agree(spec, {}, aliases={"y": "x"}).steps == ()


def test_dimensions_of_one_element_are_not_computed_with():
    made = agree(
        spec_of(
            "x: f32[4, 6]",
            "f32[4, 6]",
            "m[i, o]: [4, 1] = sum(x[i, j], j)",
            "y[i, j] = x[i, j] - m[i, 0]",
        ),
        {},
    )
    (step,) = made.steps
    assert [len(e.at) for e in step.spec.equations] == [1, 2]


def test_copies_show_what_lies_in_memory():
    spec = spec_of(
        "x: f32[2, 6], w: f32[6, 4]",
        "f32[8]",
        "t[a, o, b]: [2, 1, 6] = x[a, b]",
        "u[c, d, r]: [2, 6, 1] = t[c, 0, d]",
        "v[i, j]: [2, 6] = u[(i * 6 + j) // 6, j, 0]",
        "p[m, n] = sum(v[m, k] * w[k, n], k)",
        "q[z]: [8] = p[z // 4, z % 4]",
        returned="q",
    )
    made = agree(spec, {}, aliases={"v": "u", "q": "p"})
    (step,) = made.steps
    assert step.inputs == ("x", "w") and made.outputs == (("p", (8,)),)


def test_terms_of_a_long_sum_are_computed_in_its_kernel():
    made = agree(
        spec_of(
            "x: f32[3, 9000], w: f32[9000]",
            "f32[3]",
            "t[i, j] = x[i, j] * w[j]",
            "a[i, j] = abs(t[i, j])",
            "s[i] = sum(a[i, j], j)",
            "y[i] = s[i] / 9000.0",
        ),
        {},
    )
    assert [[t.name for t in s.spec.outputs] for s in made.steps] == [["y"]]


@pytest.mark.parametrize("options", ["", ", reverse=True", ", exclusive=True"])
def test_terms_of_a_scan_are_computed_in_its_kernel(options):
    made = agree(
        spec_of(
            "x: f32[3, 50], w: b8[3, 50]",
            "f32[3, 50]",
            "t[i, j] = x[i, j] * f32(w[i, j])",
            f"s[p, q] = cumsum(t[p, q], q{options})",
            "y[i, j] = s[i, j] * 2.0",
        ),
        {},
    )
    assert [[e.target for e in s.spec.equations] for s in made.steps] == [["t", "s"], ["y"]]


def test_what_else_reads_the_terms_of_a_scan_finds_them():
    made = agree(
        spec_of(
            "x: f32[3, 50]",
            "(f32[3, 50], f32[3])",
            "t[i, j] = exp(x[i, j])",
            "y[p, q] = cumsum(t[p, q], q)",
            "z[i] = sum(t[i, j] * x[i, 49 - j], j)",
            returned="y, z",
        ),
        {},
    )
    assert sum(len(s.spec.equations) for s in made.steps) == 3


@pytest.mark.parametrize(("rows", "steps"), [(1024, 1), (16, 3)])
def test_long_rows_are_gone_through_by_one_kernel_where_there_are_many(rows, steps):
    spec = spec_of(
        f"x: f32[{rows}, 9000]",
        f"f32[{rows}, 9000]",
        "m[i] = max(x[i, j], j)",
        "s[i] = sum(exp(x[i, j] - m[i]), j)",
        "y[i, j] = exp(x[i, j] - m[i]) / s[i]",
    )
    assert len(partition(spec, {}).steps) == steps


def test_a_part_of_a_product_is_not_computed_over_its_indices():
    made = agree(
        spec_of(
            "x: f32[4, 6], w: f32[6, 8]",
            "f32[4, 4]",
            "a[m, n] = sum(x[m, k] * w[k, n], k)",
            "y[i, j]: [4, 4] = exp(a[i, j])",
        ),
        {},
    )
    assert [s.outputs for s in made.steps] == [("a",), ("y",)]


def test_maps_that_meet_later_share_a_kernel():
    made = agree(
        spec_of(
            "x: f32[4, 6]",
            "f32[4, 6]",
            "h[i, j] = x[i, j] * 0.5",
            "t[a, b] = tanh(x[a, b])",
            "y[p, q] = h[p, q] * t[p, q]",
        ),
        {},
    )
    (step,) = made.steps
    assert {e.indices for e in step.spec.equations} == {("i",)}


def test_a_map_beside_a_product_joins_it():
    made = agree(
        spec_of(
            "x: f32[4, 4], w: f32[4, 4]",
            "f32[4, 4]",
            "h[i, j] = exp(x[i, j])",
            "s[m, n] = sum(x[m, k] * w[k, n], k)",
            "y[p, q] = s[p, q] + h[p, q]",
        ),
        {},
    )
    assert len(made.steps) == 1


def test_maps_that_meet_transposed_do_not_share_a_kernel():
    agree(
        spec_of(
            "x: f32[4, 4]",
            "f32[4, 4]",
            "h[i, j] = exp(x[i, j])",
            "t[a, b] = tanh(x[a, b])",
            "y[p, q] = h[p, q] * t[q, p]",
        ),
        {},
    )


def test_a_map_that_another_kernel_needs_before_stays_before_it():
    made = agree(
        spec_of(
            "x: f32[4, 4], w: f32[4, 4]",
            "f32[4, 4]",
            "h[i, j] = exp(x[i, j])",
            "s[m, n] = sum(h[m, k] * w[k, n], k)",
            "t[m, n] = relu(s[m, n])",
            "u[m, n] = sum(t[m, k] * w[k, n], k)",
            "y[p, q] = u[p, q] + h[p, q]",
        ),
        {},
    )
    assert made.steps[0].outputs == ("h",) and len(made.steps) == 3


def test_equal_steps_share_a_kernel():
    steps = (("x", "a_0"), ("a_0", "a_1"), ("a_1", "a_2"))
    layer = "s{n}[m, n] = sum({x}[m, k] * w{n}[k, n], k)", "{y}[m, n] = relu(s{n}[m, n])"
    lines = [text.format(n=n, x=x, y=y) for n, (x, y) in enumerate(steps) for text in layer]
    inputs = ", ".join(f"{name}: f32[4, 4]" for name in ("x", "w0", "w1", "w2"))
    made = agree(spec_of(inputs, "f32[4, 4]", *lines, returned="a_2"), {})
    assert (len(made.steps), len(made.kernels())) == (3, 1)


def test_a_kernel_that_no_machine_takes_is_an_error():
    def never(_: Spec) -> None:
        raise KernelError("no such thing")

    with pytest.raises(KernelError, match="no such thing"):
        partition(spec_of("x: f32[4]", "f32[4]", "y[i] = exp(x[i])"), {}, lowers=never)


def test_the_equations_of_a_recurrence_share_their_loops():
    found = parse_workload((RECURRENT_SPECS / "lstm.kir").read_text())
    made = agree(found.spec, found.checks[-1])
    (step,) = [s for s in made.steps if "h" in [e.target for e in s.spec.equations]]
    reductions = {e.reduced for e in step.spec.equations if e.reduced}
    assert len(reductions) == 1 and len({e.indices for e in step.spec.equations if e.reduced}) == 1


def calls_of(spec: Spec, outside, inputs, expected):
    """Outside calls that check what they receive and return what the spec's inputs hold."""

    def call(one):
        def made(arrays):
            for name, array in zip(one.inputs, arrays, strict=True):
                np.testing.assert_allclose(array, expected[name], rtol=1e-9, atol=1e-12)
            return [None if name is None else inputs[name] for name in one.outputs]

        return made

    return [call(one) for one in outside]


def pausing(spec: Spec, sizes, outside, **options):
    """The network of a spec with outside calls, after its results were compared with the spec's."""
    made = partition(spec, sizes, outside=outside, **options)
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    expected = evaluate(spec, inputs, sizes)
    filled = {name for one in outside for name in one.outputs}
    given = {name: array for name, array in inputs.items() if name not in filled}
    found = evaluate_network(made, given, calls=calls_of(spec, outside, inputs, expected))
    for t, ours in zip(spec.outputs, found, strict=True):
        np.testing.assert_allclose(ours, expected[t.name], rtol=1e-9, atol=1e-12)
    return made


def test_no_kernel_is_both_before_and_after_a_call_from_outside():
    """If `y` and `z` shared a kernel, the call would wait for itself."""
    spec = spec_of(
        "x: f32[8], e: f32[8]",
        "(f32[8], f32[8])",
        "y[m] = relu(x[m])",
        "z[m] = y[m] + e[m]",
        returned="y, z",
    )
    assert len(partition(spec, {}).steps) == 1
    made = pausing(spec, {}, [Outside("call", ("y",), (None, "e"))])
    assert [type(each).__name__ for _, each in made.sequence()] == ["Step", "Pause", "Step"]
    assert made.buffer("e").role == "outside" and [b.name for b in made.inputs] == ["x"]


def test_calls_from_outside_wait_for_each_other():
    """Each needs the result of the one before; the last returns what an input holds."""
    spec = spec_of(
        "x: f32[8], e: f32[8], g: f32[8], h: f32[8]",
        "(f32[8], f32[8], f32[8])",
        "a[m] = e[m]",
        "b[m] = g[m] * 2 + h[m]",
        "c[m] = x[m]",
        returned="a, b, c",
    )
    calls = (Outside("1", (), ("e",)), Outside("2", ("a",), ("g",)), Outside("3", ("c",), ("h",)))
    made = pausing(spec, {}, calls)
    assert [p.before for p in made.pauses] == [0, 0, 0] and len(made.steps) == 1


@given(st.data(), specs())
def test_any_spec_is_computed_with_calls_from_outside(data, spec):
    """One call fills an input and receives outputs that do not depend on it."""
    assume(spec.inputs)
    name = data.draw(st.sampled_from([t.name for t in spec.inputs]))
    made_of = {name}
    while more := {e.target for e in spec.equations if made_of & set(e.sources())} - made_of:
        made_of |= more
    free = tuple(t.name for t in spec.outputs if t.name not in made_of)
    pausing(spec, data.draw(sizes_for(spec)), [Outside("call", free, (name,))])


def test_a_call_from_outside_that_is_not_given_is_told():
    spec = spec_of("x: f32[8], e: f32[8]", "f32[8]", "y[m] = x[m] + e[m]")
    made = partition(spec, {}, outside=[Outside("call", (), ("e",))])
    with pytest.raises(KernelError, match="calls from outside"):
        evaluate_network(made, {"x": np.zeros(8)})


def test_a_view_of_what_is_computed_twice_shows_the_first():
    spec = spec_of(
        "x: f32[4, 6]",
        "f32[24]",
        "a[i] = sum(x[i, j], j)",
        "b[i] = sum(x[i, j], j)",
        "v[k]: [24] = b[k // 6]",
        "s[i, j] = exp(x[i, j])",
        "t[i, j] = exp(x[i, j])",
        "w[k]: [24] = t[k // 6, k % 6]",
        "y[k]: [24] = w[k] * s[k // 6, k % 6] + v[k] * a[k // 6]",
    )
    made = agree(spec, {}, {"w": "t"})
    names = {b.name for b in made.buffers}
    assert {n for step in made.steps for n in step.inputs} <= names
    assert "t" not in names


def test_integers_between_kernels_carry_the_range_of_their_values():
    spec = parse_spec(
        "def s(x: f32[8, 16], w: f32[32, 4], v: f32[4, 4]) -> f32[8, 4]:\n"
        '    """S."""\n'
        "    p[m] = argmax(x[m, n], n)\n"
        "    g[m, k] = w[i64(p[m]) * 2 + 1, k]\n"
        "    y[m, j] = sum(g[m, k] * v[k, j], k)\n    return y\n"
    )
    steps = partition(spec, {}).steps
    ranges = [[e.value for e in t.range] for s in steps for t in s.spec.inputs if t.dtype != "f32"]
    assert ranges and all(r == [0, 16] for r in ranges)
    assert not any(t.range for s in steps for t in s.spec.outputs)
    for step in steps:
        for seed in range(4):
            inputs = random_inputs(step.spec, {}, np.random.default_rng(seed))
            evaluate(step.spec, inputs, {})
