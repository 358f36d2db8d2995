"""Reads, checks and writes the files, packages and stores that a user names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.parse.parse import parse_schedule
from ir.source import near
from ir.spec import Spec
from ir.workload import Sizes
from search.cli.arguments import Arguments
from search.cli.invocation import Invocation
from search.core.stored import Keeper
from search.store.address import is_url


def text_of(file: Path, option: str, ending: str) -> str:
    """The text of a file. Raises KernelError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelError(
            f"`{file}` cannot be read: {error.strerror}",
            where=option,
            hint=near(file.name, _beside(file, ending), f"give the path of a {ending} file"),
        ) from error
    except UnicodeDecodeError as error:
        raise KernelError(
            f"the file is not a text in UTF-8: {error.reason}",
            where=str(file),
            hint="save it as UTF-8",
        ) from error


def _beside(file: Path, ending: str) -> list[str]:
    """The names of files with an ending in a file's folder; empty if that is no folder."""
    try:
        return sorted(each.name for each in file.parent.iterdir() if each.suffix == ending)
    except OSError:
        return []


def given_schedule(file: Path, spec: Spec, machines: Sequence[Machine], sizes: Sizes) -> str:
    """A schedule's text in canonical order. Raises KernelError, within the file, if it is illegal
    for the spec or does not fit the machine at the sizes.

    machines: the target as each of its backends describes it. One that accepts the schedule is
    enough.
    """
    text = text_of(file, "--schedule", ".sched")
    schedule = parse_schedule(text, str(file))
    faults = []
    for machine in machines:
        try:
            lower(spec, schedule, machine, sizes)
        except KernelError as error:
            faults.append(error.within(f"{file}, on target `{machine.name}`"))
    if len(faults) == len(machines):
        raise faults[0] from None
    return str(canonical(schedule))


def require_writable(option: str, file: Path) -> None:
    """Raises KernelError if a file cannot be written."""
    folder = file.parent
    if file.is_dir():
        what, hint = f"`{file}` is a folder", "name a file in it"
    elif not folder.is_dir():
        what, hint = f"the folder `{folder}` does not exist", "create it first"
    elif not os.access(file if file.exists() else folder, os.W_OK):
        what, hint = f"`{file}` cannot be written", "name a file that you may write"
    else:
        return
    raise KernelError(what, where=option, hint=hint)


def require_folder(option: str, folder: Path) -> None:
    """Raises KernelError if files cannot be written to a folder, which need not exist yet."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        what, hint = f"`{place}` is a file", "name a folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        what, hint = f"`{place}` cannot be written to", "name a folder that you may write to"
    else:
        return
    raise KernelError(what, where=option, hint=hint)


def write(option: str, file: Path, data: bytes) -> None:
    """Writes a file atomically. Raises KernelError if that fails."""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            os.chmod(beside, 0o644)
            os.replace(beside, file)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as error:
        raise KernelError(
            f"`{file}` cannot be written: {error.strerror}",
            where=option,
            hint="name a file that you may write",
        ) from error


def require(package: str, purpose: str, hint: str, where: str = "") -> None:
    """Raises KernelError if a package is not installed. purpose: what it is for, as a sentence."""
    if find_spec(package) is None:
        what = f"the Python package `{package}` is not installed here: {purpose}"
        raise KernelError(what, where=where, hint=hint)


def require_engine() -> None:
    """Raises KernelError if the engine of clusters is not installed."""
    require("ray", "it runs the cluster", "pip install 'speciate[cluster]'", "--cluster")


def keeper(
    asked: Arguments, around: Invocation, say: Callable[[str], None] = lambda text: None
) -> Keeper:
    """The store of runs. Raises KernelError if its packages are missing. say: called when a server
    is lost or found again."""
    if asked.no_store:
        from search.store.forgetful import Forgetful

        return Forgetful()
    require("sqlalchemy", "it keeps runs in a store", "install it, or give --no-store")
    from search.store.store import Store

    return Store(url(asked, around), say, artefacts(asked, around))


def artefacts(asked: Arguments, around: Invocation) -> str | None:
    """The user's place for large texts. Raises KernelError if it cannot be written."""
    given, option = asked.artefacts, "--artefacts"
    if given is None:
        return None
    if asked.no_store:
        raise KernelError("nothing is stored", where=option, hint="leave --no-store out")
    if is_url(given):
        require("fsspec", "it is needed for URLs", "pip install 'speciate[artefacts]'", option)
        return given
    require_folder(option, around.path(given))
    return str(around.path(given).absolute())


def url(asked: Arguments, around: Invocation) -> str:
    """The store's URL, perhaps with a password, or its path.

    Raises KernelError if a run must be read and there is no store.
    """
    if asked.store is not None and is_url(asked.store):
        return asked.store
    store = around.path(asked.store or around.store)
    for option, run in (
        ("--resume", asked.resume),
        ("--replay", asked.replay),
        ("--show", asked.show),
    ):
        if run is not None and not store.is_file():
            raise KernelError(
                f"there is no store in `{store}`, so there is no run `{run}`",
                where=option,
                hint="name the store that the run was made in with --store",
            )
    return str(store)
