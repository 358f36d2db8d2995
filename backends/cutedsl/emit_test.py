"""Golden texts of emitted kernels, one for each thing that emission knows how to do."""

import pytest

from backends.backend import BackendError
from backends.cutedsl.spelling import broken, templates
from backends.cutedsl.testing.samples import CASES, backend, machine_of, nest_of, own_machine
from backends.gpu.threads import thread
from backends.gpu.tile import SORTS
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec

OTHERS = (
    *("padded", "rounded", "stream_k_by_roles", "windowed", "whole", "whole_warps"),
    *("accumulated_by_two", "accumulated_staged", "accumulated_tf32", "accumulated_eight"),
)
GOLDEN = [n for n in CASES if n not in OTHERS]


@pytest.mark.parametrize("name", GOLDEN)
def test_an_emitted_kernel_is_the_golden_one(name, golden):
    text = backend().emit(nest_of(name), machine_of(own_machine(name)))
    golden(f"backends/cutedsl/golden/{name}.py", text)


def test_every_sort_of_name_and_statement_has_a_spelling():
    names = templates().table("threads/names.j2", "NAMES")
    assert set(SORTS) - {"descriptor", "bulk"} <= set(names)
    statements = templates().table("cutedsl/statements.j2", "STATEMENTS")
    own = {s.__name__ for s in thread.Statement.__subclasses__()}
    # The compiler orders the instructions of loops by itself.
    assert own - {"Interleave"} <= set(statements)


def test_a_dtype_that_kernels_do_not_hold_is_refused():
    spec = parse_spec(
        'def f(x: f8e8m0[M]) -> f32[M]:\n    """Double."""\n    y[m] = f32(x[m]) * 2.0\n    return y\n'
    )
    machine = machine_of("h200")
    nest = lower(spec, autoschedule(spec, machine, {"M": 8}), machine, {"M": 8})
    with pytest.raises(BackendError, match="tensors of f8e8m0 are not held here"):
        backend().emit(nest, machine)


def test_a_long_line_is_broken_at_its_outermost_brackets():
    short = "    y = f(a, b)"
    assert broken(short) == short
    long = "    y = f(" + ", ".join(f"argument_{n}(a, b)" for n in range(9)) + ")"
    lines = broken(long).splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("    y = f(", "        argument_0(a, b),", "    )")
