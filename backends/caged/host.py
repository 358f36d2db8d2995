"""The program of the host: `python -I -S host.py CONTROL ENTRY THREADS WANTED...`, a new process
without data of its parent.

CONTROL: the number of a socket. Each message brings the socket of a new runner, and names a library
and the memory segment to attach, if any. The next message, without a socket, ends the runner; the
reply is its wait status. ENTRY: the function of a runner, `module:function` or `FILE:function` of
an extension module. Its arguments are the socket, the library and the address of the memory.
THREADS: 1 if runners may start threads and read the clock. WANTED: libraries that the runners'
libraries need.
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
    """Forks a runner for each message, until the socket closes."""
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
    """Runs a runner. Does not return."""
    try:
        from backends.caged.cage import shut_in
        from backends.caged.memory import attach

        attached = () if memory is None else (attach(memory),)
        shut_in(Path(library), place, threads=threads)
        entry(place, library, *attached)
        os._exit(0)
    finally:
        os._exit(1)  # only the host continues


def _entry(text: str) -> Entry:
    module, _, name = text.rpartition(":")
    if not module.endswith(".so"):
        import importlib

        return getattr(importlib.import_module(module), name)
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = ExtensionFileLoader(Path(module).name.partition(".")[0], module)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None  # the loader would have reported a missing package
    made = module_from_spec(spec)
    loader.exec_module(made)
    return getattr(made, name)


def _package() -> None:
    """Makes `backends` a package without importing its contents, because a sandbox does not permit
    listing the folder above."""
    own = Path(__file__).parents[1]
    packages = {own.name: own}
    # if it is installed below the distribution's package
    if (own.parent / "__init__.py").is_file():
        above = own.parent
        packages = {above.name: above, f"{above.name}.{own.name}": own}
    for name, folder in packages.items():
        made = ModuleType(name)
        made.__path__ = [str(folder)]
        sys.modules[name] = made


if __name__ == "__main__":
    _package()
    import ctypes

    # Imported here, because a runner cannot read files.
    from backends.caged import cage, memory  # noqa: F401

    for wanted in sys.argv[4:]:
        ctypes.CDLL(wanted, mode=ctypes.RTLD_GLOBAL)
    main(socket.socket(fileno=int(sys.argv[1])), _entry(sys.argv[2]), sys.argv[3] == "1")
