"""The sandbox: a process that can write to one folder only and has no network, permanently.

Its layers are: a process namespace, whose processes all end with it (`namespaces.py`); a control
group with total limits (`groups.py`); no new privileges; an empty network namespace; read-only
mounts, against changes that Landlock permits (modes, owners, times); a view of its own processes
only; a file system of limited size for its folder; Landlock for writes and reads (`landlock.py`,
`reads.py`); a filter of system calls (`calls.py`); limits on memory, file size and processes. Each
layer is applied if the kernel permits it, and reported if not.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backends.caged import landlock
from backends.caged.linux import LIBC, call, no_new_privileges
from search.evaluator import groups
from search.evaluator.calls import refuse_calls
from search.evaluator.groups import Group
from search.evaluator.namespaces import descend, die_with_parent, unshare_as_oneself
from search.evaluator.reads import limit_reads, toolchain

_NEW_NET, _NEW_MOUNTS = 0x40000000, 0x00020000
_MOUNT_SETATTR, _HERE, _RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_BIND, _PRIVATE = 1 << 12, 1 << 18
_NO_SETUID, _NO_DEVICES = 1 << 1, 1 << 2

_DEVICES = ("/dev/null",)
_THREADS = "/proc/self/task"  # a device's driver names its threads here, or refuses to start

_GRACE = 5  # seconds of processor time between the signal and the kill
FULL = 1 << 20  # a file system with fewer free bytes counts as full


@dataclass(frozen=True, slots=True)
class Limits:
    """The resource limits of one candidate."""

    # None: not limited. Unlike wall time, processor time does not depend on the load of the
    # machine.
    cpu: int | None = 60  # seconds of processor time of one process
    seconds: float = 300.0  # of wall time, because waiting takes no processor time
    memory: int | None = 4 << 30  # bytes of address space in addition to what is already mapped
    file: int | None = 256 << 20  # bytes of one file
    files: int | None = 2 << 30  # bytes of all its files
    total: int | None = 8 << 30  # bytes of memory of all its processes, including files in memory
    processes: int | None = 1024  # concurrent processes and threads
    # Device files that it may write and control. With any, it may also name its threads.
    devices: tuple[str, ...] = ()

    def suited(self, can: Mapping[str, Any]) -> Limits:
        """These limits, adjusted to the needs of a backend's candidates: `devices`, device files;
        and `memory`, None if the address space must not be limited."""
        memory = can["memory"] if "memory" in can else self.memory
        # memory that a device maps would count too
        total = self.total if memory is not None else None
        devices = (*self.devices, *can.get("devices", ()))
        return replace(self, memory=memory, total=total, devices=devices)

    def times(self, count: int) -> Limits:
        """These limits with `count` times as much time."""
        cpu = None if self.cpu is None else self.cpu * count
        return replace(self, cpu=cpu, seconds=self.seconds * count)


def grouped(limits: Limits) -> Group | None:
    """A control group for one evaluation; None if this process cannot create one."""
    try:
        return groups.made(limits.total, limits.processes)
    except OSError:
        return None


def enter(folder: Path, limits: Limits, group: Group | None = None) -> dict[str, str]:
    """Puts this process and everything that it starts into the sandbox. Returns the state of each
    layer.

    folder: the only writable place afterwards. group: from `grouped`. The state of a layer is `yes`
    with its coverage, or `no` with the reason.
    """
    told = {
        "control group": _told(group.enter) if group else "no: none can be made here",
        "process namespace": _told(_descend),
    }
    inner = told["process namespace"].startswith("yes")
    told |= {
        "killed with its parent": _told(die_with_parent),
        "limits": _told(lambda: _limit(limits)),
        "network namespace": _told(lambda: _leave_network(inner)),
        "read-only mounts": _told(lambda: _freeze_mounts(folder, limits.devices)),
        "own processes": _told(lambda: _mount_processes(inner, limits.devices)),
        "limited folder": _told(lambda: _mount_folder(folder, limits.files)),
        "no new privileges": _told(_no_new_privileges),
        "landlock": _told(lambda: _landlock(folder, limits.devices)),
    }
    own = told["own processes"].startswith("yes")
    return told | {
        "reads": _told(lambda: limit_reads(folder, limits.devices, own)),
        "system calls": _told(lambda: refuse_calls(limits.devices)),
    }


def applied(folder: Path, limits: Limits) -> dict[str, str]:
    """The layers that `enter` can apply on this machine, tried in a child process."""
    toolchain()  # cached here, for all children
    read, write = os.pipe()
    group = grouped(limits)
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(enter(folder, limits, group)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if group:
        group.remove()
    return json.loads(text) if text else {"sandbox": "no: a process that entered it died"}


def disk_is_full(folder: Path, files: int | None) -> bool:
    """Whether the file system of an evaluation's folder is full. A file system of limited size that
    was mounted for the candidate does not count, because the candidate itself fills it."""
    found = os.statvfs(folder)
    own = files is not None and found.f_blocks * found.f_frsize <= files
    used_up = found.f_bavail * found.f_frsize < FULL or (found.f_files > 0 and not found.f_favail)
    return used_up and not own


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment variables of a worker: for programs, libraries, caches and devices, but no
    keys."""
    kept = ["PATH", "CC", "CXX", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "HOME"]
    kept += ["XDG_CACHE_HOME", *(name for name in given if name.endswith("_VISIBLE_DEVICES"))]
    # One thread each: there are as many workers as cores, and sums keep their order.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    hashing = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return {k: given[k] for k in kept if k in given} | threads | hashing


