"""Fixtures shared by the tests of this backend: hand-written sources, nests for them, and machines."""

import tomllib
from pathlib import Path

import pytest

from backends.triton.build import compile as compiler
from backends.triton.interpret import interpreter, launch
from backends.triton.testing.walks import emitted
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.nest.nest import Launch, LoopNest, Parameter
from ir.parse.parse import parse_spec
from ir.schedule import Schedule
from machines.registry import read
from testing.samples.samples import workload

HERE = Path(__file__).parent
SPECS = {
    "scale": (
        "def scale(x: f32[M, N]) -> f32[M, N]:\n"
        '    """Twice and one more."""\n'
        "    y[m, n] = 2.0 * x[m, n] + 1.0\n"
        "    return y\n"
    ),
    "matmul": (
        "def matmul(a: bf16[M, K], b: bf16[K, N]) -> bf16[M, N]:\n"
        '    """The product."""\n'
        "    y[m, n] = sum(a[m, k] * b[k, n], k)\n"
        "    return y\n"
    ),
    "row_max": (
        "def row_max(x: f32[M, N]) -> (f32[M], i32[M]):\n"
        '    """The largest of each row, and where it stands."""\n'
        "    y[m] = max(x[m, n], n)\n"
        "    p[m] = argmax(x[m, n], n)\n"
        "    return y, p\n"
    ),
    "pick": (
        "def pick(c: b8[M], i: i64[M], h: f16[M], d: f64[M]) -> (b8[M], i64[M], f16[M], f64[M]):\n"
        '    """Chosen and added, in each format."""\n'
        "    a[m] = ~c[m]\n"
        "    j[m] = where(c[m], i[m], i[m] + i[m])\n"
        "    g[m] = h[m] + h[m]\n"
        "    e[m] = d[m] + d[m]\n"
        "    return a, j, g, e\n"
    ),
    "bag": (
        "def bag(table: f32[V, D], at: i32[L], start: i32[B + 1]) -> f32[B, D]:\n"
        '    """Sums of rows of a table."""\n'
        "    y[b, d] = sum(table[at[n], d], n=range(start[b], start[b + 1]))\n"
        "    return y\n"
    ),
}


@pytest.fixture(scope="session", autouse=True)
def patient():
    """A busy machine may take long to compile and to interpret, which is not a fault."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (compiler, interpreter, launch):
            patch.setattr(module, "SECONDS", 1800.0)
        yield


@pytest.fixture
def nest_of():
    """A nest that only defines the tensors of its launches: each launch has all of them."""

    def make(name, launches=1, **sizes):
        spec = parse_spec(SPECS[name])
        inputs = tuple(Parameter(t.name, t.dtype, t.shape, "input") for t in spec.inputs)
        outputs = tuple(Parameter(t.name, t.dtype, t.shape, "output") for t in spec.outputs)
        nothing = ((),) * 7
        stubs = tuple(
            Launch(f"{spec.name}_{n}", (*inputs, *outputs), *nothing) for n in range(launches)
        )
        return LoopNest(spec, spec, Schedule(spec.name), "", tuple(sizes.items()), stubs)

    return make


@pytest.fixture
def machine_of():
    """The machine with a target's name."""
    folder = HERE.parent / "targets"
    return lambda name: read(tomllib.loads((folder / f"{name}.toml").read_text()))


@pytest.fixture
def source_of():
    """The source in testdata with a name."""
    return lambda name: (HERE / "testdata" / f"{name}.py").read_text()


@pytest.fixture
def first_build(machine_of, tmp_path):
    """The figures of the build of a library kernel's autoschedule."""

    def make(kernel, target, sizes=None):
        work, chip = workload(kernel), machine_of(target)
        sizes = sizes or work.tune
        nest = lower(work.spec, autoschedule(work.spec, chip, sizes), chip, sizes)
        text = emitted(nest, chip, tmp_path).file.read_text(encoding="utf-8")
        return compiler.build(text, nest, chip, tmp_path).figures

    return make
