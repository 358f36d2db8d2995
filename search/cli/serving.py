"""The backends of a command's race: those that the user names, else all that serve a target
here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from backends.manifest import Manifest
from backends.registry import backend_for, served_by
from backends.served import Served
from ir.errors import KernelError
from ir.machine import Machine
from ir.provenance import TIME_KINDS


@dataclass(frozen=True, slots=True)
class Serving:
    """The backends in the race for a target."""

    served: tuple[Served, ...]  # at least one
    named: bool  # whether the user named them; then none is left out silently
    notes: tuple[str, ...] = ()  # for a person: the backends that are left out, and why

    def narrowed(self, lacks: Callable[[Manifest], str]) -> Serving:
        """The backends that support a use; unchanged if none does.

        lacks: what a backend lacks for it; empty if nothing.
        """
        faults = {one.name: lacks(one.backend.manifest) for one in self.served}
        able = tuple(one for one in self.served if not faults[one.name])
        if self.named or not able:
            return self
        target = self.served[0].machine.name
        notes = tuple(_note(target, name, fault) for name, fault in faults.items() if fault)
        return replace(self, served=able, notes=(*self.notes, *notes))


def serving(found: Machine, wanted: Sequence[str]) -> Serving:
    """The backends in the race for a target; by default all with comparable times.

    Raises KernelError if a named one cannot check anything here, or if none can.
    """
    named = bool(wanted)
    served: list[Served] = []
    faults: dict[str, KernelError] = {}
    reasons: dict[str, str] = {}
    for name in wanted or found.backends:
        try:
            one = _opened(found, name)
            if lacking := _lacking(one):
                reasons[name] = lacking
                raise _unusable(found, name, lacking)
            served.append(one)
        except KernelError as error:
            if named:
                raise
            faults[name] = error
    if not served:
        raise next(iter(faults.values()))
    kinds = {one.name: one.backend.available(one.machine)["time_kind"] for one in served}
    best = min(kinds.values(), key=TIME_KINDS.index)
    other = [one.name for one in served if kinds[one.name] != best]
    if named and other:
        raise KernelError(
            f"times of `{other[0]}` are {kinds[other[0]]} here, others are {best}",
            where="--backend",
            hint="times of different kinds are not compared: name fewer backends",
        )
    notes = [_note(found.name, name, reasons.get(name, e.what)) for name, e in faults.items()]
    notes += [_note(found.name, name, f"its times are {kinds[name]} here") for name in other]
    able = tuple(one for one in served if one.name not in other)
    return Serving(able, named, tuple(notes))


def usable(found: Machine, wanted: str) -> Served:
    """A backend for a machine. Raises KernelError if it cannot check anything here."""
    served = _opened(found, wanted)
    if lacking := _lacking(served):
        raise _unusable(found, wanted, lacking)
    return served


def _opened(found: Machine, wanted: str) -> Served:
    try:
        backend = backend_for(found, wanted)
    except KernelError as error:
        raise (error if error.where else error.within("--backend")) from None
    return Served(backend, served_by(found, backend))


def _lacking(served: Served) -> str:
    """Why a backend cannot check and time kernels here; empty if it can."""
    here = served.backend.available(served.machine)
    if here.get("correct_by") and here.get("time_kind"):
        return ""
    return str(here.get("why") or "it does not say why")


def _unusable(found: Machine, backend: str, lacking: str) -> KernelError:
    return KernelError(
        f"backend `{backend}` cannot check and time kernels for `{found.name}` on this machine: "
        f"{lacking}",
        where="--target",
        hint="--list-targets says what can be done here",
    )


def _note(target: str, backend: str, why: str) -> str:
    return f"{target}: without `{backend}`: {why}"
