"""What a user names to be compiled or evolved: a module, a function, or a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_flatten, tree_leaves

from backends.compiled import Kernels, networks
from backends.program.kernel import sizes_of
from frontends.compiled.call import require_call_apart
from frontends.compiled.source import ModuleSource
from frontends.pytorch.call import paths_of, state_of
from frontends.pytorch.external import outside, require_called
from frontends.pytorch.imported import ArgumentLeaf, Imported, ResultLeaf
from frontends.pytorch.module import imported
from ir.digest import spec_digest
from ir.errors import KernelError
from ir.literal import literal
from ir.network import Buffer, Network, Step
from ir.parse.parse import parse_workload
from ir.partition.choices import Choices
from ir.sizes import shape
from ir.source import near
from ir.spec import Spec
from ir.workload import LIBRARY, Sizes
from search.record.program import network_digest

Named: TypeAlias = torch.nn.Module | Callable[..., Any] | Spec | Path | str
ENDING = ".kir"


@dataclass(frozen=True, slots=True)
class OpenSpec:
    """The spec that a user gave, and the sizes of a call."""

    spec: Spec
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class Subject:
    """A call of it, as equations at the sizes of its arguments."""

    made: Imported
    state: Mapping[str, torch.Tensor]  # the parameters and buffers that it reads, by path
    source: ModuleSource | None  # the module that they are of
    given: OpenSpec | None = None  # of a spec

    @property
    def digest(self) -> str:
        """That of its program records."""
        names = [each.name for each in outside(self.made)]
        return network_digest(self.made.spec, self.made.aliases, self.made.fixed, names)

    def networks(
        self, kernels: Kernels, choices: Choices | None = None
    ) -> tuple[Network, Network | None]:
        """Its kernels: those of a partition, but of a spec the one that it says. Then those that
        compute constants before calls. choices: which way the partition goes where there are two."""
        if self.given is None:
            made = self.made
            calls = outside(made)
            return networks(made.spec, {}, made.aliases, kernels, calls, made.fixed, choices)
        spec = self.made.spec
        buffers = [Buffer(t.name, t.dtype, shape(t, {}), "input") for t in spec.inputs]
        buffers += [Buffer(t.name, t.dtype, shape(t, {}), "output") for t in spec.outputs]
        step = Step(spec, tuple(t.name for t in spec.inputs), tuple(t.name for t in spec.outputs))
        outputs = tuple((t.name, shape(t, {})) for t in spec.outputs)
        return Network(spec.name, tuple(buffers), (step,), outputs), None


def subject(
    named: Named,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    allow_torch: Sequence[str] = (),
) -> Subject:
    """The subject that a user names, called with some arguments; a KernelError where it cannot be
    imported.

    named: a module, a function of PyTorch, a Spec, the text of one, the path of a .kir file, or the
    name of a kernel of the library.  A spec takes its inputs as arguments, in order.
    """
    if not isinstance(args, tuple | list):
        raise KernelError(
            f"the arguments are {type(args).__name__}",
            allowed="a tuple of the arguments of a call",
            hint="(x,) for one argument",
        )
    if isinstance(named, Spec | Path | str):
        if kwargs or allow_torch:
            raise KernelError("a spec takes tensors by position, and leaves nothing to PyTorch")
        return _of_spec(_spec(named), args)
    made = imported(named, args, kwargs, allow_torch=allow_torch)
    require_called([made], allow_torch)
    source = ModuleSource(named, paths_of(made)) if isinstance(named, torch.nn.Module) else None
    state = state_of(made, None if source is None else source.module)
    require_call_apart(made, state, tree_leaves((tuple(args), dict(kwargs or {}))))
    return Subject(made, state, source)


def _spec(named: Spec | Path | str) -> Spec:
    if isinstance(named, Spec):
        return named
    if isinstance(named, str) and "def " in named:
        return parse_workload(named).spec
    file = Path(named)
    if isinstance(named, str) and not named.endswith(ENDING):
        known = sorted(f.stem for f in LIBRARY.glob("*" + ENDING))
        if named not in known:
            raise KernelError(
                f"there is no kernel `{named}` in the library",
                allowed=", ".join(known),
                hint=near(named, known, "give a module, the text of a spec, or a .kir file"),
            )
        file = LIBRARY / (named + ENDING)
    try:
        return parse_workload(file.read_text(encoding="utf-8"), str(file)).spec
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"`{file}` cannot be read: {error}") from error


def _of_spec(spec: Spec, args: Sequence[Any]) -> Subject:
    sizes = sizes_of(spec, args)
    at = literal(spec, sizes)
    at = replace(at, name=f"{spec.name}_{spec_digest(at)[:8]}")
    results = tuple(ResultLeaf("output", t.name) for t in at.outputs)
    like = 0 if len(results) == 1 else tuple(range(len(results)))
    made = Imported(
        spec=at,
        aliases={},
        arguments=tuple(ArgumentLeaf(t.name, True) for t in at.inputs),
        argument_structure=tree_flatten((tuple(args), {}))[1],
        held=(),
        constants={},
        seed=None,
        results=results,
        structure=tree_flatten(like)[1],
    )
    return Subject(made, {}, None, OpenSpec(spec, sizes))
