"""Clean processes: they compile and interpret a candidate's own code, separate from the process
that judges it.

A worker and its forked children hold the expected results and the secret from which inputs are
drawn. A template is a separate program that gets only the backends. It imports what they need, and
forks a clean process for each candidate with a source by someone else. That process enters the
sandbox like the candidate's other process, with its own folder, and serves requests
(`backends/gpu/apart.py`) until the other end closes the line.
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
    """Starts clean processes for the candidates of one backend. It gets no other data."""

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
        """The id of its process, which is a child of this one."""
        return self._process.pid

    def line(self, folder: Path, limits: Limits, group: Group | None) -> int:
        """The descriptor of the line to a new clean process, for `apart.join`.

        folder: where the process may write. group: the control group that it enters. Raises OSError
        if the template has ended.
        """
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
        """Ends the template. Clean processes end when their lines close."""
        self._control.close()
        self._process.kill()
        self._process.wait()


@contextmanager
def beside(machine: Machine, opened: Callable[[], Backend]) -> Iterator[None]:
    """A context in which a clean process compiles and interprets for this process, if the backend
    supports that (`available`: `apart`). Other backends run sources in their own processes.

    opened: makes the backend, also in the clean process.
    """
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
    """The template's program: it imports what backends need, then makes a clean process for each
    message."""
    with socket.socket(fileno=os.dup(control)) as stream:
        machine, opened = pickle.loads(stream.recv(1 << 20))
    backend = opened()
    if isinstance(backend, Warms):
        backend.warm(machine)
    for end, said in messages(control):
        if forked(control, end):
            _clean(end, json.loads(said))


def _clean(line: int, told: dict[str, Any]) -> None:
    """Runs a clean process. Does not return."""
    with suppress(BaseException):  # no exception may reach the template's loop
        os.setsid()
        folder, given = Path(told["folder"]), told["limits"]
        detach(folder, line)
        limits = Limits(**{**given, "devices": tuple(given["devices"])})
        group = told["group"]
        made = Group(tuple(map(Path, group["folders"])), group["held"]) if group else None
        sandbox.enter(folder, limits, made)
        serve(line, folder)
    os._exit(0)
