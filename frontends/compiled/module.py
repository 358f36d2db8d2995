"""A compiled module: a module's call by kernels of a target, on the tensors of its device.

    run = compile_module(module, (x,), target="NAME")
    y = run(x)

`frontends/compiled/record.py` saves it and loads it in another process, without the module's code.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from backends.compiled import compiled
from backends.program.graph import Graph
from backends.program.inplace import overwrites
from backends.program.linked import Linked
from backends.program.program import Tensors
from backends.program.record import linked
from backends.program.tensors import require_no_gradients
from backends.registry import backend_for
from backends.registry import target as machine_of
from frontends.pytorch.call import given, left_behind, returned, state_of
from frontends.pytorch.foreign import calls, names_of, outside, require_called
from frontends.pytorch.imported import Imported
from ir.errors import KernelError
from ir.network import Network


class CompiledModule:
    """A module's call, as a program.

    made: what is known of the call.  linked: its network.  state: parameters and buffers by path
    (`frontends.pytorch.call.state_of`): the module's own tensors, which are read where they lie,
    and into which a call writes what it leaves behind, as running statistics.  seed: of the first
    call that draws random numbers; each call has the next.  reuse: whether all calls give the same
    tensors, which the next one overwrites.  graph: whether launches are captured once and
    replayed, which reuses them too; not where calls are left to PyTorch.

    Arguments have the dtypes, shapes and device of those that the module was imported with, and
    lie in row-major order; anything else is a KernelError, and so is a call in grad mode for which
    an argument or a parameter requires gradients: results carry none. After the module's tensors
    were replaced (`module.to(...)`), it is compiled or loaded anew.
    """

    def __init__(
        self, made: Imported, linked: Linked, state: Mapping[str, torch.Tensor], seed: int = 0,
        reuse: bool = False, graph: bool = False,
    ):  # fmt: skip
        self.made, self.linked, self.state = made, linked, dict(state)
        self.seed, self.graph = seed, graph
        self.paths = {h.name: h.path for h in made.held}
        self.constants = {n: known(t).to(linked.place) for n, t in made.constants.items()}
        fixed = {h.name: _held(self.state, h.path) for h in made.held} | self.constants
        if made.seed is not None:
            fixed[made.seed] = torch.zeros(1, dtype=torch.int64, device=linked.place)
        self.fixed = fixed
        into = _written(made, linked.network, self.state)
        self.left_in_place = frozenset(into)
        places = {buffer: self.state[path] for path, buffer in into.items()}
        self.program = linked.program(
            fixed, reuse, places, calls(made, linked.place), _unread(made)
        )
        self.captured: Graph | None = None

    @property
    def left_to_torch(self) -> tuple[str, ...]:
        """The operators that PyTorch computes, between kernels; none where kernels do all."""
        return names_of(self.made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call returns, in its structure; arguments that the module changes are
        changed."""
        made = self.made
        tensors = given(made, self.state, args, kwargs, self.seed)
        require_no_gradients(tensors, self.paths)
        with torch.no_grad():
            if made.seed is not None:
                self.fixed[made.seed].copy_(tensors[made.seed])
                self.seed += 1
            found = self._run(tensors)
            outputs = dict(zip((t.name for t in made.spec.outputs), found, strict=True))
            for name, (count, dim) in made.counts.items():
                outputs[name] = outputs[name].narrow(dim, 0, int(outputs[count]))
            leaves = tree_flatten((args, kwargs))[0]
            for target, value in left_behind(made, outputs, self.state, args, kwargs).items():
                place = self.state[target] if isinstance(target, str) else leaves[target]
                if target not in self.left_in_place:
                    place.copy_(value)
        return returned(made, outputs, self.state, args, kwargs)

    def _run(self, tensors: Tensors) -> list[torch.Tensor]:
        if not self.graph:
            return self.program(tensors)
        if self.captured is None:
            self.captured = Graph(self.program, tensors)
        return self.captured(tensors)


def compile_module(
    module: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str,
    backend: str | None = None,
    folder: Path | None = None,
    seed: int = 0,
    reuse: bool = False,
    graph: bool = False,
    allow_torch: Collection[str] = (),
) -> CompiledModule:
    """Imports a call of a module or function, and builds its kernels for a target.

    backend: of those that the target lists, else the first.  folder: for what is built; else one
    that lasts as long as the result.  seed, reuse, graph: see `CompiledModule`.  allow_torch:
    operators that are left to PyTorch, named without overload, whether they have equations or not.
    Raises KernelError for what cannot be imported or computed, and where an operator that is named
    is none, or none of the module's; BackendError for what does not build.
    """
    from frontends.pytorch.module import imported  # the front end, which running does not need

    machine = machine_of(target)
    made = imported(module, args, kwargs, allow_torch=allow_torch)
    require_called([made], allow_torch)
    own = None if folder else tempfile.TemporaryDirectory(prefix="compiled-")
    place = folder or Path(own.name)
    served = backend_for(machine, backend)
    run = compiled(made.spec, {}, made.aliases, machine, served, place, guessed=True,
                   calls=outside(made))  # fmt: skip
    state = state_of(made, module if isinstance(module, torch.nn.Module) else None)
    found = CompiledModule(made, linked(run), state, seed, reuse, graph)
    if own:
        weakref.finalize(found, own.cleanup)
    return found


def _unread(made: Imported) -> list[int]:
    """The numbers of outputs that are no results: for calls that are left to PyTorch alone."""
    results = (*made.results, *(m.result for m in made.mutations))
    read = {r.key for r in results if r.kind == "output"}
    return [n for n, t in enumerate(made.spec.outputs) if t.name not in read]


def _written(
    made: Imported, network: Network, state: Mapping[str, torch.Tensor]
) -> dict[str, str]:
    """The paths of buffers that kernels may write into as they run, and the network's buffers that
    are written there."""
    names = {h.path: h.name for h in made.held}
    roots = {t.name: root for t, (root, _) in zip(made.spec.outputs, network.outputs, strict=True)}
    found: dict[str, str] = {}
    for m in made.mutations:
        if m.result.kind != "output" or m.target not in names or m.result.key in made.counts:
            continue
        root, tensor = roots[m.result.key], state[str(m.target)]
        fits = tensor.is_contiguous() and tensor.numel() == prod(network.buffer(root).shape)
        alone = sum(r == root for r in roots.values()) == 1 and root not in found.values()
        if fits and alone and overwrites(network, root, names[m.target]):
            found[str(m.target)] = root
    return found


def known(tensor: torch.Tensor) -> torch.Tensor:
    """A constant's values; KernelError for one of a module that was made without values."""
    if getattr(tensor, "fake_mode", None) is None:
        return tensor.detach().contiguous()
    if tensor.constant is None:
        raise KernelError(
            "the module holds a constant whose values are not known",
            hint="make it a buffer of the module",
        )
    return tensor.constant.detach().contiguous()


def _held(state: Mapping[str, torch.Tensor], path: str) -> torch.Tensor:
    if path not in state:
        raise KernelError(f"the module's `{path}` is not given")
    return state[path]
