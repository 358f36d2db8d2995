"""Registered kernels stand in compiled code, have shapes, and the gradients of their pair."""

from pathlib import Path

import pytest
import torch

from backends.compiled import compiled
from backends.program.operator import program_operator
from backends.program.pair import kernel_call, pair_operator
from backends.program.saved import linked
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.parse.parse import parse_spec

DATA = Path(__file__).parent / "testdata"
SIZES = {"rmsnorm": {"M": 8, "K": 24}, "product": {"M": 8, "K": 24, "N": 16}}


def call_of(name, folder, sizes):
    machine = target("h200")
    spec = parse_spec((DATA / f"{name}.kir").read_text(), name)
    return kernel_call(spec, sizes, machine, backend_for(machine), folder)


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    return {
        name: pair_operator(
            f"speciate_test::{name}",
            call_of(name, folder, sizes),
            call_of(f"{name}_backward", folder, sizes),
        )
        for name, sizes in SIZES.items()
    }


def rmsnorm(x, g):
    r = torch.rsqrt((x * x).mean(1) + 1e-6)
    return x * r[:, None] * g, r


PLAIN = {"rmsnorm": rmsnorm, "product": lambda x, w: (x @ w,)}


def drawn(name, rows=8, grad=False):
    made = torch.Generator().manual_seed(3)
    second = (24,) if name == "rmsnorm" else (24, 16)
    shapes = ((rows, 24), second)
    return [torch.randn(s, generator=made).requires_grad_(grad) for s in shapes]


def many(found):
    return found if isinstance(found, tuple | list) else (found,)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("rows", [8, 5])
def test_an_operator_computes_its_spec_at_any_size(operators, name, rows):
    given = drawn(name, rows)
    for a, b in zip(many(operators[name](*given)), PLAIN[name](*given), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_gradients_are_autograds(operators, name):
    given, wide = drawn(name, grad=True), [t.detach().double() for t in drawn(name)]
    wide = [t.requires_grad_() for t in wide]
    found, expected = many(operators[name](*given)), PLAIN[name](*wide)
    weights = [
        torch.randn(t.shape, generator=torch.Generator().manual_seed(n))
        for n, t in enumerate(expected)
    ]
    sum((a * w).sum() for a, w in zip(found, weights, strict=True)).backward()
    sum((a * w.double()).sum() for a, w in zip(expected, weights, strict=True)).backward()
    for a, b in zip(given, wide, strict=True):
        torch.testing.assert_close(a.grad.double(), b.grad, rtol=1e-4, atol=1e-4)


def test_a_result_that_nothing_uses_has_no_part_in_gradients(operators):
    x, g = drawn("rmsnorm", grad=True)
    operators["rmsnorm"](x, g)[1].sum().backward()
    wide = x.detach().double().requires_grad_()
    rmsnorm(wide, g.detach().double())[1].sum().backward()
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=1e-4, atol=1e-5)


def test_compiled_code_takes_an_operator_whole(operators):
    def network(x, w):
        return torch.relu(operators["product"](x + 1.0, w)).sum(1)

    run = torch.compile(network, fullgraph=True, backend="aot_eager")
    given = drawn("product", grad=True)
    found = run(*given)
    torch.testing.assert_close(
        found, torch.relu((given[0] + 1.0) @ given[1]).sum(1), rtol=1e-4, atol=1e-4
    )
    found.sum().backward()
    other = drawn("product", grad=True)
    torch.relu((other[0] + 1.0) @ other[1]).sum().backward()
    torch.testing.assert_close(given[0].grad, other[0].grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PLAIN)
def test_the_library_finds_no_fault(operators, name):
    torch.library.opcheck(
        operators[name], tuple(drawn(name)), test_utils=("test_schema", "test_faketensor")
    )


def test_a_program_is_an_operator(tmp_path):
    spec = parse_spec(
        'def two(x: f32[4, 8], w: f32[8]) -> (f32[4], f32[4, 8]):\n    """t"""\n'
        "    y[m, k] = x[m, k] * w[k]\n    s[m] = sum(y[m, k], k)\n"
        "    return s, y\n"
    )
    machine = target("npu")
    run = compiled(spec, {}, {}, machine, backend_for(machine), tmp_path)
    w = torch.randn(8)
    made = program_operator("speciate_test::two", linked(run).program({"w": w}))
    x = torch.randn(4, 8)

    def both(x):
        s, y = made(x)
        return s[:, None] + y

    found = torch.compile(both, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, (x * w).sum(1, keepdim=True) + x * w)


@pytest.mark.parametrize(
    ("forward", "backward", "words"),
    [("product", "rmsnorm_backward", "asks for `g`"), ("rmsnorm", "product", "asks for `w`")],
)
def test_a_backward_of_another_kernel_is_refused(tmp_path, forward, backward, words):
    sizes = SIZES["rmsnorm"] | SIZES["product"]

    def made(name):
        wanted = {"M", "K"} | ({"N"} if "product" in name else set())
        return call_of(name, tmp_path, {n: s for n, s in sizes.items() if n in wanted})

    with pytest.raises(KernelError, match=words):
        pair_operator("speciate_test::wrong", made(forward), made(backward))


def test_tensors_that_do_not_fit_are_refused(tmp_path):
    call = call_of("product", tmp_path, SIZES["product"])
    with pytest.raises(KernelError, match=r"allowed: torch.float32\[24, 16\]"):
        call(torch.zeros(8, 24), torch.zeros(23, 16))
    with pytest.raises(KernelError, match="given 1 tensors"):
        call(torch.zeros(8, 24))
    with pytest.raises(KernelError, match="2 dimensions"):
        call(torch.zeros(8), torch.zeros(24, 16))
    given = torch.zeros(8, 24), torch.zeros(24, 16, requires_grad=True)
    with pytest.raises(KernelError, match="`w` requires gradients"):
        call(*given)
    with torch.no_grad():
        assert not call(*given)[0].any()
