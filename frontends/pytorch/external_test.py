"""Calls are left to PyTorch by name, and made with what kernels give."""

import pytest
import torch

from frontends.pytorch.external import (
    calls,
    names_of,
    operands,
    outside,
    require_called,
    stem,
)
from frontends.pytorch.module import imported
from ir.errors import KernelError

X = torch.eye(3) + 1


@torch.library.custom_op("speciate_test::transposed", mutates_args=())
def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone()


@transposed.register_fake
def _(x):
    return x.new_empty(x.shape[1], x.shape[0])


def eigen(x):
    values, vectors = torch.linalg.eigh(torch.relu(x))
    return values + 1


def test_a_call_is_what_the_spec_is_given_and_returns():
    made = imported(eigen, [X], allow_torch=["_linalg_eigh"])
    (external,), (one,) = made.external, outside(made)
    assert external.operator == one.name == "aten._linalg_eigh.default"
    assert operands(external) == one.inputs and one.inputs[0] in {t.name for t in made.spec.outputs}
    assert one.outputs == (made.spec.inputs[1].name, None), "nothing reads the vectors"
    assert names_of(made) == ("_linalg_eigh",)
    (call,) = calls(made, "cpu")
    values, vectors = call([X])
    torch.testing.assert_close(values, torch.linalg.eigvalsh(X))
    assert vectors is None


def test_an_argument_that_only_pytorch_reads_is_an_input():
    made = imported(lambda x, y: torch.sin(x) + y, [X, X + 1], allow_torch=["sin"])
    assert [a.name for a in made.arguments] == ["x", "y"]


def test_results_lie_in_memory_of_their_own():
    made = imported(lambda x: x.t() + x, [X], allow_torch=["t", "permute", "transpose"])
    (call,) = calls(made, "cpu")
    (found,) = call([X])
    assert found.is_contiguous() and found.data_ptr() != X.data_ptr() and torch.equal(found, X.t())


def test_an_operator_of_another_namespace_is_named_with_it():
    with pytest.raises(KernelError, match="--allow-torch speciate_test.transposed"):
        imported(lambda x: transposed(x) * 2, [X])
    made = imported(lambda x: transposed(x) * 2, [X], allow_torch=["speciate_test.transposed"])
    assert names_of(made) == ("speciate_test.transposed",) == (stem(made.external[0].operator),)


def test_lists_of_results_and_of_operands():
    made = imported(
        lambda x: torch.stack(torch.split(x, [1, 2])[::-1][:1] * 2),
        [X],
        allow_torch=["split_with_sizes", "stack"],
    )
    split, stack = calls(made, "cpu")
    none, part = split([X])
    assert none is None and torch.equal(stack([part])[0], torch.stack([X[1:], X[1:]]))


def test_what_is_made_of_nothing_is_made_where_tensors_lie():
    made = imported(lambda x: torch.arange(3) * x, [X], allow_torch=["arange"])
    assert outside(made)[0].inputs == ()
    for place in ("cpu", "meta"):
        (found,) = calls(made, place)[0]([])
        assert found.device.type == place and found.shape == (3,)


def test_a_call_that_has_effects_is_made_too():
    """A solution checks that it could be had, by an operator without results."""
    names = ["_linalg_solve_ex"]
    with pytest.raises(KernelError, match="--allow-torch _linalg_check_errors"):
        imported(lambda x: torch.linalg.solve(x, x + 1), [X], allow_torch=names)
    names.append("_linalg_check_errors")
    made = imported(lambda x: torch.linalg.solve(x, x + 1), [X], allow_torch=names)
    solve, check = calls(made, "cpu")
    assert names_of(made) == tuple(names) and outside(made)[1].outputs == (None,)
    found, *_, info = solve([X, X + 1])
    torch.testing.assert_close(found, torch.linalg.solve(X, X + 1))
    assert check([info]) == [None]
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        check([info + 1])


@pytest.mark.parametrize(
    ("function", "names", "fault"),
    [
        (eigen, ["_linalg_eig_h"], "did you mean `_linalg_eigh`"),
        (eigen, ["name"], "no operator `name`"),
        (eigen, ["nowhere.sin"], "no operator `nowhere.sin`"),
        (lambda x: torch.as_strided(x, (3,), (2,)), ["as_strided"], "how tensors lie in memory"),
        (lambda x: torch.unique(x) + 1, ["_unique2"], "depends on the values"),
        (lambda x: torch.view_as_real(x + 1j), ["view_as_real"], "complex"),
    ],
)
def test_what_cannot_be_left_is_told(function, names, fault):
    with pytest.raises(KernelError, match=fault):
        imported(function, [X], allow_torch=names)


def test_an_operator_that_nothing_calls_is_told():
    made = [imported(eigen, [X], allow_torch=["_linalg_eigh", "svd"])]
    require_called(made, ["_linalg_eigh"])
    with pytest.raises(KernelError, match="no call of `svd`"):
        require_called(made, ["_linalg_eigh", "svd"])
