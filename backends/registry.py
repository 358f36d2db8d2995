"""The registry: finds backends and targets by their folders and files."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from backends.backend import Backend
from backends.manifest import Manifest, manifest
from ir.errors import KernelError
from ir.machine import Machine
from ir.source import near
from machines.fields import faults
from machines.registry import read

_MANIFEST = "backend.toml"
_ENDING = ".toml"


@dataclass(frozen=True, slots=True)
class Registry:
    """The contents of a folder: `<name>/backend.toml` is a backend, `targets/<name>.toml` a target."""

    folder: Path
    # The Python package of the folder. Nothing of a backend is imported until `backend` is called.
    package: str

    def backend_names(self, for_tests: bool = False) -> tuple[str, ...]:
        """The backends in alphabetical order. for_tests: includes those for tests."""
        found = sorted(p.parent.name for p in self.folder.glob(f"*/{_MANIFEST}"))
        return tuple(n for n in found if for_tests or not self.manifest(n).for_tests)

    def manifest(self, name: str) -> Manifest:
        """The manifest of a backend. KernelError if it is missing or wrong."""
        file = self.folder / name / _MANIFEST
        if not file.is_file():
            known = sorted(p.parent.name for p in self.folder.glob(f"*/{_MANIFEST}"))
            raise _unknown("backend", name, known)
        found = manifest(_table(file), str(file))
        if found.name != name:
            raise KernelError(
                f"field `name` is `{found.name}`, the folder is `{name}`",
                where=str(file),
                hint="give both the same name",
            )
        return found

    @cache  # noqa: B019 (a registry lives as long as the process)
    def backend(self, name: str) -> Backend:
        """The backend with a name, always the same object. It is imported on first use; KernelError if that fails."""
        found = self.manifest(name)
        return self._loaded(found, found.object)(found)

    def compile(self, name: str, file: Path, machine: Machine, to: Path) -> None:
        """Compiles a source file of a backend alone, for the sizes that it is tuned for. Nothing
        else of the backend is imported. KernelError if the backend compiles sources with their
        nests only."""
        found = self.manifest(name)
        if not found.compile:
            raise KernelError(
                f"backend `{name}` compiles no source by itself",
                where=str(file),
                hint="add `compile` to its backend.toml",
            )
        self._loaded(found, found.compile)(file, machine, to)

    def _loaded(self, found: Manifest, object: str) -> Any:
        """Imports what a manifest names as `module:name` in its backend's folder."""
        module, _, name = object.partition(":")
        module = f"{self.package}.{found.name}.{module}"
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as e:
            raise KernelError(
                f"backend `{found.name}` cannot be loaded from {module}: {e}",
                where=str(self.folder / found.name / _MANIFEST),
                hint=f"it needs: {found.toolchain}",
            ) from e

    def target_names(self, for_tests: bool = False) -> tuple[str, ...]:
        """The targets in alphabetical order. for_tests: includes those that only backends for tests serve."""
        found = self._target_files()
        real = set(self.backend_names())
        return tuple(n for n in found if for_tests or real & set(self._target(n)[0].backends))

    def target(self, name_or_path: str) -> Machine:
        """A target by its name, or from a user's file (`x.toml`, or a path with a slash).

        Raises KernelError for an unknown name, for a file that cannot be read or lists an unknown
        backend, and for a missing or wrong field, in the general part or in a backend's own table.
        """
        found, file = self._target(name_or_path)
        for served in map(self.manifest, found.backends):
            if served.table:
                check = self._loaded(served, served.table)
                try:
                    check(found)
                except faults.Unchecked:
                    continue
                except KernelError as error:
                    raise error.within(str(file)) from None
            elif served.name in found.details:
                what = f"table `[{served.name}]` is not read: backend `{served.name}` has no fields"
                faults.refuse(KernelError(what, where=str(file), hint="delete the table"))
        own = self.folder / "targets" / f"{found.name}{_ENDING}"
        if own.is_file() and not own.samefile(file):
            what = f"field `name` is `{found.name}`, which is a target of the project"
            hint = "give it a name of its own: results are stored by the target's name"
            faults.refuse(KernelError(what, where=str(file), hint=hint))
        return replace(found, rendering=self.manifest(found.backends[0]).rendering)

    def faults(self, file: str) -> tuple[KernelError, ...]:
        """All errors of a target file, one per field. If a field is wrong by itself, its table is
        not compared with others."""
        with faults.collecting() as found:
            try:
                self.target(file if "/" in file else f"./{file}")
            except KernelError as error:  # after this error, nothing could be read
                found.errors.append(error)
        kept: dict[str, KernelError] = {}  # the first error of each field
        for one in found.errors:
            kept.setdefault(one.what.split(" ", 2)[1], one.within(""))
        return tuple(kept.values())

    def _target(self, name_or_path: str) -> tuple[Machine, Path]:
        """A target, without checks of its backends' own tables, and its file."""
        is_path = name_or_path.endswith(_ENDING) or "/" in name_or_path
        file = Path(name_or_path) if is_path else self.folder / "targets" / (name_or_path + _ENDING)
        if not is_path and not file.is_file():
            raise _unknown("target", name_or_path, self._target_files())
        found = read(_table(file), str(file))
        if not is_path and found.name != name_or_path:
            raise KernelError(
                f"field `name` is `{found.name}`, the file is `{file.name}`",
                where=str(file),
                hint="give both the same name",
            )
        known = self.backend_names(for_tests=True)
        for backend in found.backends or ("",):
            if backend not in known:
                raise _unknown("backend", backend, known, str(file))
        return found, file

    def served_by(self, found: Machine, backend: Backend) -> Machine:
        """The machine as a backend serves it. A target is loaded as its first backend serves it."""
        return replace(found, rendering=backend.manifest.rendering)

    def backend_for(self, found: Machine, wanted: str | None = None) -> Backend:
        """The backend that serves a machine: `wanted`, or else the first that the machine lists."""
        if wanted is not None and wanted not in found.backends:
            raise KernelError(
                f"target `{found.name}` is not served by backend `{wanted}`",
                allowed=", ".join(found.backends),
                hint=near(wanted, found.backends, "name one of these"),
            )
        return self.backend(wanted or found.backends[0])

    def _target_files(self) -> list[str]:
        return sorted(p.stem for p in (self.folder / "targets").glob("*" + _ENDING))


def _table(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        what, hint = f"cannot be read: {e.strerror}", "give the path of a file that exists"
    except UnicodeDecodeError as e:
        what, hint = f"is not a text in UTF-8: {e.reason}", "save it as UTF-8"
    except tomllib.TOMLDecodeError as e:
        what, hint = f"is not TOML: {e}", "look at the line and column given"
    raise KernelError(f"the file {what}", where=str(file), hint=hint)


def _unknown(noun: str, name: str, known: Iterable[str], where: str = "") -> KernelError:
    names = list(known)
    return KernelError(
        f"there is no {noun} `{name}`",
        where=where,
        allowed=", ".join(names) or f"none: no {noun} was found",
        hint=near(name, names, f"choose a {noun} of the list"),
    )


REGISTRY = Registry(Path(__file__).parent, __package__ or "backends")

backend_names = REGISTRY.backend_names
backend = REGISTRY.backend
backend_for = REGISTRY.backend_for
served_by = REGISTRY.served_by
compile_source = REGISTRY.compile
target_names = REGISTRY.target_names
target = REGISTRY.target
