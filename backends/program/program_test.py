"""A program gives what its network gives by the reference, and keeps what it is given."""

import numpy as np
import pytest
import torch

from backends.compiled import compiled
from backends.program.program import NOTHING
from backends.program.saved import linked
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.partition.partition import partition
from ir.reference.stepwise import evaluate

TARGETS = ("h200", "npu")  # one whose kernels take tensors, one whose kernels take arrays
SPEC = parse_spec('''
def layers(x: f32[8, 32], w: f32[32, 32], v: f32[32, 32], idx: i64[8]) -> (f32[8, 32], f32[8]):
    """Two products with a softmax between them, and a gather."""
    a[m, n] = sum(x[m, k] * w[k, n], k)
    mx[m] = max(a[m, n], n)
    e[m, n] = exp(a[m, n] - mx[m])
    l[m] = sum(e[m, n], n)
    p[m, n] = e[m, n] / l[m]
    y[m, n] = sum(p[m, k] * v[k, n], k)
    z[m] = y[m, idx[m]] + l[m]
    return y, z
''')


def program(run, fixed=NOTHING, reuse=False):
    return linked(run).program(fixed, reuse)


def drawn(seed=0):
    made = torch.Generator().manual_seed(seed)
    return {
        "x": torch.randn(8, 32, generator=made),
        "w": torch.randn(32, 32, generator=made),
        "v": torch.randn(32, 32, generator=made),
        "idx": torch.randint(32, (8,), generator=made),
    }


def exact(inputs):
    arrays = {n: (t.double() if t.is_floating_point() else t).numpy() for n, t in inputs.items()}
    return [torch.from_numpy(a) for a in evaluate(partition(SPEC, {}), arrays)]


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module", params=TARGETS)
def run(request, tmp_path_factory):
    machine = target(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    return compiled(SPEC, {}, {}, machine, backend_for(machine), folder)


def test_results_are_the_references_and_fresh(run):
    made = program(run)
    first, second = drawn(0), drawn(1)
    found = made(first)
    close(found, exact(first))
    kept = [t.clone() for t in found]
    close(made(second), exact(second))
    assert all(torch.equal(a, b) for a, b in zip(found, kept, strict=True))


def test_fixed_inputs_are_not_copied_and_results_can_be_reused(run):
    inputs = drawn()
    fixed = {n: inputs[n] for n in ("w", "v")}
    made = program(run, fixed, reuse=True)
    asked = {n: inputs[n] for n in ("x", "idx")}
    found = made(asked)
    close(found, exact(inputs))
    fixed["w"].mul_(0.5)
    again = made(asked)
    assert [t.data_ptr() for t in again] == [t.data_ptr() for t in found]
    close(again, exact(inputs))


def test_inputs_are_left_alone(run):
    inputs = drawn()
    before = {n: t.clone() for n, t in inputs.items()}
    program(run)(inputs)
    assert all(torch.equal(inputs[n], before[n]) for n in inputs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": torch.zeros(8, 31)}, r"`x` is torch.float32\[8, 31\]"),
        ({"x": torch.zeros(8, 32, dtype=torch.float64)}, "torch.float64"),
        ({"x": torch.zeros(32, 8).t()}, "strides"),
        ({"x": torch.zeros(8, 32, device="meta")}, "meta"),
        ({"x": 3}, "a tensor"),
        ({"x": torch.zeros(8, 32, requires_grad=True)}, "`x` requires gradients"),
    ],
)
def test_other_tensors_are_refused(run, change, words):
    with pytest.raises(KernelError, match=words):
        program(run)(drawn() | change)


def test_a_missing_input_is_named(run):
    inputs = drawn()
    del inputs["v"]
    with pytest.raises(KernelError, match="input `v`"):
        program(run)(inputs)


def test_what_is_between_shares_bytes(tmp_path):
    lines = "\n".join(
        f"    t{n + 1}[m, n] = sum(t{n}[m, k] * w[k, n], k)"
        if n
        else "    t1[m, n] = sum(x[m, k] * w[k, n], k)"
        for n in range(6)
    )
    spec = parse_spec(
        'def chain(x: f32[16, 16], w: f32[16, 16]) -> f32[16, 16]:\n    """c"""\n'
        f"{lines}\n    return t6\n"
    )
    machine = target("npu")
    made = program(compiled(spec, {}, {}, machine, backend_for(machine), tmp_path))
    between = [b for b in made.network.buffers if b.role == "between"]
    assert len(between) == 5 and made.plan.bytes == 2 * 16 * 16 * 4
    x, w = torch.eye(16) + 0.1, torch.eye(16) * 0.5
    expected = np.linalg.multi_dot([x.double().numpy(), *[w.double().numpy()] * 6])
    close(made({"x": x, "w": w}), [torch.from_numpy(expected)])


def test_a_result_that_is_an_input_is_a_copy(tmp_path):
    spec = parse_spec(
        'def same(x: f32[4, 8]) -> (f32[4, 8], f32[4, 8]):\n    """s"""\n'
        "    y[m, n] = x[m, n]\n    z[m, n] = x[m, n] + 1.0\n    return y, z\n"
    )
    machine = target("npu")
    made = program(compiled(spec, {}, {}, machine, backend_for(machine), tmp_path))
    x = torch.randn(4, 8)
    y, z = made({"x": x})
    assert torch.equal(y, x) and y.data_ptr() != x.data_ptr() and torch.equal(z, x + 1)
