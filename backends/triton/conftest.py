"""What the tests of this backend share: nests for hand-written sources, and machines."""

import tomllib
from pathlib import Path

import pytest

from ir.machine import machine
from ir.nest import Launch, LoopNest, Parameter
from ir.parse import parse_spec
from ir.schedule import Schedule

HERE = Path(__file__).parent
SPECS = {
    "scale": '''
def scale(x: f32[M, N]) -> f32[M, N]:
    """Twice and one more."""
    y[m, n] = 2.0 * x[m, n] + 1.0
    return y
''',
    "matmul": '''
def matmul(a: bf16[M, K], b: bf16[K, N]) -> bf16[M, N]:
    """The product."""
    y[m, n] = sum(a[m, k] * b[k, n], k)
    return y
''',
}


def nest_of(text, sizes, launches=1):
    """A nest that says no more than which tensors its launches have: all have all of them."""
    spec = parse_spec(text)
    inputs = tuple(Parameter(t.name, t.dtype, t.shape, "input") for t in spec.inputs)
    outputs = tuple(Parameter(t.name, t.dtype, t.shape, "output") for t in spec.outputs)
    nothing = ((),) * 7
    stubs = (
        Launch(f"{spec.name}_{n}", (*inputs, *outputs), *nothing) for n in range(launches)
    )
    given = tuple(sizes.items())
    return LoopNest(spec, spec, Schedule(spec.name), "", given, tuple(stubs))


@pytest.fixture
def machine_of():
    """The machine of a target's name."""
    folder = HERE.parent / "targets"
    return lambda name: machine(tomllib.loads((folder / f"{name}.toml").read_text()))


@pytest.fixture
def source_of():
    """The source in testdata of a name."""
    return lambda name: (HERE / "testdata" / f"{name}.py").read_text()
