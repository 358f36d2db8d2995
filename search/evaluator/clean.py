"""Clean processes: where a candidate's own code is compiled and interpreted, beside the process that judges it.

A worker and the children that it forks hold what results must be, and the secret by which inputs are drawn. A
template is a program of its own, which is told of backends alone: it loads what they load, and forks a clean
process for each candidate whose source somebody else wrote. That process shuts itself in as the candidate's other
process does, in a folder of its own, and does what it is asked (`backends/gpu/apart.py`) until the other
end of its line is closed.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backends.backend import Backend, Warms
from backends.gpu.apart import join, leave, serve
from ir.machine import Machine
from search.evaluator import sandbox
from search.evaluator.forks import detach, forked, messages, pair
from search.evaluator.groups import Group
from search.evaluator.sandbox import Limits, environment

_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__package__}.clean import template; template(int(sys.argv[1]))"
)


class Template:
    """Starts clean processes for the candidates of one backend. It is told of nothing else."""

    def __init__(self, machine: Machine, opened: Callable[[], Backend]):
        self._control, there = pair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(there.fileno()), *sys.path],
                env=environment(os.environ),
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control.send(pickle.dumps((machine, opened)))

    @property
    def pid(self) -> int:
        """Of its process, a child of this one."""
        return self._process.pid

    def line(self, folder: Path, limits: Limits, group: Group | None) -> int:
        """A descriptor that `apart.join` takes, of a new clean process. folder: where it may write.  group:
        that it enters. OSError where the template has ended."""
        here, there = socket.socketpair()
        said = {"folder": str(folder), "limits": asdict(limits), "group": _told(group)}
        try:
            with there:
                socket.send_fds(self._control, [json.dumps(said).encode()], [there.fileno()])
        except OSError:
            here.close()
            raise
        return here.detach()

    def close(self) -> None:
        """Ends it. Clean processes end with their lines."""
        self._control.close()
        self._process.kill()
        self._process.wait()


@contextmanager
def beside(machine: Machine, opened: Callable[[], Backend]) -> Iterator[None]:
    """Has a clean process compile and interpret for this process meanwhile, where a backend can have that done
    by one (`available`: `apart`); others have processes of their own for what sources do. opened: gives the
    backend, there too."""
    can = opened().available(machine)
    if not can.get("apart"):
        yield
        return
    limits = Limits().suited(can)
    group, template = sandbox.grouped(limits), Template(machine, opened)
    try:
        with tempfile.TemporaryDirectory(prefix="clean-") as folder:
            join(template.line(Path(folder), limits, group))
            yield
    finally:
        leave()
        template.close()
        if group:
            group.remove()


def _told(group: Group | None) -> dict[str, Any] | None:
    return {"folders": [str(f) for f in group.folders], "held": group.held} if group else None


def template(control: int) -> None:
    """The template's program. First comes what it loads; then each message has a clean process made."""
    with socket.socket(fileno=os.dup(control)) as stream:
        machine, opened = pickle.loads(stream.recv(1 << 20))
    backend = opened()
    if isinstance(backend, Warms):
        backend.warm(machine)
    for end, said in messages(control):
        if forked(control, end):
            _clean(end, json.loads(said))


def _clean(line: int, told: dict[str, Any]) -> None:
    """A clean process. Does not return."""
    with suppress(BaseException):  # nothing may come back into the template's loop
        os.setsid()
        folder, given = Path(told["folder"]), told["limits"]
        detach(folder, line)
        limits = Limits(**{**given, "devices": tuple(given["devices"])})
        group = told["group"]
        made = Group(tuple(map(Path, group["folders"])), group["held"]) if group else None
        sandbox.enter(folder, limits, made)
        serve(line, folder)
    os._exit(0)