def homes(folder: Path) -> dict[str, str]:
    """The variables for places to write, for a process that may write only to `folder`."""
    return {name: str(folder) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}


def _told(layer: Callable[[], str]) -> str:
    try:
        return f"yes: {layer()}"
    except (OSError, ValueError) as error:
        return f"no: {error}"


def _descend() -> str:
    descend()
    return "with System V memory"


def _limit(limits: Limits) -> str:
    chosen = (
        ("processor seconds", resource.RLIMIT_CPU, limits.cpu),
        ("address space", resource.RLIMIT_AS, limits.memory and limits.memory + _mapped()),
        ("file size", resource.RLIMIT_FSIZE, limits.file),
        ("processes", resource.RLIMIT_NPROC, limits.processes),
        ("core dump", resource.RLIMIT_CORE, 0),
    )
    said = []
    for name, which, most in chosen:
        if most is None:
            continue
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # At the soft limit of processor time the kernel sends a signal; at the hard limit it kills.
        soft = most - _GRACE if which == resource.RLIMIT_CPU and most > _GRACE else most
        resource.setrlimit(which, (soft, most))
        # The kernel does not limit the processes of the superuser.
        exempt = which == resource.RLIMIT_NPROC and os.getuid() == 0
        said.append(f"{name} {'not held for root' if exempt else most}")
    return ", ".join(said)


def _mapped() -> int:
    """Mapped bytes of this process's address space, which include libraries of hundreds of
    megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def _leave_network(inner: bool) -> str:
    """Enters an empty network namespace. inner: whether this process has its own user namespace
    already."""
    if inner:
        call(LIBC.unshare(_NEW_NET))
    else:
        unshare_as_oneself(_NEW_NET)
    return "empty"


def _freeze_mounts(folder: Path, devices: tuple[str, ...]) -> str:
    call(LIBC.unshare(_NEW_MOUNTS))
    places = [folder, *([Path(_THREADS)] if devices else [])]
    _bind(places)
    _mount_attributes(b"/", _RECURSIVE, setting=_READ_ONLY, propagation=_PRIVATE)
    _make_writable(places)
    os.chdir(folder)
    return "all but the folder"


def _mount_processes(inner: bool, devices: tuple[str, ...]) -> str:
    """Makes /proc show only the processes of the namespace."""
    if not inner:
        raise OSError(0, "there is no namespace of processes")
    flags = ctypes.c_ulong(_NO_SETUID | _NO_DEVICES)
    call(LIBC.mount(b"proc", b"/proc", b"proc", flags, None))
    places = [Path(_THREADS)] if devices else []
    _bind(places)
    _mount_attributes(b"/proc", 0, setting=_READ_ONLY)
    _make_writable(places)
    return "/proc"


def _bind(places: Sequence[Path]) -> None:
    """Bind-mounts folders on themselves, so that their attributes can differ from those around
    them."""
    for place in map(os.fsencode, places):
        call(LIBC.mount(place, place, None, ctypes.c_ulong(_BIND), None))


def _make_writable(places: Sequence[Path]) -> None:
    for place in places:
        _mount_attributes(os.fsencode(place), 0, clearing=_READ_ONLY)


def _mount_folder(folder: Path, most: int | None) -> str:
    """Mounts an empty in-memory file system on the folder. It ends with the namespace."""
    if most is None:
        raise OSError(0, "not asked for")
    flags = ctypes.c_ulong(_NO_SETUID | _NO_DEVICES)
    sized = f"size={most},mode=0700".encode()
    call(LIBC.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, sized))
    os.chdir(folder)
    return f"{most} bytes"


def _mount_attributes(
    place: bytes, flags: int, setting: int = 0, clearing: int = 0, propagation: int = 0
) -> None:
    attributes = struct.pack("=4Q", setting, clearing, propagation, 0)
    size = ctypes.c_size_t(len(attributes))
    call(LIBC.syscall(_MOUNT_SETATTR, _HERE, place, flags, attributes, size))


def _no_new_privileges() -> str:
    no_new_privileges()
    return "set"


def _landlock(folder: Path, devices: tuple[str, ...]) -> str:
    abi = landlock.version()
    files, tcp, scopes = landlock.writes(abi), landlock.network(abi), landlock.scopes(abi)
    to_file = landlock.WRITE_FILE | landlock.TRUNCATE
    allowed = [(folder, files), *((Path(device), to_file) for device in _DEVICES)]
    allowed += [(Path(device), to_file | landlock.IOCTL_DEVICE) for device in devices]
    if devices:
        allowed.append((Path(_THREADS), to_file))
    landlock.restrict(files, tcp, scopes, allowed)
    lacking = [name for name, has in (("TCP", tcp), ("signals", scopes)) if not has]
    held = f"ABI {abi}, files" + (f", not {' nor '.join(lacking)}" if lacking else ", TCP, signals")
    return held + (f"; open: {', '.join(devices)}" if devices else "")
