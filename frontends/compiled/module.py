"""A compiled module: a module whose call runs kernels of a target, on the tensors of its device.

    run = compile_module(module, (x,), target="NAME")
    y = run(x)

`frontends/compiled/saved.py` saves it and loads it in another process, without the module's code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from backends.compiled import Knows, Progress, compiled
from backends.program.linked import Linked, OwnFolder
from backends.program.program import Program
from backends.program.saved import linked
from backends.registry import backend_for, served_by
from backends.registry import target as machine_of
from backends.shares import others
from frontends.compiled.call import ModuleCall, require_call_apart
from frontends.compiled.held import held_module
from frontends.compiled.operator import registered, traced
from frontends.compiled.source import ModuleSource
from frontends.pytorch.call import paths_of, state_of
from frontends.pytorch.external import outside, require_called
from frontends.pytorch.imported import Imported


class CompiledModule(torch.nn.Module):
    """A module's call by kernels, as a module with the same parameters and buffers.

    See `ModuleCall` for the arguments. It shares the submodules, parameters and buffers of the
    module of `source`; without a source it has modules of its own, which hold the tensors of
    `state` under their paths. A copy (`copy.deepcopy`) has tensors of its own. `pickle` keeps what
    `save` writes, so that the module's code is not needed to read it. Under `torch.compile` a call
    is one operator of `torch.library` (`frontends/compiled/operator.py`).
    """

    call: ModuleCall
    key: str  # of the call, for its operator

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
        super().__init__()
        if source is None:
            source = ModuleSource(held_module(state, made.training), list(state))
        origin = source.module
        self.training = origin.training
        # The same tables, so that a tensor that is replaced in one is replaced in the other.
        for table in ("_parameters", "_buffers", "_non_persistent_buffers_set", "_modules"):
            self.__dict__[table] = origin.__dict__[table]
        self.__dict__["call"] = ModuleCall(made, linked, state, seed, reuse, graph, source)
        self.__dict__["key"] = registered(self.call)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call returns, in its structure; arguments that the module changes are
        changed."""
        if torch.compiler.is_compiling():
            return traced(self.call, self.key, args, kwargs)
        return self.call(*args, **kwargs)

    def train(self, mode: bool = True) -> CompiledModule:
        """Switches the module too; a call in another mode than the compiled one is an error."""
        self.call.source.module.train(mode)
        self.training = mode
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledModule:
        copy = self.call.copied(memo)
        memo[id(self)] = found = CompiledModule(
            copy.made, copy.linked, copy.state, copy.seed, copy.reuse, copy.graph, copy.source
        )
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        from frontends.compiled.saved import packed, unpacked  # they read and write this class

        return unpacked, (packed(self), self.seed, self.call.reuse, self.call.graph)

    @property
    def made(self) -> Imported:
        """What is known of the call."""
        return self.call.made

    @property
    def linked(self) -> Linked:
        """Its network."""
        return self.call.linked

    @property
    def program(self) -> Program:
        """The network on the tensors of the last call."""
        return self.call.program

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers that the call reads or writes, by path."""
        return self.call.state

    @property
    def seed(self) -> int:
        """Of the next call that draws random numbers."""
        return self.call.seed

    @seed.setter
    def seed(self, seed: int) -> None:
        self.call.seed = seed

    @property
    def left_to_torch(self) -> tuple[str, ...]:
        """The operators that PyTorch computes, between kernels; none where kernels do all."""
        return self.call.left_to_torch

    @property
    def source(self) -> str:
        """The texts of all kernels, one after another."""
        return "\n".join(
            f"{'#' if file.endswith('.py') else '//'} {name}\n{text}"
            for name, (file, text) in self._texts().items()
        )

    def save(self, folder: str | Path, state: bool = True, overwrite: bool = False) -> None:
        """Writes it to a folder, which `load` reads (`frontends/compiled/saved.py`). state: with its
        parameters and buffers.  overwrite: replaces a module that is there."""
        from frontends.compiled.saved import save

        save(self, Path(folder), state, overwrite)

    def export(self, folder: str | Path, overwrite: bool = False) -> None:
        """Writes it to a folder with a loader that runs it where the project is not installed
        (`frontends/compiled/export.py`). overwrite: replaces a module that is there."""
        from frontends.compiled.export import export

        export(self, Path(folder), overwrite)

    @property
    def sources(self) -> dict[str, str]:
        """The text of each kernel of a call by its name, in the order of their first step."""
        return {name: text for name, (_, text) in self._texts().items()}

    def _texts(self) -> dict[str, tuple[str, str]]:
        """The file of each kernel, which tells its language, and its text."""
        files = self.linked.contents().files
        found = {}
        for spec in self.linked.network.kernels():
            file = next(f for f in files if f.startswith(f"kernels/{spec.name}/kernel."))
            found[spec.name] = file, files[file].decode("utf-8")
        return found


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
    knows: Knows | None = None,
    progress: Progress = lambda *_: None,
) -> CompiledModule:
    """Imports a call of a module or function, and builds its kernels for a target.

    backend: of those that the target lists, for all kernels; else the first, and others for some kernels
    (`backends/shares.py`).  folder: for what is built; else one that lasts as long as the result.
    seed, reuse, graph: see `ModuleCall`.  allow_torch:
    operators that are left to PyTorch, named without overload, whether they have equations or not.
    knows: kernels that were found before (`Kernels`).  progress: told each kernel that is built.
    Raises KernelError for what cannot be imported or computed, and where an operator that is named
    is none, or none of the module's; BackendError for what does not build.
    """
    from frontends.pytorch.module import imported  # the front end, which running does not need

    machine = machine_of(target)
    made = imported(module, args, kwargs, allow_torch=allow_torch)
    require_called([made], allow_torch)
    source = ModuleSource(module, paths_of(made)) if isinstance(module, torch.nn.Module) else None
    state = state_of(made, source and source.module)
    require_call_apart(made, state, tree_leaves((tuple(args), dict(kwargs or {}))))
    own = None if folder else OwnFolder("compiled-")
    served = backend_for(machine, backend)
    run = compiled(
        made.spec,
        {},
        made.aliases,
        served_by(machine, served),
        served,
        folder or own.path,
        progress,
        guessed=True,
        calls=outside(made),
        knows=knows,
        fixed=made.fixed,
        others=others(machine, backend),
    )
    return CompiledModule(made, linked(run, own), state, seed, reuse, graph, source)
