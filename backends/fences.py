"""Fences: what a kernel may not write shows after a run, on whatever device its tensors lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from backends.backend import BackendError


class Buffer(Protocol):
    """A tensor of a kernel between fences, on any device."""

    def whole(self) -> bool:
        """Whether nothing was written into the fences."""

    def holds(self, given: Any) -> bool:
        """Whether it has the bits of what it was given."""


def require_untouched(buffers: Mapping[str, Buffer], inputs: Iterable[tuple[str, Any]]) -> None:
    """BackendError("check") where a kernel wrote beside a tensor or to an input. buffers: of all
    tensors. inputs: name and content of each input, as it was given."""
    for name, buffer in buffers.items():
        if not buffer.whole():
            raise BackendError("check", f"the kernel writes outside `{name}`")
    for name, given in inputs:
        if not buffers[name].holds(given):
            raise BackendError("check", f"the kernel changed its input `{name}`")


def require_beside(name: str, same: bool) -> None:
    """BackendError("check") where a kernel wrote beside an output that is a part of a larger tensor. same:
    whether what is beside it is as it was."""
    if not same:
        raise BackendError("check", f"the kernel writes beside `{name}`, a part of a larger tensor")
