"""What a kernel wrote beside its tensors or to its inputs is a fault, and says of which tensor."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from backends.backend import BackendError
from backends.fences import require_untouched


@dataclass
class Held:
    """A buffer. intact: its fences."""

    content: int
    intact: bool = True

    def whole(self):
        return self.intact

    def holds(self, given):
        return self.content == given


def test_outputs_may_change_and_inputs_may_not():
    require_untouched({"x": Held(1), "y": Held(7)}, [("x", 1)])
    with pytest.raises(BackendError, match="the kernel changed its input `x`") as caught:
        require_untouched({"x": Held(2), "y": Held(7)}, [("x", 1)])
    assert caught.value.stage == "check"


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_fence_of_any_tensor_counts(name):
    buffers = {"x": Held(1), "y": Held(7)}
    buffers[name].intact = False
    with pytest.raises(BackendError, match=f"the kernel writes outside `{name}`"):
        require_untouched(buffers, [("x", 1)])
