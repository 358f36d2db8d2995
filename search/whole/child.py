"""The process in which `timed.py` has networks built, and the one that times them.

The first builds, which many forks do at a time, and so opens no device. It keeps what it has built, as the same
kernels are asked for again with others beside them. The second is forked of it, opens the device, and takes
one network after another. It ends after a fault, after kernels that somebody else wrote, and with the first.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from backends.backend import BackendError, Built, Opens, Warms
from backends.compiled import Compiled, Kernel
from backends.parallel import on_all_cores
from backends.program.saved import linked
from backends.registry import backend_for
from backends.served import Served
from ir.digest import text_digest
from ir.spec import Spec
from search.evaluator.clean import beside
from search.whole.clocks import let_go, whole_times
from search.whole.timed import KernelTexts, TimedNetwork

_SET_PDEATHSIG = 1
Texts = tuple[str, KernelTexts]  # with the name of the target
BuiltKernels = Mapping[Texts, Built | str]  # or why one was not built
Told = dict[str, Any] | str  # the times of a network, or why there are none


def main(socket: int) -> None:
    """The process. First it is told what will probably be timed; then each list of networks is answered by
    what became of each, and by the seconds that building and timing took. It ends when the other end does."""
    connection = Connection(socket)
    machine, name = connection.recv()
    served = Served(backend_for(machine, name), machine)
    built: dict[Texts, Built | str] = {}
    timer: _Timer | None = _Timer(served)
    with suppress(EOFError, OSError):
        while True:
            networks: list[TimedNetwork] = connection.recv()
            began = time.monotonic()
            build(networks, Path.cwd(), built)
            mid = time.monotonic()
            found: list[Told] = []
            for network in networks:
                mine = {key: built[key] for key in _keys(network)}
                if why := next((one for one in mine.values() if isinstance(one, str)), ""):
                    found.append(why)
                    continue
                timer = timer or _Timer(served)
                found.append(timer.told(network, mine))
                if timer.over:
                    timer.end()
                    timer = None
            seconds = {"build calls": mid - began, "time calls": time.monotonic() - mid}
            connection.send((found, seconds))
    if timer is not None:
        timer.end()


class _Timer:
    """The process that times networks. over: nothing more may be asked of it."""

    def __init__(self, served: Served) -> None:
        if isinstance(served.backend, Warms):
            served.backend.warm(served.machine)
        self._connection, there = Pipe()
        self.over = False
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(there, parent, served)
        there.close()

    def told(self, network: TimedNetwork, built: BuiltKernels) -> Told:
        """What becomes of a network. built: its kernels."""
        self.over = any(texts.edited for texts in network.kernels.values())
        try:
            self._connection.send((network, dict(built)))
            found: Told = self._connection.recv()
        except (EOFError, OSError):
            self.over = True
            return "the process that timed it has ended"
        self.over = self.over or isinstance(found, str)
        return found

    def end(self) -> None:
        """Ends it at once."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(connection: Connection, parent: int, served: Served) -> NoReturn:
    """The side of the process that times."""
    try:
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        if isinstance(served.backend, Opens):
            with suppress(Exception):  # who is timed there says why it fails
                served.backend.open(served.machine)
        while True:
            network, built = connection.recv()
            connection.send(_found(network, built))
            let_go()
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


def build(
    networks: Sequence[TimedNetwork], folder: Path, found: MutableMapping[Texts, Built | str]
) -> None:
    """Adds all kernels of the networks to what was found before, each built once below a folder, before a
    device is opened; or why one was not built."""
    wanted = {key: (n, spec) for n in networks for key, spec in _keys(n).items()}

    def one(key: Texts) -> Built | str:
        network, spec = wanted[key]
        texts = network.kernels[spec.name]
        place = folder / f"{spec.name}_{text_digest(texts.source)}"
        place.mkdir(exist_ok=True)
        by = network.served(spec)
        try:
            return by.backend.build(texts.source, network.nest(spec), by.machine, place)
        except Exception as error:  # a source is code of others
            return _why(error)

    missing = [key for key in wanted if key not in found]
    ours = [key for key in missing if not key[1].edited]
    found.update(zip(ours, on_all_cores(one, ours), strict=True))
    for key in missing:
        if key[1].edited:
            by = wanted[key][0].served(wanted[key][1])
            with beside(by.machine, partial(backend_for, by.machine, by.name)):
                found[key] = one(key)


def _keys(network: TimedNetwork) -> dict[Texts, Spec]:
    """By what a build is of, the kernels of a network."""
    named = {}
    for spec in _specs(network):
        texts = network.kernels[spec.name]
        named[network.machines[texts.backend].name, texts] = spec
    return named


def _found(network: TimedNetwork, built: BuiltKernels) -> Told:
    """The times of a network, or why there are none."""
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


def _compiled(network: TimedNetwork, built: BuiltKernels) -> Compiled:
    """A network of kernels that are built."""
    kernels = {}
    for key, spec in _keys(network).items():
        made, by = built[key], network.served(spec)
        assert isinstance(made, Built), "a network is linked when its kernels are built"
        kernels[spec] = Kernel(spec, network.nest(spec), key[1].source, made, served=by)
    first, machine = next(iter(network.machines.items()))
    return Compiled(network.call, machine, backend_for(machine, first), kernels, network.before)
