"""The process in which `timed.py` has networks built and timed. It alone needs PyTorch, which takes
longer to import than a search to start."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.compiled import Compiled, Kernel
from backends.parallel import on_all_cores
from backends.program.saved import linked
from backends.registry import backend_for
from ir.digest import text_digest
from ir.spec import Spec
from search.whole.clocks import whole_times
from search.whole.timed import KernelTexts, TimedNetwork


def main(asked: str, said: str) -> None:
    """The process: reads the networks, and writes what became of each as JSON."""
    networks: list[TimedNetwork] = pickle.loads(Path(asked).read_bytes())
    built: dict[KernelTexts, Built] = {}
    found = [_found(network, Path(asked).parent, built) for network in networks]
    part = Path(said + ".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.replace(said)


def _found(
    network: TimedNetwork, folder: Path, built: dict[KernelTexts, Built]
) -> dict[str, Any] | str:
    try:
        times = whole_times(linked(_compiled(network, folder, built)), network.each)
    except BackendError as error:
        return f"{error.stage}: {error.reason}"
    except Exception as error:  # a source is code of others
        return f"{type(error).__name__}: {error}"
    return asdict(times) if times else "no time is measured here"


def _compiled(network: TimedNetwork, folder: Path, built: dict[KernelTexts, Built]) -> Compiled:
    """A network whose kernels are built below a folder, those that were not built before."""
    before = network.before.kernels() if network.before else ()
    specs = list(dict.fromkeys((*network.call.kernels(), *before)))
    new = [spec for spec in specs if network.kernels[spec.name] not in built]

    def build(spec: Spec) -> Built:
        source = network.kernels[spec.name].source
        place = folder / f"{spec.name}_{text_digest(source)}"
        place.mkdir(exist_ok=True)
        by = network.served(spec)
        return by.backend.build(source, network.nest(spec), by.machine, place)

    for spec, made in zip(new, on_all_cores(build, new), strict=True):
        built[network.kernels[spec.name]] = made
    kernels = {}
    for spec in specs:
        texts, by = network.kernels[spec.name], network.served(spec)
        nest = network.nest(spec)
        kernels[spec] = Kernel(spec, nest, texts.source, built[texts], served=by)
    first, machine = next(iter(network.machines.items()))
    return Compiled(network.call, machine, backend_for(machine, first), kernels, network.before)
