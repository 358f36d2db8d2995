"""Read access of a candidate's process: the toolchain, the project's packages and its folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import search
from backends.caged.landlock import READS, REFER, restrict, version, writes

# Read here, because a candidate's process has another HOME.
_HOME = Path(os.path.expanduser("~")).resolve()
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or _HOME / ".cache", "speciate")
_TREE = Path(search.__file__).resolve().parents[1]
# Whether the project is installed as a package, in place of a checkout.
_INSTALLED = (_TREE / "__init__.py").is_file()
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_FILES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FACTS = ("/sys/devices/system", "/sys/kernel/mm", "/sys/fs/cgroup")
# Parts of /proc that may be read if it also shows other processes.
_OF_MACHINE = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems")
# Folders of the root that do not belong to an installed system. A device's driver may read all
# others.
_PRIVATE = frozenset("home root tmp var srv mnt media lost+found".split())


def limit_reads(folder: Path, devices: tuple[str, ...], own_processes: bool) -> str:
    """Permanently limits what this process may read. Returns a description. Raises OSError if the
    kernel has no Landlock.

    own_processes: whether /proc shows only the processes of this namespace.
    """
    refer = writes(version()) & REFER
    places = {*toolchain(), *map(Path, (*_FILES, *_FACTS))}
    places |= {Path("/proc")} if own_processes else set(map(Path, _OF_MACHINE))
    if devices:
        places |= set(_installed())
    allowed = [(folder, READS | refer), *((place, READS) for place in places)]
    restrict(READS | refer, 0, 0, allowed)
    more = ", and what a device's driver may need" if devices else ""
    return f"the toolchain, the project's packages, the folder{more}"


@cache
def toolchain() -> tuple[Path, ...]:
    """The places of programs, libraries and modules, without symbolic links."""
    found = [*map(Path, (*_SYSTEM, *_SETTINGS)), _CACHE, *_packages()]
    found += map(Path, (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    for variable in ("PATH", "LD_LIBRARY_PATH"):
        found += map(Path, filter(None, os.environ.get(variable, "").split(os.pathsep)))
    for variable in ("CC", "CXX"):
        if program := shutil.which(os.environ.get(variable, "")):
            found.append(Path(program).resolve().parent)
    places = {os.path.realpath(place) for place in found}
    places |= _modules()  # a build may have put some elsewhere
    kept: set[str] = set()
    for place in sorted(places):
        if _holds(place, str(_HOME)) or (_holds(place, str(_TREE)) and not _INSTALLED):
            continue  # it holds more than a toolchain
        if not any(above in kept for above in _above(place)):
            kept.add(place)
    return tuple(sorted(map(Path, kept)))


def _holds(place: str, file: str) -> bool:
    return file == place or file.startswith(place.rstrip("/") + "/")


def _above(place: str) -> Iterator[str]:
    """The parent folders of a place."""
    while (folder := os.path.dirname(place)) != place:
        yield folder
        place = folder


def _modules() -> set[str]:
    """The files of all modules, without symbolic links. Thousands of modules are in few folders, so
    each folder is resolved once."""
    folders: dict[str, str] = {}

    def in_real_folder(file: str) -> str:
        folder, name = os.path.split(file)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        return os.path.join(folders[folder], name)

    found = set()
    for module in list(sys.modules.values()):
        if isinstance(file := getattr(module, "__file__", None), str):
            real = in_real_folder(file)
            if os.path.islink(real):
                real = in_real_folder(os.path.join(os.path.dirname(real), os.readlink(real)))
            found.add(os.path.realpath(real) if os.path.islink(real) else real)
    return found


def _packages() -> Iterator[Path]:
    """The places of modules; from the project's tree only its packages, because stores and results
    may be there too."""
    for entry in map(Path, filter(None, sys.path)):
        if entry.resolve() != _TREE and not (entry / "search" / "evaluator").is_dir():
            yield entry
    yield _TREE / "templates"
    yield from (file.parent for file in _TREE.glob("*/__init__.py"))


def _installed() -> Iterator[Path]:
    """The folders of the root that belong to an installed system."""
    return (place for place in Path("/").iterdir() if place.name not in _PRIVATE)
