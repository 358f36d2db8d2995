"""A compiled module: a module's call by kernels of a target, on the tensors of its device.

    run = compile_module(module, (x,), target="NAME")
    y = run(x)

`frontends/compiled/saved.py` saves it and loads it in another process, without the module's code.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves

from backends.compiled import compiled
from backends.program.graph import ProgramGraph
from backends.program.inplace import overwrites
from backends.program.linked import Linked
from backends.program.program import Tensors
from backends.program.saved import linked
from backends.program.tensors import require_no_gradients
from backends.registry import backend_for, served_by
from backends.registry import target as machine_of
from frontends.compiled.source import ModuleSource
from frontends.pytorch.call import given, left_behind, paths_of, returned, state_of
from frontends.pytorch.external import calls, names_of, outside, require_called
from frontends.pytorch.imported import Imported
from frontends.pytorch.memory import require_apart, storages
from ir.errors import KernelError
from ir.network import Network


class CompiledModule:
    """A module's call, as a program.

    made: what is known of the call.  linked: its network.  state: parameters and buffers by path
    (`frontends.pytorch.call.state_of`): the module's own tensors, which are read where they lie,
    and into which a call writes what it leaves behind, as running statistics.  seed: of the first
    call that draws random numbers; each call has the next.  reuse: whether all calls give the same
    tensors, which the next one overwrites.  graph: whether launches are captured once and
    replayed, which reuses them too; not where calls are left to PyTorch.  source: the module that
    the state is of; its tensors may be replaced between calls, its mode and its parts may not.

    Arguments have the dtypes, shapes and device of those that the module was imported with;
    anything else is a KernelError. So is a call in grad mode for which an argument or a parameter
    requires gradients: results carry none. What does not lie in row-major order is copied at each
    call. Results lie in row-major order.
    """

    def __init__(
        self,
        made: Imported,
        linked: Linked,
        state: Mapping[str, torch.Tensor],
        seed: int = 0,
        reuse: bool = False,
        graph: bool = False,
        source: ModuleSource | None = None,
    ):
        self.made, self.linked, self.source = made, linked, source
        self.seed, self.reuse, self.graph = seed, reuse, graph
        self.paths = {h.name: h.path for h in made.held}
        self.constants = {n: known(t).to(linked.place) for n, t in made.constants.items()}
        self.changed = frozenset(_label(made, m.target) for m in made.mutations)
        self._bind(state)

    def _bind(self, state: Mapping[str, torch.Tensor]) -> None:
        """Binds the network to parameters and buffers; where that fails, nothing changes."""
        made, linked = self.made, self.linked
        labelled = [(_label(made, path), t) for path, t in state.items()]
        require_apart(labelled, self.changed)
        held = {h.name: _held(state, h.path) for h in made.held}
        packed = {n: t for n, t in held.items() if not t.is_contiguous()}
        copies = {
            n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in packed.items()
        }
        fixed = held | copies | self.constants
        if made.seed is not None:
            fixed[made.seed] = torch.zeros(1, dtype=torch.int64, device=linked.place)
        into = _written(made, linked.network, state)
        places = {buffer: state[path] for path, buffer in into.items()}
        self.program = linked.program(
            fixed, self.reuse, places, calls(made, linked.place), _unread(made)
        )
        self.state, self.fixed, self.packed = dict(state), fixed, packed
        self.storages, self.left_in_place = storages(labelled), frozenset(into)
        self.captured: ProgramGraph | None = None

    @property
    def left_to_torch(self) -> tuple[str, ...]:
        """The operators that PyTorch computes, between kernels; none where kernels do all."""
        return names_of(self.made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call returns, in its structure; arguments that the module changes are
        changed."""
        made = self.made
        if self.source and self.source.replaced():
            self._bind(state_of(made, self.source.module))
            self.source.keep()
        tensors = given(made, self.state, args, kwargs, self.seed)
        require_no_gradients(tensors, self.paths)
        leaves = tree_flatten((args, kwargs))[0]
        self._require_apart(leaves)
        with torch.no_grad():
            for name, tensor in self.packed.items():
                self.fixed[name].copy_(tensor)
            if made.seed is not None:
                self.fixed[made.seed].copy_(tensors[made.seed])
                self.seed += 1
            found = self._run(
                {a.name: _row_major(a.name, tensors[a.name]) for a in made.arguments if a.name}
            )
            outputs = dict(zip((t.name for t in made.spec.outputs), found, strict=True))
            for name, (count, dim) in made.counts.items():
                outputs[name] = outputs[name].narrow(dim, 0, int(outputs[count]))
            for target, value in left_behind(made, outputs, self.state, args, kwargs).items():
                place = self.state[target] if isinstance(target, str) else leaves[target]
                if target not in self.left_in_place:
                    place.copy_(value)
        return returned(made, outputs, self.state, args, kwargs)

    def _require_apart(self, leaves: Sequence[Any]) -> None:
        """KernelError where a tensor that the call changes overlaps another one of the call.
        leaves: of the arguments, in order."""
        results = self.program.reused() if not self.graph else []
        if not self.changed and not results:
            return
        last = "the result of the last call"
        given = _labelled(self.made, leaves)
        near = [held for at in storages(given) for held in self.storages.get(at, ())]
        require_apart([*given, *near, *((last, t) for t in results)], {*self.changed, last})

    def _run(self, tensors: Tensors) -> list[torch.Tensor]:
        if not self.graph:
            return self.program(tensors)
        if self.captured is None:
            self.captured = ProgramGraph(self.program, tensors)
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
    source = ModuleSource(module, paths_of(made)) if isinstance(module, torch.nn.Module) else None
    state = state_of(made, source and source.module)
    given = _labelled(made, tree_leaves((tuple(args), dict(kwargs or {}))))
    held = [(_label(made, path), t) for path, t in state.items()]
    require_apart([*given, *held], [_label(made, m.target) for m in made.mutations])
    own = None if folder else tempfile.TemporaryDirectory(prefix="compiled-")
    place = folder or Path(own.name)
    served = backend_for(machine, backend)
    machine = served_by(machine, served)
    run = compiled(
        made.spec, {}, made.aliases, machine, served, place, guessed=True, calls=outside(made)
    )
    found = CompiledModule(made, linked(run), state, seed, reuse, graph, source)
    if own:
        weakref.finalize(found, own.cleanup)
    return found


