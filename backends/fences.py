"""Fences detect out-of-bounds writes of a kernel, on any device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from backends.backend import BackendError


class Buffer(Protocol):
    """A kernel's tensor between two fences, on any device."""

    def whole(self) -> bool:
        """Whether the fences are unchanged."""

    def holds(self, given: Any) -> bool:
        """Whether its bits equal those that it was initialised with."""


def require_untouched(buffers: Mapping[str, Buffer], inputs: Iterable[tuple[str, Any]]) -> None:
    """Raises BackendError("check") if a kernel wrote outside a tensor, or to an input.

    buffers: of all tensors.
    inputs: name and original content of each input.
    """
    for name, buffer in buffers.items():
        if not buffer.whole():
            raise BackendError("check", f"the kernel writes outside `{name}`")
    for name, given in inputs:
        if not buffers[name].holds(given):
            raise BackendError("check", f"the kernel changed its input `{name}`")


def require_beside(name: str, same: bool) -> None:
    """Raises BackendError("check") if a kernel wrote outside an output that is part of a larger
    tensor. same: whether the rest of that tensor is unchanged."""
    if not same:
        raise BackendError("check", f"the kernel writes beside `{name}`, a part of a larger tensor")
