"""Compiling by the best known kernels, without a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backends.compiled import Kernels, Progress, Told, built
from backends.program.linked import OwnFolder
from backends.program.saved import linked
from backends.registry import backend_for, served_by
from backends.registry import target as machine_of
from backends.shares import others
from frontends.compiled.module import CompiledModule
from frontends.compiled.saved import load as load_saved
from speciate.here import target_here
from speciate.records import LIBRARY, known_network, records_folder
from speciate.subject import Named, Subject, subject


def compile(
    named: Named,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str | None = None,
    backend: str | None = None,
    records: str | Path | None = None,
    seed: int = 0,
    reuse: bool = False,
    graph: bool = False,
    allow_torch: Sequence[str] = (),
) -> CompiledModule:
    """A module's call by the best known kernels, each by a record of a search or, without one, by
    its seed schedule.

    named: a module or function of PyTorch, or a spec (`speciate.subject`).  args, kwargs: of a call
    like those to come: shapes, dtypes and devices are fixed.  target: a name or a file; by default
    the one whose device the tensors are on.  backend: of those of the target, for all kernels; by default the
    first, and others for some kernels (`backends/shares.py`).
    records: the folder that `evolve` wrote to; by default the user's.  seed, reuse, graph,
    allow_torch: as of `compile_module` (docs/pytorch.md).

    Raises KernelError for what cannot be imported or computed, and for a record that is damaged;
    BackendError for what does not build.
    """
    found = subject(named, args, kwargs, allow_torch)
    name = target or target_here(args, kwargs, found.state)
    return by_records(found, name, backend, records, seed=seed, reuse=reuse, graph=graph)


def load(
    folder: str | Path, state: Mapping[str, Any] | None = None, **options: Any
) -> CompiledModule:
    """What `save` wrote, on the target's device here. state: parameters and buffers by path; else
    the saved ones. options: seed, reuse, graph."""
    return load_saved(Path(folder), state, **options)


def by_records(
    found: Subject,
    target: str,
    backend: str | None,
    records: str | Path | None,
    progress: Progress = lambda *_: None,
    told: Told | None = None,
    **options: Any,
) -> CompiledModule:
    """A subject by the best known kernels, in the partition that they were found in. told: see `Kernels`.
    options: seed, reuse, graph."""
    machine = machine_of(target)
    served = backend_for(machine, backend)
    machine = served_by(machine, served)
    roots = [Path(records) if records is not None else records_folder(), LIBRARY]
    more = others(machine, backend)
    knows, choices = known_network(roots, found.digest, machine, served, found.given, more)
    kernels = Kernels(machine, served, guessed=True, knows=knows, others=more, told=told)
    folder = OwnFolder("compiled-")
    network, constants = found.networks(kernels, choices)
    run = built(network, kernels, folder.path, progress, constants)
    return CompiledModule(
        found.made, linked(run, folder), found.state, source=found.source, **options
    )
