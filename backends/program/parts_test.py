"""Steps that store parts of one buffer give what the network gives by the reference, on tensors and on arrays."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from backends.backend import Built
from backends.compiled import Kernels, compiled, networks
from backends.program.kernel import KernelCall
from backends.program.launcher import launcher
from backends.program.saved import NETWORK, contents, linked, saved_network
from backends.program.sealed import seal, unseal
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.partition import parts_in_place
from ir.partition.partition import partition
from ir.reference.reference import evaluate
from ir.spec import Part

TARGETS = ("h200", "npu", "cpu")
# `a` and `b` are stored in place; `x` is an input, and is copied; `t` is read after that, and returned.
SPEC = parse_spec('''
def joined(
    x: f32[3, 8, 12], v: f32[8, 8], w: f32[16, 8], u: f32[8, 32],
) -> (f32[3, 32, 12], f32[3, 8, 12]):
    """Two products and an input beside one another, and a product of all."""
    a[n, c, y] = sum(x[n, k, y] * v[c, k], k)
    b[n, d, y] = sum(x[n, k, y] * w[d, k], k)
    t[n, o, y]: [3, 32, 12] = where(o < 8, pad(a[n, o, y], 0.0), where(o < 24, pad(b[n, o - 8, y], 0.0), pad(x[n, o - 24, y], 0.0)))
    s[n, c, y] = sum(t[n, o, y] * u[c, o], o)
    return t, s
''')


# Of a dense block: `e` reads what is there of `t`, and is stored beside it.
DENSE = parse_spec('''
def dense(
    x: f32[3, 8, 12], v: f32[8, 8], w: f32[8, 16],
) -> (f32[3, 24, 12], f32[16]):
    """Two layers, each of all before it."""
    z[n, c, y] = sum(x[n, k, y] * v[c, k], k)
    a[n, c, y] = sum(exp(x[n, k, y]) * v[c, k], k)
    s[n, o, y]: [3, 16, 12] = where(o < 8, pad(z[n, o, y], 0.0), pad(a[n, o - 8, y], 0.0))
    m[o] = max(s[n, o, y], n, y)
    e[n, d, y] = sum(s[n, o, y] * w[d, o], o)
    t[n, q, y]: [3, 24, 12] = where(q < 16, pad(s[n, q, y], 0.0), pad(e[n, q - 16, y], 0.0))
    return t, m
''')
SPECS = {"joined": SPEC, "dense": DENSE}
FIRSTS = {"joined": [(0, 32), (8, 32)], "dense": [(0, 24), (8, 24), (16, 24)]}


def drawn(run, seed=0):
    made = torch.Generator().manual_seed(seed)
    return {b.name: torch.randn(b.shape, generator=made) for b in run.network.inputs}


def close(run, found, inputs):
    arrays = {n: t.double().numpy() for n, t in inputs.items()}
    exact = evaluate(SPECS[run.network.name], arrays, {})
    for t, a in zip(SPECS[run.network.name].outputs, found, strict=True):
        np.testing.assert_allclose(np.asarray(a, np.float64), exact[t.name], rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module", params=[(name, of) for name in TARGETS for of in SPECS])
def run(request, tmp_path_factory):
    name, of = request.param
    machine, folder = target(name), tmp_path_factory.mktemp(name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts_in_place, "FEWEST", 0)
        made = compiled(SPECS[of], {}, {}, machine, backend_for(machine), folder)
    parts = {t.part for s in made.network.steps for t in s.spec.outputs}
    assert {Part(1, n, w) for n, w in FIRSTS[of]} <= parts
    assert of == "joined" or any("t" in s.inputs and "t" in s.outputs for s in made.network.steps)
    return made


def test_arrays(run):
    inputs = drawn(run)
    close(run, run({n: t.numpy() for n, t in inputs.items()}), inputs)


@pytest.mark.parametrize("reuse", [False, True])
def test_tensors(run, reuse):
    made = linked(run).program(reuse=reuse)
    for seed in (0, 1):
        close(run, made(drawn(run, seed)), drawn(run, seed))


def test_the_concatenation_can_be_written_where_the_caller_says(run):
    where = torch.full(run.network.buffer("t").shape, torch.nan)
    made = linked(run).program(into={"t": where})
    first, second = made(drawn(run)), made(drawn(run))
    close(run, [where, second[1]], drawn(run))
    assert first[0] is second[0] and first[0].data_ptr() == where.data_ptr()


def test_a_saved_program_is_the_same(run, tmp_path):
    made = contents(run)
    seal(tmp_path / "saved", made.files, made.facts)
    sealed = unseal(tmp_path / "saved")
    loaded = saved_network(sealed)
    assert loaded.network == run.network and NETWORK in sealed.files
    close(run, loaded.program()(drawn(run)), drawn(run))


def test_a_backend_that_refuses_parts_gets_none():
    machine = target("npu")
    plain = dataclasses.replace(
        machine, rendering=dataclasses.replace(machine.rendering, parts=False)
    )
    kernels = Kernels(plain, backend_for(plain))
    network, _ = networks(SPEC, {}, {}, kernels)
    assert not any(t.part for s in network.steps for t in s.spec.outputs)
    (part,) = {
        s.spec for s in partition(SPEC, {}).steps if s.spec.outputs[0].part == Part(1, 0, 32)
    }
    with pytest.raises(KernelError, match="which backend `sim` of `npu` does not store"):
        kernels.emit(part)


ONE = parse_spec('''
def doubled(x: f32[3, 8]) -> f32[3, part(8, first=4, of=16)]:
    """Double."""
    y[m, n] = x[m, n] * 2.0
    return y
''')


def test_a_kernel_by_itself_gives_its_part(tmp_path: Path):
    machine = target("npu")
    kernels = Kernels(machine, backend_for(machine))
    nest, source = kernels.emit(ONE)
    built = kernels.backend.build(source, nest, machine, tmp_path)
    made = launcher(kernels.backend, built, nest, machine)
    x, whole = torch.randn(3, 8), torch.full((3, 16), 7.0)
    made.launch(x, whole)
    assert torch.equal(whole[:, 4:12], 2 * x)
    assert (whole[:, :4] == 7).all() and (whole[:, 12:] == 7).all()
    (found,) = KernelCall(ONE, made, "cpu")(x)
    assert torch.equal(found, 2 * x) and isinstance(built, Built)
