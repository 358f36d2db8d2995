"""A linked network: one whose kernels can be launched in this process."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.backend import Backend
from backends.program.launcher import Launcher, place
from backends.program.program import NOTHING, OutsideFunction, Program, Tensors
from ir.machine import Machine
from ir.network import Network
from ir.spec import Spec


class OwnFolder:
    """A temporary folder that is deleted when this object is."""

    def __init__(self, prefix: str):
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Contents:
    """What saving a network writes: files by name, and facts for the manifest."""

    files: Mapping[str, bytes]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Linked:
    """A network with the launchers of its kernels."""

    network: Network
    launchers: Mapping[Spec, Launcher]
    machine: Machine
    backend: Backend
    contents: Callable[[], Contents]  # returns what saving the network writes
    # Names of the kernels' functions on a device; empty if unknown.
    functions: frozenset[str] = frozenset()
    # Computes inputs of the network from its fixed inputs, before any call; None if there is
    # nothing to compute.
    constants: Network | None = None
    # The folder of the sources, if nothing else keeps it.
    folder: OwnFolder | None = None

    @property
    def place(self) -> str:
        """Torch's name of the device that holds its tensors."""
        return place(self.backend, self.machine)

    def program(
        self,
        fixed: Tensors = NOTHING,
        reuse: bool = False,
        into: Tensors = NOTHING,
        outside: Sequence[OutsideFunction] = (),
        unread: Collection[int] = (),
    ) -> Program:
        """The network as a call on torch tensors; see `Program`."""
        return self._of(self.network, fixed, reuse, into, outside, unread)

    def prepares(self, fixed: Tensors) -> Program | None:
        """The program that computes the constants; each call writes the same tensors. None if there
        are no constants.

        fixed: all inputs that are fixed.
        """
        if self.constants is None:
            return None
        given = {b.name: fixed[b.name] for b in self.constants.inputs}
        return self._of(self.constants, given, True)

    def _of(self, network: Network, *options: Any) -> Program:
        made = Program(network, self.launchers, self.place, *options)
        made.folder = self.folder
        return made
