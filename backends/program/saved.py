"""A saved program: its network and its kernels' sources as files.

Loading it does not schedule its equations again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from backends.compiled import Compiled, Kernel
from backends.parameters import as_rows, of_rows, parameters
from backends.program.launcher import Launcher, launcher, takes_tensors
from backends.program.linked import Contents, Linked, OwnFolder
from backends.program.sealed import Sealed
from backends.registry import backend_for, served_by, target
from backends.served import Served
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.nest.nest import Parameter
from ir.network import Buffer, Network, Pause, Step
from ir.parse.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.spec import Spec

Finds = Callable[[Spec], Launcher | None]
NETWORK = "network.json"
FACTS = ("name", "target", "backend", "toolchain")


def linked(run: Compiled, folder: OwnFolder | None = None) -> Linked:
    """A compiled network with its launchers. folder: holds the builds, and is deleted with the result."""
    launchers = {}
    for spec, kernel in run.kernels.items():
        by = run.served(kernel)
        launchers[spec] = launcher(by.backend, kernel.built, kernel.nest, by.machine)
    names = frozenset(la.name for k in run.kernels.values() for la in k.nest.launches)
    return Linked(
        run.network,
        launchers,
        run.machine,
        run.backend,
        lambda: contents(run),
        names,
        run.constants,
        folder,
    )


def contents(run: Compiled) -> Contents:
    """The files and facts that saving a network writes. Its kernels need not be built."""
    table = _table(run.network) | {"kernels": _parameters(run.kernels)}
    table["backends"] = {s.name: run.served(k).name for s, k in run.kernels.items()}
    if run.constants is not None:
        table["constants"] = _table(run.constants)
    made = {NETWORK: json.dumps(table, indent=1)}
    for spec, kernel in run.kernels.items():
        here, extension = f"kernels/{spec.name}", run.served(kernel).backend.manifest.extension
        made[f"{here}/spec.kir"] = spec_text(spec)
        if kernel.nest.spec != spec:
            made[f"{here}/variant.kir"] = spec_text(kernel.nest.spec)
        made[f"{here}/schedule.sched"] = str(kernel.nest.schedule)
        made[f"{here}/kernel.{extension}"] = kernel.source
    facts = {
        "name": run.network.name,
        "target": run.machine.name,
        "backend": run.backend.manifest.name,
        "toolchain": run.backend.available(run.machine)["toolchain"],
    }
    return Contents({name: text.encode("utf-8") for name, text in made.items()}, facts)


def saved_network(sealed: Sealed, built: Finds = lambda _: None) -> Linked:
    """The network of a saved program. KernelError if the files do not hold a network, BackendError
    if a source does not build.

    built: returns the launcher of a kernel that was built elsewhere, to use in place of the saved
    source; None if there is none.
    """
    machine = target(_fact(sealed, "target"))
    backend = backend_for(machine, _fact(sealed, "backend"))
    machine = served_by(machine, backend)
    table = sealed.table(NETWORK)
    try:
        specs = {
            name: parse_spec(sealed.text(f"kernels/{name}/spec.kir"), name)
            for name in table["kernels"]
        }
        network, before = _network(table, specs), table.get("constants")
        constants = None if before is None else _network(before, specs)
        every = (*network.kernels(), *(constants.kernels() if constants else ()))
        wanted = {s: of_rows(table["kernels"][s.name]) for s in every}
    except (KeyError, TypeError, ValueError) as error:
        raise KernelError(
            f"it holds no network: {type(error).__name__} {error}",
            where=str(sealed.folder / NETWORK),
        ) from error
    folder = OwnFolder("program-")
    # Programs saved before each kernel had its own backend have no such table.
    own = {n: backend_for(machine, name) for n, name in table.get("backends", {}).items()}
    launchers = {}
    for spec, tensors in wanted.items():
        one = own.get(spec.name, backend)
        by = Served(one, served_by(machine, one))
        launchers[spec] = built(spec) or _launcher(sealed, spec, tensors, by, folder.path)
    files = [n for n in sealed.files if n == NETWORK or n.startswith("kernels/")]
    facts = {name: sealed.facts[name] for name in FACTS if name in sealed.facts}
    kept = Contents({name: sealed.bytes(name) for name in files}, facts)
    return Linked(
        network, launchers, machine, backend, lambda: kept, constants=constants, folder=folder
    )


def _fact(sealed: Sealed, name: str) -> str:
    found = sealed.facts.get(name)
    if not isinstance(found, str):
        raise KernelError(f"the manifest's `{name}` is {found!r}", where=str(sealed.folder))
    return found


def _launcher(
    sealed: Sealed,
    spec: Spec,
    tensors: tuple[Parameter, ...],
    by: Served,
    folder: Path,
) -> Launcher:
    backend, machine = by.backend, by.machine
    here, extension = f"kernels/{spec.name}", backend.manifest.extension
    source = sealed.text(f"{here}/kernel.{extension}")
    place = folder / spec.name
    place.mkdir()
    if takes_tensors(backend):
        file = place / f"kernel.{extension}"
        file.write_text(source, encoding="utf-8")
        return Launcher(tensors, backend.launcher(file, tensors, machine))
    own = f"{here}/variant.kir"
    variant = parse_spec(sealed.text(own), own) if own in sealed.files else spec
    schedule = parse_schedule(sealed.text(f"{here}/schedule.sched"), f"{here}/schedule.sched")
    nest = lower(variant, schedule, machine, {})
    return launcher(backend, backend.build(source, nest, machine, place), nest, machine)


def _parameters(kernels: Mapping[Spec, Kernel]) -> dict[str, Any]:
    return {s.name: as_rows(parameters(kernel.nest), {}) for s, kernel in kernels.items()}


def _table(network: Network) -> dict[str, Any]:
    return {
        "name": network.name,
        "buffers": [[b.name, b.dtype, list(b.shape), b.role] for b in network.buffers],
        "steps": [[s.spec.name, list(s.inputs), list(s.outputs)] for s in network.steps],
        "outputs": [[name, list(sizes)] for name, sizes in network.outputs],
        "pauses": [
            [p.name, p.before, [[b, list(sizes)] for b, sizes in p.inputs], list(p.outputs)]
            for p in network.pauses
        ],
    }


def _network(table: Mapping[str, Any], specs: Mapping[str, Spec]) -> Network:
    buffers = tuple(Buffer(n, d, tuple(sizes), role) for n, d, sizes, role in table["buffers"])
    known = {b.name for b in buffers}
    steps = tuple(Step(specs[n], tuple(i), tuple(o)) for n, i, o in table["steps"])
    outputs = tuple((name, tuple(sizes)) for name, sizes in table["outputs"])
    pauses = tuple(  # programs saved before pauses existed have none
        Pause(name, before, tuple((b, tuple(sizes)) for b, sizes in given), tuple(made))
        for name, before, given, made in table.get("pauses", ())
    )
    used = {b for s in steps for b in (*s.inputs, *s.outputs)} | {name for name, _ in outputs}
    used |= {b for p in pauses for b, _ in p.inputs} | {b for p in pauses for b in p.outputs if b}
    if unknown := sorted(used - known):
        raise ValueError(f"no buffer is called {unknown[0]}")
    return Network(table["name"], buffers, steps, outputs, pauses)
