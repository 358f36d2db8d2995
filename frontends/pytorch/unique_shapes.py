"""Shapes of `unique_consecutive` along a dimension that is counted from the last.

PyTorch puts the number of groups at the wrong place among the sizes of its fake tensors then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_impls import op_implementations_dict

_OPERATOR = torch.ops.aten.unique_consecutive.default


@contextmanager
def unique_shapes() -> Iterator[None]:
    """Runs what is within with the right shapes."""
    before = op_implementations_dict[_OPERATOR]

    def counted(
        mode: Any,
        function: Any,
        x: torch.Tensor,
        inverse: bool = False,
        counts: bool = False,
        dim: int | None = None,
    ) -> Any:
        dim = dim % max(x.ndim, 1) if dim is not None else None
        return before(mode, function, x, inverse, counts, dim)

    op_implementations_dict[_OPERATOR] = counted
    try:
        yield
    finally:
        op_implementations_dict[_OPERATOR] = before
