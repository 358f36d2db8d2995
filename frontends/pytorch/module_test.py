"""An imported module gives what the module gives: results, structures, buffers; errors say where."""

import pytest
import torch
from torch import nn

from frontends.pytorch.against import checked
from frontends.pytorch.module import imported
from frontends.pytorch.reference import answer
from ir.errors import KernelError


def test_results_come_back_in_their_structure():
    x, y = torch.randn(2, 3), torch.randn(3)
    checked(lambda x, y: {"sum": x + y, "more": [x, (3, None, y + 1)]}, x, y)


def test_what_is_returned_twice_is_computed_once():
    made = checked(lambda x: [x + 1] * 2, torch.randn(2, 3))
    assert len(made.spec.outputs) == 1


def test_arguments_may_be_nested_and_named():
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    made = checked(lambda pair, *, z: pair["a"] + pair["b"] + z, {"a": x, "b": y}, kwargs={"z": x})
    assert [a.tensor for a in made.arguments] == [True] * 3


def test_arguments_that_nothing_reads_are_not_given():
    made = checked(lambda x, y: x + 1, torch.randn(2), torch.randn(3))
    assert [a.name for a in made.arguments] == ["x", None]
    assert [t.name for t in made.spec.inputs] == ["x"]


def test_plain_arguments_are_fixed():
    made = checked(lambda x, n: x + n, torch.randn(2), 3)
    with pytest.raises(KernelError, match="an argument is 4"):
        answer(made, None, (torch.randn(2), 4))


def test_arguments_of_another_structure_are_refused():
    made = imported(lambda x: x + 1, [torch.randn(2)])
    with pytest.raises(KernelError, match="the arguments are"):
        answer(made, None, (torch.randn(2), torch.randn(2)))


def test_names_of_the_language_are_free_for_it():
    def added(exp, i0, Range):
        return exp + i0 + Range

    made = checked(added, *(torch.randn(2) for _ in range(3)))
    assert [t.name for t in made.spec.inputs] == ["x_exp", "x_i0", "x_range"]


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(3))
        self.scale = nn.Parameter(torch.randn(3))
        self.last = torch.ones(3)

    def forward(self, x):
        self.steps.add_(1)
        self.last = self.last + x
        return self.last + self.scale


def test_buffers_and_attributes_that_change_are_returned():
    module = Counted()
    made = checked(module, torch.randn(3))
    assert {m.target for m in made.mutations} == {"steps", "last"}
    assert {h.path for h in made.held} == {"steps", "scale", "last"}
    assert "last" in vars(module)


def test_arguments_that_change_are_returned():
    made = checked(lambda x, y: y.add_(x).add(1), torch.randn(3), torch.randn(3))
    assert [m.target for m in made.mutations] == [1]


def test_a_size_may_stay_open():
    made = checked(
        lambda x, y: x + y,
        torch.randn(4, 3),
        torch.randn(4, 3),
        calls=[(torch.randn(7, 3), torch.randn(7, 3))],
        dynamic={"x": {0: "B"}, "y": {0: "C"}},
    )
    assert [s.name for s in made.sizes] == ["B"]


def test_a_size_that_the_code_fixes_is_refused():
    with pytest.raises(KernelError, match="fixes a size"):
        imported(lambda x: x.reshape(2, 3) + 1, [torch.randn(2, 3)], dynamic={"x": {0: "B"}})


@pytest.mark.parametrize("name", ["b", "1B", "B c"])
def test_sizes_have_names_of_the_language(name):
    with pytest.raises(KernelError, match="cannot name a size"):
        imported(lambda x: x + 1, [torch.randn(2, 3)], dynamic={"x": {0: name}})


def test_open_sizes_are_of_arguments():
    with pytest.raises(KernelError, match="no argument `z`"):
        imported(lambda x: x + 1, [torch.randn(2, 3)], dynamic={"z": {0: "B"}})


class Solver(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvalsh(x) + 1


def test_an_operator_without_a_rule_says_where_it_is_called():
    module = nn.Sequential(nn.Identity(), Solver())
    with pytest.raises(KernelError) as caught:
        imported(module, [torch.randn(3, 3)])
    assert "aten._linalg_eigh" in str(caught.value)
    assert "module_test.py" in str(caught.value) and "torch.linalg.eigvalsh(x)" in str(caught.value)
    assert "1 (Solver)" in str(caught.value)


def test_an_operator_may_be_left_to_pytorch():
    made = imported(Solver(), [torch.randn(3, 3)], allow_torch=["_linalg_eigh"])
    (call,) = made.external
    assert call.operator == "aten._linalg_eigh.default"
    with pytest.raises(KernelError, match="left to PyTorch"):
        answer(made, None, [torch.randn(3, 3)])


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (lambda x: x + 1 if x.sum() > 0 else x, "decides by the values"),
        (lambda x: x + 1j, "a result is complex"),
        (lambda x: x, "nothing is computed"),
        (lambda x: x @ x, "cannot be exported"),
    ],
)
def test_what_has_no_equations_is_refused(function, fault):
    with pytest.raises(KernelError, match=fault):
        imported(function, [torch.randn(2, 3)])


def test_places_come_as_parts_by_dimension():
    x = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    checked(lambda x: x.nonzero(as_tuple=True), x)
    checked(lambda x: torch.where(x > 1), x)
