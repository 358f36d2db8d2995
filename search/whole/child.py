"""The process in which `timed.py` has networks built and timed. It alone needs PyTorch, which takes
longer to import than a search to start."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.compiled import Compiled, Kernel
from backends.parallel import on_all_cores
from backends.program.saved import linked
from backends.registry import backend_for
from ir.digest import text_digest
from ir.spec import Spec
from search.evaluator.clean import beside
from search.whole.clocks import whole_times
from search.whole.timed import KernelTexts, TimedNetwork


def main() -> None:
    """The process: its input names the file of the networks, and where it writes what became of each, as JSON.
    It ends where nobody asks."""
    names = sys.stdin.read().splitlines()
    if not names:
        return
    asked, said = names
    networks: list[TimedNetwork] = pickle.loads(Path(asked).read_bytes())
    built = _built(networks, Path(asked).parent)
    found = [_found(network, built) for network in networks]
    part = Path(said + ".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.replace(said)


def _built(networks: Sequence[TimedNetwork], folder: Path) -> dict[KernelTexts, Built | str]:
    """All kernels of the networks, each built once below a folder, before a device is opened; or why one was
    not built."""
    wanted = {n.kernels[spec.name]: (n, spec) for n in networks for spec in _specs(n)}

    def build(texts: KernelTexts) -> Built | str:
        network, spec = wanted[texts]
        place = folder / f"{spec.name}_{text_digest(texts.source)}"
        place.mkdir(exist_ok=True)
        by = network.served(spec)
        try:
            return by.backend.build(texts.source, network.nest(spec), by.machine, place)
        except Exception as error:  # a source is code of others
            return _why(error)

    ours = [texts for texts in wanted if not texts.edited]
    found = dict(zip(ours, on_all_cores(build, ours), strict=True))
    for texts in wanted:
        if texts.edited:
            by = wanted[texts][0].served(wanted[texts][1])
            with beside(by.machine, partial(backend_for, by.machine, by.name)):
                found[texts] = build(texts)
    return found


def _found(network: TimedNetwork, built: Mapping[KernelTexts, Built | str]) -> dict[str, Any] | str:
    """The times of a network, or why there are none."""
    for spec in _specs(network):
        if isinstance(why := built[network.kernels[spec.name]], str):
            return why
    try:
        times = whole_times(linked(_compiled(network, built)), network.each)
    except Exception as error:  # a source is code of others
        return _why(error)
    return asdict(times) if times else "no time is measured here"


def _why(error: Exception) -> str:
    if isinstance(error, BackendError):
        return f"{error.stage}: {error.reason}"
    return f"{type(error).__name__}: {error}"


def _specs(network: TimedNetwork) -> list[Spec]:
    """The specs of a network's kernels."""
    before = network.before.kernels() if network.before else ()
    return list(dict.fromkeys((*network.call.kernels(), *before)))


def _compiled(network: TimedNetwork, built: Mapping[KernelTexts, Built | str]) -> Compiled:
    """A network of kernels that are built."""
    kernels = {}
    for spec in _specs(network):
        texts, by = network.kernels[spec.name], network.served(spec)
        made = built[texts]
        assert isinstance(made, Built), "a network is linked when its kernels are built"
        kernels[spec] = Kernel(spec, network.nest(spec), texts.source, made, served=by)
    first, machine = next(iter(network.machines.items()))
    return Compiled(network.call, machine, backend_for(machine, first), kernels, network.before)
