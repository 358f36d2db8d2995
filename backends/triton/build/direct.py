"""Launches past Triton's own way to a compiled kernel: what it bound, specialised and looked up for tensors of
a kind holds for all tensors of that kind.

Triton compiles a kernel for the types of its arguments, for whether an address is a multiple of 16, for numbers
(which a plan fixes), and on AMD for whether a tensor's memory is within 2 GiB. Shapes and strides choose what a plan
launches. These and the device are a kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime import jit
from triton.runtime.jit import JITFunction

from backends.triton.build.plan import Argument, Descriptor, Launched

Kind = tuple[object, ...]
# Who puts something else there, before or after this, wants to see all launches.
_RUN = JITFunction.run if JITFunction.run.__globals__ is vars(jit) else None
_RANGED = torch.version.hip is not None
_RANGE = 2**31 - 1  # bytes


@dataclass(frozen=True, slots=True)
class Direct:
    """A launch on any tensors of a kind."""

    hooks: list[Any]  # of the kernel: what Triton's own way calls before each launch
    compiled: CompiledKernel  # held, so that its function stays loaded
    start: tuple[int, int, int]  # programs along each axis
    run: Any  # Triton's launcher of the kernel
    loaded: tuple[Any, ...]  # the function, its packed metadata, and no launch metadata and hooks
    values: tuple[Any, ...]  # by parameter, constants included
    tensors: tuple[tuple[int, int], ...]  # which value is which tensor
    descriptors: tuple[tuple[int, Descriptor], ...]

    def __call__(self, given: Sequence[Any], stream: int) -> None:
        """Puts it into a stream. given: the tensors of the plan."""
        values = list(self.values)
        for at, position in self.tensors:
            values[at] = given[position]
        for at, one in self.descriptors:
            values[at] = described(one, given)
        self.run(*self.start, stream, *self.loaded, *values)


def unwatched() -> bool:
    """Whether a launch by Triton's own way would do nothing but launch: nobody has put a hook or another
    function there, and nothing asks for other code than usual."""
    runtime = knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return (
        JITFunction.run is _RUN
        # A chain has calls; it may be one function, or None.
        and not getattr(enter, "calls", enter)
        and not getattr(leave, "calls", leave)
        and not runtime.debug
        and not knobs.compilation.instrumentation_mode
        and runtime.add_stages_inspection_hook is None
    )


def kind(device: int, tensors: Sequence[Any]) -> Kind:
    """What kernels for tensors on a device depend on."""
    return (*lying(device, tensors), *[(t.shape, t.stride(), t.dtype) for t in tensors])


def lying(device: int, tensors: Sequence[Any]) -> Kind:
    """The same, of tensors whose dtypes, shapes and order are known: where they lie."""
    found = (device, *[t.data_ptr() % 16 == 0 for t in tensors])
    if _RANGED:
        found += tuple(t.untyped_storage().nbytes() <= _RANGE for t in tensors)
    return found


def again(made: Sequence[tuple[Launched, Any, Any]]) -> list[Direct]:
    """How launches are made again: what a plan said, the kernel, and what Triton's own way gave for it. Empty
    where that way does more than launch: it interprets, chooses options (`heuristics`), calls hooks of the
    kernel, or compares globals that it reads."""
    for _, kernel, compiled in made:
        if type(kernel) is not JITFunction or not isinstance(compiled, CompiledKernel):
            return []
        if kernel.pre_run_hooks or kernel.used_global_vals:
            return []
    return [_direct(*one) for one in made]


def _direct(one: Launched, kernel: Any, compiled: CompiledKernel) -> Direct:
    named = {name: v for name, v in one.options.items() if name in kernel.signature.parameters}
    bound = kernel.signature.bind(*one.arguments, **named)
    bound.apply_defaults()
    values = tuple(bound.arguments.values())
    x, y, z = (*one.grid, 1, 1)[:3]
    return Direct(
        kernel.pre_run_hooks,
        compiled,
        (x, y, z),
        compiled.run,
        (compiled.function, compiled.packed_metadata, None, None, None),
        values,
        tuple((n, v.position) for n, v in enumerate(values) if isinstance(v, Argument)),
        tuple((n, v) for n, v in enumerate(values) if isinstance(v, Descriptor)),
    )


def described(one: Descriptor, tensors: Sequence[Any]) -> Any:
    """A tensor descriptor as Triton has it."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(tensors[one.position], *map(list, one.parts))
