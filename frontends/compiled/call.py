"""A module's call by kernels of a target, bound to the tensors that it holds."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

from backends.compiled import constant_inputs
from backends.program.graph import ProgramGraph
from backends.program.inplace import overwrites
from backends.program.linked import Linked
from backends.program.program import Tensors
from backends.program.tensors import require_no_gradients
from frontends.compiled.source import ModuleSource
from frontends.pytorch.call import (
    given,
    leaves_of,
    left_behind,
    require_same_call,
    returned,
    state_of,
    tensors_by_position,
)
from frontends.pytorch.external import calls, names_of
from frontends.pytorch.imported import Imported
from frontends.pytorch.memory import require_apart, storages
from ir.errors import KernelError
from ir.network import Network
from ir.spec import Tensor


class ModuleCall:
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
        seed: int,
        reuse: bool,
        graph: bool,
        source: ModuleSource,
    ):
        self.made, self.linked, self.source = made, linked, source
        self.seed, self.reuse, self.graph = seed, reuse, graph
        self.paths = {h.name: h.path for h in made.held}
        self.constants = {n: known(t).to(linked.place) for n, t in made.constants.items()}
        self.changed = frozenset(label(made, m.target) for m in made.mutations)
        self.held_paths = list(state)
        self.outputs = tuple(t.name for t in made.spec.outputs)
        self.by_position = tensors_by_position(made)
        self.sized = not made.counts  # the shapes of all results are known before they are computed
        self._apart: ModuleCall | None = None
        self._bind(state)

    def _bind(self, state: Mapping[str, torch.Tensor]) -> None:
        """Binds the network to parameters and buffers; where that fails, nothing changes."""
        made, linked = self.made, self.linked
        named = [(label(made, path), t) for path, t in state.items()]
        require_apart(named, self.changed)
        held = {h.name: _held(state, h.path) for h in made.held}
        packed = {n: t for n, t in held.items() if not t.is_contiguous()}
        copies = {
            n: t.detach().clone(memory_format=torch.contiguous_format) for n, t in packed.items()
        }
        fixed = held | copies | self.constants
        if made.seed is not None:
            fixed[made.seed] = torch.zeros(1, dtype=torch.int64, device=linked.place)
        self.prepares, self.prepared = linked.prepares(fixed), []
        self.versions: list[int] | None = None  # of the tensors that constants were made of
        if self.prepares is not None and linked.constants is not None:
            self.versions, self.prepared = self._versions(held), self.prepares({})
            names = constant_inputs(linked.network, linked.constants)
            fixed |= dict(zip(names, self.prepared, strict=True))
        into = _written(made, linked.network, state)
        places = {buffer: state[path] for path, buffer in into.items()}
        self.program = linked.program(
            fixed, self.reuse, places, calls(made, linked.place), _unread(made)
        )
        self.state, self.held, self.fixed, self.packed = dict(state), held, fixed, packed
        self.storages, self.left_in_place = storages(named), frozenset(into)
        self.captured: ProgramGraph | None = None
        self._own = True  # bound to the tensors of `source`

    @property
    def left_to_torch(self) -> tuple[str, ...]:
        """The operators that PyTorch computes, between kernels; none where kernels do all."""
        return names_of(self.made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call returns, in its structure; arguments that the module changes are
        changed."""
        made = self.made
        if self.source.replaced() or not self._own:
            self._bind(state_of(made, self.source.module))
            self.source.keep()
        leaves = self._leaves(args, kwargs)
        if torch.is_grad_enabled():
            require_no_gradients(given(made, self.state, leaves), self.paths)
        self._require_apart(leaves)
        with torch.no_grad():
            arguments = zip(made.arguments, leaves, strict=True)
            outputs = self._outputs({a.name: leaf for a, leaf in arguments if a.name})
            for name, (count, dim) in made.counts.items():
                outputs[name] = outputs[name].narrow(dim, 0, int(outputs[count]))
            found = left_behind(made, outputs, self.state, leaves, self.left_in_place)
            for target, value in found.items():
                place = self.state[target] if isinstance(target, str) else leaves[target]
                place.copy_(value)
        return returned(made, outputs, self.state, leaves)

    def _leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The leaves of the arguments; KernelError for others than those that were imported."""
        # What most calls have. To flatten it takes several times as long as a launch.
        flat = not kwargs and len(args) == self.by_position
        if flat and all(isinstance(leaf, torch.Tensor) for leaf in args):
            return args
        return leaves_of(self.made, args, kwargs)

    def _outputs(self, arguments: Tensors) -> dict[str, torch.Tensor]:
        """The outputs of the spec by name. arguments: by name."""
        self.refresh()
        for name, tensor in self.packed.items():
            self.fixed[name].copy_(tensor)
        if self.made.seed is not None:
            # A copy to the device, where `fill_` would be a kernel that is not ours
            self.fixed[self.made.seed].copy_(torch.tensor([self.seed]))
            self.seed += 1
        found = self._run({name: _row_major(name, tensor) for name, tensor in arguments.items()})
        return dict(zip(self.outputs, found, strict=True))

    def refresh(self, anyway: bool = False) -> None:
        """Computes the constants, where tensors that they are made of have changed since, as their
        version counters tell. anyway: also where these tell nothing."""
        if self.prepares is None:
            return
        versions = self._versions(self.held)
        if anyway or versions is None or versions != self.versions:
            for b in self.prepares.network.inputs:
                if b.name in self.packed:
                    self.fixed[b.name].copy_(self.packed[b.name])
            with torch.no_grad():
                for place, found in zip(self.prepared, self.prepares({}), strict=True):
                    if place.data_ptr() != found.data_ptr():  # it holds a parameter's elements
                        place.copy_(found)
            self.versions = versions

    def _versions(self, held: Tensors) -> list[int] | None:
        """Of what constants are made of; None where an inference tensor is among it, which has none."""
        assert self.prepares is not None, "there are constants"
        read = [held[b.name] for b in self.prepares.network.inputs if b.name in held]
        return None if any(t.is_inference() for t in read) else [t._version for t in read]

    # ---- as an operator

    @property
    def changes(self) -> bool:
        """Whether a call leaves something else behind than its results."""
        return bool(self.made.mutations) or self.made.seed is not None

    @property
    def argument_places(self) -> list[int]:
        """The leaves of the arguments that the network reads."""
        return [n for n, a in enumerate(self.made.arguments) if a.name is not None]

    @property
    def result_names(self) -> list[str]:
        """The spec's outputs among the results, each once."""
        return list(dict.fromkeys(r.key for r in self.made.results if r.kind == "output"))

    @property
    def result_tensors(self) -> list[Tensor]:
        """The same, with their shapes."""
        known = {t.name: t for t in self.made.spec.outputs}
        return [known[name] for name in self.result_names]

    def require_traceable(self, leaves: Sequence[Any], structure: TreeSpec) -> None:
        """KernelError for arguments that the call was not compiled for, and where a size of a result
        is only known when it was computed."""
        require_same_call(self.made, leaves, structure)
        if not self.sized:
            raise KernelError(
                "the size of a result depends on the values of tensors, which an operator cannot say",
                hint="call it outside of torch.compile",
            )

    def on(
        self, arguments: Sequence[torch.Tensor], held: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Results (`result_names`) that share no memory with other tensors, then what the call leaves
        behind, which the caller puts where it belongs: it changes no tensor that it is given.

        arguments: at `argument_places`.  held: what the call is to read in place of `state`.
        """
        made, state = self.made, dict(zip(self.state, held, strict=True))
        self.source.replaced()  # raises where the module is in another mode
        found = self._bound(state)
        if made.seed is not None:
            found.seed, self.seed = self.seed, self.seed + 1
        names = [a.name for a in made.arguments if a.name is not None]
        with torch.no_grad():
            outputs = found._outputs(dict(zip(names, arguments, strict=True)))
            shared = self.reuse or self.graph
            results = [outputs[n].clone() if shared else outputs[n] for n in self.result_names]
            for m in made.mutations:
                r = m.result
                if r.kind == "held":
                    results.append(state[r.key])
                elif r.kind == "argument":
                    at = self.argument_places.index(r.key)
                    results.append(arguments[at])
                else:
                    results.append(outputs[r.key] if r.kind == "output" else r.key)
        return results

    def _bound(self, state: Mapping[str, torch.Tensor]) -> ModuleCall:
        """This call on other tensors; where it writes into some, another call, on copies of those."""
        kept = {m.target for m in self.made.mutations if isinstance(m.target, str)}
        one = self
        if self.made.mutations:
            if self._apart is None:
                own = {path: t.clone() if path in kept else t for path, t in state.items()}
                self._apart = ModuleCall(self.made, self.linked, own, 0, False, False, self.source)
            one = self._apart
        if any(not _same_place(one.state[p], t) for p, t in state.items() if p not in kept):
            one._bind({p: one.state[p] if p in kept else t for p, t in state.items()})
            one._own = False
        for path in kept & state.keys():
            one.state[path].copy_(state[path])
        return one

    def copied(self, memo: dict[int, Any]) -> ModuleCall:
        """The same call of a copy of the module, with tensors of its own."""
        source = ModuleSource(copy.deepcopy(self.source.module, memo), list(self.state))
        state = state_of(self.made, source.module)
        return ModuleCall(self.made, self.linked, state, self.seed, self.reuse, self.graph, source)

    def _require_apart(self, leaves: Sequence[Any]) -> None:
        """KernelError where a tensor that the call changes overlaps another one of the call.
        leaves: of the arguments, in order."""
        results = self.program.reused() if not self.graph else []
        if not self.changed and not results:
            return
        last = "the result of the last call"
        given = labelled(self.made, leaves)
        near = [held for at in storages(given) for held in self.storages.get(at, ())]
        require_apart([*given, *near, *((last, t) for t in results)], {*self.changed, last})

    def _run(self, tensors: Tensors) -> list[torch.Tensor]:
        if not self.graph:
            return self.program(tensors)
        if self.captured is None:
            self.captured = ProgramGraph(self.program, tensors)
        return self.captured(tensors)


def _unread(made: Imported) -> list[int]:
    """The numbers of outputs that are no results: for calls that are left to PyTorch alone."""
    results = (*made.results, *(m.result for m in made.mutations))
    read = {r.key for r in results if r.kind == "output"}
    return [n for n, t in enumerate(made.spec.outputs) if t.name not in read]


def _written(made: Imported, network: Network, state: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """The paths of buffers that kernels may write into as they run, and the network's buffers that
    are written there. A caller's result is no such one: the next call would change it."""
    names = {h.path: h.name for h in made.held}
    results = {r.key for r in made.results if r.kind == "output"}
    roots = {t.name: root for t, (root, _) in zip(made.spec.outputs, network.outputs, strict=True)}
    found: dict[str, str] = {}
    for m in made.mutations:
        if m.result.kind != "output" or m.target not in names:
            continue
        if m.result.key in made.counts or m.result.key in results:
            continue
        root, tensor = roots[m.result.key], state[str(m.target)]
        fits = tensor.is_contiguous() and tensor.numel() == prod(network.buffer(root).shape)
        alone = sum(r == root for r in roots.values()) == 1 and root not in found.values()
        if fits and alone and overwrites(network, root, names[m.target]):
            found[str(m.target)] = root
    return found


def label(made: Imported, target: str | int) -> str:
    """What errors call a tensor of the module's, by path, or an argument, by place."""
    if isinstance(target, str):
        return f"the module's `{target}`"
    return f"argument `{made.arguments[target].name or target}`"


def labelled(made: Imported, leaves: Sequence[Any]) -> list[tuple[str, torch.Tensor]]:
    """The tensors among a call's arguments, by what errors call them."""
    tensors = ((n, t) for n, t in enumerate(leaves) if isinstance(t, torch.Tensor))
    return [(label(made, n), t) for n, t in tensors]


def require_call_apart(
    made: Imported, state: Mapping[str, torch.Tensor], leaves: Sequence[Any]
) -> None:
    """KernelError where a tensor that the call changes overlaps another one. state: parameters and
    buffers by path.  leaves: of the arguments, in order."""
    held = [(label(made, path), t) for path, t in state.items()]
    changed = [label(made, m.target) for m in made.mutations]
    require_apart([*labelled(made, leaves), *held], changed)


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


def _same_place(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same elements of memory."""
    return one is other or (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )
