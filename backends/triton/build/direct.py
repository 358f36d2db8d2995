"""Direct launches, which bypass Triton's launch path: what Triton bound, specialised and looked up
for tensors of one kind holds for all tensors of that kind.

Triton specialises a kernel on the types of its arguments, on whether an address is a multiple of
16, on numbers (which a plan fixes), and on AMD on whether a tensor's memory is within 2 GiB. Shapes
and strides determine what a plan launches. These and the device form a kind.
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
# Where somebody else replaced this function, before or after this import, they expect to see all launches.
_RUN = JITFunction.run if JITFunction.run.__globals__ is vars(jit) else None
_RANGED = torch.version.hip is not None
_RANGE = 2**31 - 1  # bytes


@dataclass(frozen=True, slots=True)
class Direct:
    """A launch for any tensors of a kind."""

    hooks: list[Any]  # of the kernel: hooks that Triton calls before each launch
    compiled: CompiledKernel  # a reference that keeps its function loaded
    start: tuple[int, int, int]  # programs along each axis
    run: Any  # Triton's launcher of the kernel
    loaded: tuple[Any, ...]  # the function, its packed metadata, and no launch metadata and hooks
    values: tuple[Any, ...]  # by parameter, constants included
    tensors: tuple[tuple[int, int], ...]  # positions of tensors among the values, and in the plan
    descriptors: tuple[tuple[int, Descriptor], ...]

    def __call__(self, given: Sequence[Any], stream: int) -> None:
        """Enqueues the launch into a stream. given: the tensors of the plan."""
        values = list(self.values)
        for at, position in self.tensors:
            values[at] = given[position]
        for at, one in self.descriptors:
            values[at] = described(one, given)
        self.run(*self.start, stream, *self.loaded, *values)


def unwatched() -> bool:
    """Whether Triton's launch path would only launch: no hook or replacement is installed, and no
    option requests other code."""
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
    """The kind of tensors on a device: everything on which their kernels depend."""
    return (*lying(device, tensors), *[(t.shape, t.stride(), t.dtype) for t in tensors])


def lying(device: int, tensors: Sequence[Any]) -> Kind:
    """The kind of tensors whose dtypes, shapes and strides are fixed: only their addresses matter."""
    found = (device, *[t.data_ptr() % 16 == 0 for t in tensors])
    if _RANGED:
        found += tuple(t.untyped_storage().nbytes() <= _RANGE for t in tensors)
    return found


def again(made: Sequence[tuple[Launched, Any, Any]]) -> list[Direct]:
    """Direct launches that repeat earlier ones. made: each launch of a plan, its kernel, and
    Triton's result for it. Empty where Triton's path does more than launch: it interprets, chooses
    options (`heuristics`), calls hooks of the kernel, or compares globals."""
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
    """A tensor descriptor in Triton's form."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(tensors[one.position], *map(list, one.parts))
