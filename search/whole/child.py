"""The child processes of `timed.py`: one builds networks, the other times them.

The first builds in many forked children, so it must not open a device. It keeps its builds, because
the same kernels are requested again in other combinations. The second is forked from it, opens the
device, and times one network after another. It ends after a fault, after kernels by others, and
with the first.
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
BuiltKernels = Mapping[Texts, Built | str]  # a text is the reason why it was not built
Told = dict[str, Any] | str  # the times of a network, or the reason why there are none


def main(socket: int) -> None:
    """Runs the process until the other end closes the socket.

    It first receives the backend that will probably be timed. It answers each list of networks with
    the times of each, and the seconds for building and timing.
    """
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
    """The process that times networks. over: whether it must not be used again."""

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
        """The times of a network, or the reason why there are none. built: its kernels."""
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
        """Kills the process."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(connection: Connection, parent: int, served: Served) -> NoReturn:
    """The timing process."""
    try:
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        if isinstance(served.backend, Opens):
            with suppress(Exception):  # the first timed network reports the reason
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
    """Builds all kernels of the networks that `found` lacks, below a folder, without opening a
    device.

    Adds each build, or the reason why it failed, to `found`.
    """
    wanted = {key: (n, spec) for n in networks for key, spec in _keys(n).items()}

    def one(key: Texts) -> Built | str:
        network, spec = wanted[key]
        texts = network.kernels[spec.name]
        place = folder / f"{spec.name}_{text_digest(texts.source)}"
        place.mkdir(exist_ok=True)
        by = network.served(spec)
        try:
            return by.backend.build(texts.source, network.nest(spec), by.machine, place)
        except Exception as error:  # a source may be untrusted code
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
    """A network's kernels by the key of their builds."""
    named = {}
    for spec in _specs(network):
        texts = network.kernels[spec.name]
        named[network.machines[texts.backend].name, texts] = spec
    return named


def _found(network: TimedNetwork, built: BuiltKernels) -> Told:
    """The times of a network, or the reason why there are none."""
    try:
        times = whole_times(linked(_compiled(network, built)), network.each)
    except Exception as error:  # a source may be untrusted code
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
    """A network with built kernels."""
    kernels = {}
    for key, spec in _keys(network).items():
        made, by = built[key], network.served(spec)
        assert isinstance(made, Built), "a network is linked when its kernels are built"
        kernels[spec] = Kernel(spec, network.nest(spec), key[1].source, made, served=by)
    first, machine = next(iter(network.machines.items()))
    return Compiled(network.call, machine, backend_for(machine, first), kernels, network.before)
