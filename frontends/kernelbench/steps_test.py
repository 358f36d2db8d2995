"""What a `ModelNew` keeps between calls of the tensors of its module, and where its steps write."""

import copy

import pytest
import torch

from frontends.kernelbench.steps import _model_new_held, _ModelNewSteps

WANTED = (("part.weight", torch.float32, (4,), False), ("count", torch.float32, (4,), True))


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(4), requires_grad=False)


class Model(torch.nn.Module):
    """Scales its argument, and counts up."""

    def __init__(self):
        super().__init__()
        self.part = Part()
        self.register_buffer("count", torch.zeros(4))
        self.compute = 0

    def forward(self, x):
        held = _model_new_held(self, WANTED, x)
        x = held.apart(x)

        def constants():
            self.compute += 1
            return (held.tensors[0] * 3,)

        (tripled,) = held.constants((0,), constants)
        y = torch.empty(2, 2)
        STEPS([x, tripled, y], held)
        held.put_back()
        return y


def count_up(before, after):
    after.copy_(before + 1)


def scale(x, tripled, own, y):
    own.copy_(x * tripled)
    y.copy_(own.view(2, 2))


STEPS = _ModelNewSteps(
    None,
    given=("x", "tripled", "y"),
    held=("weight", "count"),
    memory=256,
    inside={"1.own": (128, torch.float32, (4,))},
    steps=(
        (count_up, "count", "count"),
        (scale, "x", "tripled", "1.own", "y"),
    ),
)


def agrees(model, x, computed):
    expected, count = (x * (3 * model.part.weight)).view(2, 2), model.count + 1
    assert torch.equal(model(x), expected) and torch.equal(model.count, count)
    assert model.compute == computed


def test_steps_write_where_the_module_holds_a_buffer():
    model = Model()
    place = model.count.data_ptr()
    agrees(model, torch.rand(4), 1)
    agrees(model, torch.rand(4), 1)
    assert model.count.data_ptr() == place and model.count.tolist() == [2] * 4


def test_tensors_that_are_replaced_moved_or_changed_are_found():
    model, x = Model(), torch.rand(4)
    agrees(model, x, 1)
    model.part.weight.mul_(2)
    agrees(model, x, 2)
    model.part.weight.data = torch.rand(4)
    agrees(model, x, 3)
    model.part = Part()
    agrees(model, x, 4)
    model.count = torch.ones(4)
    agrees(model, x, 5)  # all that was made of the former tensors is made again
    agrees(model, x, 5)


@pytest.mark.parametrize(
    "data", [torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), torch.zeros(4).double()]
)
def test_a_tensor_that_becomes_another_one_is_refused(data):
    model, x = Model(), torch.rand(4)
    model(x)
    model.part.weight.data = data
    with pytest.raises(ValueError, match="`part.weight` is .*; allowed: torch.float32"):
        model(x)


def test_the_same_memory_in_another_form_is_another_tensor():
    model, x = Model(), torch.rand(4)
    model(x)
    model.part.weight.data = model.part.weight.data.view(torch.int32)
    with pytest.raises(ValueError, match="int32"):
        model(x)


def test_a_buffer_that_is_not_in_row_major_order_is_written_too():
    model = Model()
    model.count = torch.zeros(8)[::2]
    for _ in range(3):
        model(torch.rand(4))
    assert model.count.tolist() == [3] * 4


def test_a_step_reads_no_tensor_that_another_step_has_written():
    """As if all were read first: the weight and the argument share memory with what is counted up."""
    model = Model()
    model.count = model.part.weight.data
    before = model.count.clone()
    x = torch.rand(4)
    assert torch.equal(model(x), (x * (3 * before)).view(2, 2))
    assert torch.equal(model.count, before + 1) and torch.equal(model.part.weight, before + 1)
    model, memory = Model(), torch.rand(6)
    model.count, x = memory[2:], memory[:4]
    before = memory.clone()
    assert torch.equal(model(x), (before[:4] * (3 * model.part.weight)).view(2, 2))
    assert torch.equal(model.count, before[2:] + 1)


def test_a_copy_has_tensors_of_its_own():
    model, x = Model(), torch.rand(4)
    model(x)
    other = copy.deepcopy(model)
    agrees(other, x, 2)
    agrees(model, x, 1)
    assert model.count.tolist() == other.count.tolist() == [2] * 4


def test_gradients_are_refused_once_they_are_asked_for():
    model, x = Model(), torch.rand(4)
    model(x)
    model.requires_grad_(True)
    with torch.no_grad():
        agrees(model, x, 2)
    with pytest.raises(ValueError, match="requires gradients"):
        model(x)


class Again:
    """Notes launches, and makes them again on the memory at addresses."""

    def __init__(self):
        self.where, self.made, self.asked = (0, 1), [], 0

    def place(self):
        return self.where

    def kind(self, tensors):
        return tuple(t.data_ptr() % 16 == 0 for t in tensors)

    def noted(self, launch, tensors):
        self.asked += 1
        launch(*tensors)

        def again(stream, values):
            self.made.append((launch, stream, list(values)))

        return [(again, [(n, None) for n in range(len(tensors))])]


@pytest.fixture
def again(monkeypatch):
    made = Again()
    monkeypatch.setattr(STEPS, "again", made)
    monkeypatch.setattr(STEPS, "known", {})
    return made


def test_launches_are_made_again_on_addresses(again):
    model, x, other = Model(), torch.rand(4), torch.rand(4)
    agrees(model, x, 1)
    assert again.asked == 2 and not again.made
    y = model(other)
    (first, stream, counted), (second, _, scaled) = again.made
    assert (first, second, stream, again.asked) == (count_up, scale, 1, 2)
    assert counted == [model.count.data_ptr()] * 2
    assert (scaled[0], scaled[3]) == (other.data_ptr(), y.data_ptr()) and scaled[2] % 64 == 0


def test_launches_are_noted_for_each_device_and_alignment(again):
    model, memory = Model(), torch.rand(8)
    for n, (at, where) in enumerate([(0, (0, 1)), (1, (0, 1)), (0, (1, 1))], 1):
        again.where = where
        for _ in range(2):
            model(memory[at : at + 4])
        assert again.asked == 2 * n and len(again.made) == 2 * n
    again.where = 0, 9
    model(memory[:4])
    assert again.made[-1][1] == 9 and again.asked == 6
    again.where = None  # somebody watches
    agrees(model, memory[:4], 1)
    assert len(again.made) == 8 and again.asked == 6


def test_launches_that_cannot_be_made_again_are_made_as_the_first(again, monkeypatch):
    noted = again.noted
    monkeypatch.setattr(again, "noted", lambda *given: noted(*given) and None)
    model = Model()
    for _ in range(3):
        agrees(model, torch.rand(4), 1)
    assert again.asked == 2 and not again.made
