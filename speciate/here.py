"""The target that a call's tensors are on."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from backends.program.launcher import place
from backends.registry import backend_for, served_by, target, target_names
from ir.errors import KernelError

CPU = "cpu"


def target_here(*tensors: Any) -> str:
    """The name of the target on whose device tensors lie: the first that is measured here. A
    KernelError where they lie on several devices, or where there is none.

    tensors: in any structure; other leaves are passed over. Without tensors the CPU is meant.
    """
    places = {t.device.type for t in tree_leaves(tensors) if isinstance(t, torch.Tensor)} or {CPU}
    if len(places) > 1:
        raise KernelError(
            f"tensors are on several devices: {', '.join(sorted(places))}", allowed="one device"
        )
    wanted = places.pop()
    for name in target_names():
        machine = target(name)
        try:
            backend = backend_for(machine)
            served = served_by(machine, backend)
            measured = backend.available(served)["correct_by"] == "device"
        except KernelError:
            continue  # its packages are not installed
        if measured and place(backend, served) == wanted:
            return name
    raise KernelError(
        f"no target is measured on `{wanted}` here",
        allowed=", ".join(target_names()),
        hint="name one with target=NAME",
    )