def _unread(made: Imported) -> list[int]:
    """The numbers of outputs that are no results: for calls that are left to PyTorch alone."""
    results = (*made.results, *(m.result for m in made.mutations))
    read = {r.key for r in results if r.kind == "output"}
    return [n for n, t in enumerate(made.spec.outputs) if t.name not in read]


def _written(made: Imported, network: Network, state: Mapping[str, torch.Tensor]) -> dict[str, str]:
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


def _label(made: Imported, target: str | int) -> str:
    """What errors call a tensor of the module's, by path, or an argument, by place."""
    if isinstance(target, str):
        return f"the module's `{target}`"
    return f"argument `{made.arguments[target].name or target}`"


def _labelled(made: Imported, leaves: Sequence[Any]) -> list[tuple[str, torch.Tensor]]:
    """The tensors among a call's arguments, by what errors call them."""
    tensors = ((n, t) for n, t in enumerate(leaves) if isinstance(t, torch.Tensor))
    return [(_label(made, n), t) for n, t in tensors]


def _row_major(name: str, tensor: Any) -> Any:
    """An argument as kernels take it: a copy where it does not lie in row-major order."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    if tensor.layout is not torch.strided:
        raise KernelError(f"`{name}` is {tensor.layout}", allowed="a strided tensor")
    return tensor.contiguous().resolve_neg()


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
