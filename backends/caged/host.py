"""The program of the host: `python -I -S host.py CONTROL ENTRY THREADS WANTED...`, a new process that holds nothing
of who started it.

CONTROL: the number of a socket. Each message on it brings the socket of a new runner, and names a library and
the segment of memory that it attaches, if any. The next message, which brings no socket, ends the runner and is
answered by its wait status. ENTRY: what a runner does, `module:function`, or `FILE:function` of an extension
module; it is called with its socket, the library, and the address of the memory. THREADS: 1 where runners may
start threads and read the clock. WANTED: libraries that those of runners need.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Entry = Callable[..., None]


def main(control: socket.socket, entry: Entry, threads: bool) -> None:
    """Forks a runner for each message, until there are no more."""
    from backends.caged.cage import prepare

    prepare(threads)
    while True:
        said, places, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not said:
            return
        runner = os.fork()
        if runner == 0:
            control.close()
            _run(entry, threads, places[0], *json.loads(said))
        os.close(places[0])
        said = control.recv(1)
        os.kill(runner, 9)
        _, status = os.waitpid(runner, 0)
        if not said:
            return
        control.send(b"%d" % status)


def _run(entry: Entry, threads: bool, place: int, library: str, memory: int | None) -> None:
    """The runner's side; does not return."""
    try:
        from backends.caged.cage import shut_in
        from backends.caged.memory import attach

        attached = () if memory is None else (attach(memory),)
        shut_in(Path(library), place, threads=threads)
        entry(place, library, *attached)
        os._exit(0)
    finally:
        os._exit(1)  # it is the host that goes on


def _entry(text: str) -> Entry:
    module, _, name = text.rpartition(":")
    if not module.endswith(".so"):
        import importlib

        return getattr(importlib.import_module(module), name)
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = ExtensionFileLoader(Path(module).name.partition(".")[0], module)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None  # as the loader says whether it is a package
    made = module_from_spec(spec)
    loader.exec_module(made)
    return getattr(made, name)


def _package() -> None:
    """Makes `backends` a package of which nothing is read until it is imported: a sandbox lets
    nobody list the folder above."""
    own = Path(__file__).parents[1]
    packages = {own.name: own}
    if (own.parent / "__init__.py").is_file():  # installed, below the package of the distribution
        above = own.parent
        packages = {above.name: above, f"{above.name}.{own.name}": own}
    for name, folder in packages.items():
        made = ModuleType(name)
        made.__path__ = [str(folder)]
        sys.modules[name] = made


if __name__ == "__main__":
    _package()
    import ctypes

    # Read here, as a runner can read nothing.
    from backends.caged import cage, memory  # noqa: F401

    for wanted in sys.argv[4:]:
        ctypes.CDLL(wanted, mode=ctypes.RTLD_GLOBAL)
    main(socket.socket(fileno=int(sys.argv[1])), _entry(sys.argv[2]), sys.argv[3] == "1")
