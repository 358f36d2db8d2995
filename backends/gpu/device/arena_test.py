"""All tensors of a launch in one buffer, on torch's CPU in place of a GPU."""

import numpy as np
import pytest
import torch

from backends.backend import BackendError
from backends.gpu.device import arena
from backends.gpu.device.arena import FENCE, Arena
from ir.nest.nest import Launch, LoopNest, Parameter
from ir.parse.parse import parse_spec
from ir.schedule import Schedule
from ir.spec import Size

SPEC = parse_spec(
    "def scale(x: f32[M], c: b8[M]) -> (f32[M], i32[M]):\n"
    '    """Scale."""\n'
    "    y[m] = where(c[m], x[m], 2.0 * x[m])\n"
    "    z[m] = m\n"
    "    return y, z\n"
)
M = 5
GIVEN = {"x": np.arange(M, dtype=np.float32), "c": np.array([True, False] * 2 + [True])}
X, C = (torch.from_numpy(array) for array in GIVEN.values())


@pytest.fixture
def made(monkeypatch):
    """The arena of a launch with a workspace."""
    monkeypatch.setattr(arena, "DEVICE", "cpu")
    between = Parameter("t", "bf16", (Size("M"),), "workspace")
    launch = Launch("scale_0", (between,), *((),) * 7)
    return Arena(
        LoopNest(SPEC, SPEC, Schedule("scale"), "", (("M", M),), (launch,)), {"M": M}, GIVEN
    )


def test_tensors_come_in_the_order_of_a_launch_inputs_as_given_and_the_rest_poisoned(made):
    _, (x, c, t, y, z) = made.placed()
    assert torch.equal(x, X) and torch.equal(c, C)
    assert t.dtype == torch.bfloat16 and t.isnan().all() and y.isnan().all()
    assert z.dtype == torch.int32 and not (z == torch.arange(M)).any()
    assert all(each.is_contiguous() and each.data_ptr() % 64 == 0 for each in (x, c, t, y, z))


def test_outputs_are_what_was_written(made):
    buffer, (_, _, t, y, z) = made.placed()
    t.fill_(1.0)
    y.copy_(2 * X)
    z.copy_(torch.arange(M))
    found = made.taken(buffer).outputs()
    assert list(found) == ["y", "z"]
    assert torch.equal(found["y"], 2 * X) and torch.equal(found["z"], z)


def test_each_launch_has_a_buffer_of_its_own(made):
    (first, _), (second, _) = made.placed(), made.placed()
    first.zero_()
    made.taken(second).outputs()


@pytest.mark.parametrize("name, number", [("x", 0), ("c", 1), ("t", 2), ("y", 3), ("z", 4)])
@pytest.mark.parametrize("at", [-1, -FENCE, FENCE, 2 * FENCE - 1])
def test_a_write_beside_a_tensor_is_seen_and_says_of_which(made, name, number, at):
    """Each is shorter than a fence is long."""
    buffer, tensors = made.placed()
    start = tensors[number].data_ptr() - buffer.data_ptr()
    buffer[start + at] = 0
    with pytest.raises(BackendError, match=f"the kernel writes outside `{name}`"):
        made.taken(buffer).outputs()


@pytest.mark.parametrize("name, number", [("x", 0), ("c", 1)])
def test_a_write_to_an_input_is_seen(made, name, number):
    buffer, tensors = made.placed()
    tensors[number][M - 1] = 0
    with pytest.raises(BackendError, match=f"the kernel changed its input `{name}`"):
        made.taken(buffer).outputs()


def test_what_lies_beside_a_tensor_is_not_a_number(made):
    _, (x, *_) = made.placed()
    for at in (-1, M, FENCE // 4 - 1, FENCE // 4):
        assert x.as_strided((1,), (1,), x.storage_offset() + at).isnan().all()


def test_inputs_are_compared_part_by_part(made, monkeypatch):
    monkeypatch.setattr(arena, "PART", FENCE)
    buffer, (_, c, *_) = made.placed()
    made.taken(buffer).outputs()
    c[M - 1] = False
    with pytest.raises(BackendError, match="the kernel changed its input `c`"):
        made.taken(buffer).outputs()


def test_what_a_launch_changes_is_not_what_the_next_is_given(made):
    _, (x, *_) = made.placed()
    x.fill_(9.0)
    assert torch.equal(made.placed()[1][0], X)
