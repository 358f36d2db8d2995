"""What a candidate would do if admission did not stop it, each in the sandbox of an evaluation. For
tests: each act raises where it is stopped, and returns where it had its way."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from backends.backend import Built
from search.evaluator.testing.acting import HOURS, MANIFEST, Tongue
from tests.hostile.reach import KEPT, LIBC, OUTSIDE, REACH


def _call(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _search(word: str) -> int:
    """The number of the search's process; in a namespace of its own a candidate may have the same."""
    if int(word) in (1, os.getpid(), os.getppid()):
        raise PermissionError(f"{word} is a process of the namespace's own")
    return int(word)


def write_new(_: str) -> None:
    (OUTSIDE / "new").write_text("out")


def write_over(_: str) -> None:
    KEPT.write_text("out")


def append(_: str) -> None:
    with KEPT.open("a") as file:
        file.write("out")


def remove(_: str) -> None:
    KEPT.unlink()


def rename(_: str) -> None:
    KEPT.rename(OUTSIDE / "moved")


def link(_: str) -> None:
    os.link(KEPT, OUTSIDE / "linked")


def symlink(_: str) -> None:
    os.symlink("/etc/passwd", OUTSIDE / "linked")


def mode(_: str) -> None:
    KEPT.chmod(0o777)


def times(_: str) -> None:
    os.utime(KEPT, (0, 0))


def owner(_: str) -> None:
    os.chown(KEPT, 1, 1)


def truncate(_: str) -> None:
    os.truncate(KEPT, 0)


def make_folder(_: str) -> None:
    (OUTSIDE / "folder").mkdir()


def make_fifo(_: str) -> None:
    os.mkfifo(OUTSIDE / "fifo")


def make_device(_: str) -> None:
    os.mknod("device", 0o666 | 0o020000, os.makedev(1, 3))
    Path("device").read_bytes()


def write_shared_memory(_: str) -> None:
    Path("/dev/shm/speciate-hostile").write_text("out")


def write_source(_: str) -> None:
    Path(__file__).open("a").close()


def write_by_link(_: str) -> None:
    os.symlink(KEPT, "here")
    Path("here").write_text("out")


def write_by_process(_: str) -> None:
    subprocess.run(["sh", "-c", f"echo out > {KEPT}"], check=True, stderr=subprocess.DEVNULL)


def connect_tcp(word: str) -> None:
    socket.create_connection(("127.0.0.1", int(word)), 5)


def connect_outside(_: str) -> None:
    socket.create_connection(("8.8.8.8", 53), 5)


def send_datagram(word: str) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", int(word)))


def resolve(_: str) -> None:
    socket.getaddrinfo("example.com", 80)


def listen(_: str) -> None:
    place = socket.socket()
    place.bind(("0.0.0.0", 0))
    place.listen()


def connect_abstract(word: str) -> None:
    socket.socket(socket.AF_UNIX).connect(f"\0speciate-hostile-{word}")


def limit_search(word: str) -> None:
    resource.prlimit(_search(word), resource.RLIMIT_NOFILE, (16, 16))


def limit_parent(_: str) -> None:
    before = resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (16, 16))
    raise PermissionError(f"the parent is the namespace's own, and had {before}")


def signal_search(word: str) -> None:
    os.kill(_search(word), signal.SIGUSR1)


def stop_search(word: str) -> None:
    os.kill(_search(word), signal.SIGSTOP)


def signal_group(word: str) -> None:
    os.killpg(_search(word), signal.SIGTERM)


def pin_search(word: str) -> None:
    os.sched_setaffinity(_search(word), {0})


def slow_search(word: str) -> None:
    os.setpriority(os.PRIO_PROCESS, _search(word), 19)


def read_search(word: str) -> None:
    Path(f"/proc/{_search(word)}/environ").read_bytes()


def read_memory(word: str) -> None:
    Path(f"/proc/{_search(word)}/mem").open("rb").close()


def trace_search(word: str) -> None:
    _call(LIBC.ptrace(16, _search(word), 0, 0))


def kill_all(_: str) -> None:
    os.kill(-1, signal.SIGKILL)


def kill_first(_: str) -> None:
    os.kill(1, signal.SIGKILL)
    time.sleep(HOURS)


def mount(_: str) -> None:
    _call(LIBC.mount(b"tmpfs", b"/tmp", b"tmpfs", ctypes.c_ulong(0), None))
    raise PermissionError("it is the namespace's own")


def remount(_: str) -> None:
    _call(LIBC.mount(None, b"/", None, ctypes.c_ulong(32), None))
    KEPT.write_text("out")


def own_namespace(_: str) -> None:
    _call(LIBC.unshare(0x10000000 | 0x00020000))
    KEPT.write_text("out")


def change_root(_: str) -> None:
    os.chroot("/tmp")
    KEPT.write_text("out")


def name_host(_: str) -> None:
    socket.sethostname("hostile")


def set_clock(_: str) -> None:
    time.clock_settime(time.CLOCK_REALTIME, 0)


def system_memory(_: str) -> None:
    """Memory of System V outlives a process, but not its namespace."""
    _call(LIBC.shmget(0x5EC1A7E, 4096, 0o1600))


def leave(word: str) -> None:
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", word])


def leave_by_chain(word: str) -> None:
    """Each process of a chain ends at once, in a session of its own."""
    for _ in range(20):
        if os.fork():
            return
        os.setsid()
    os.execvp("sleep", ["sleep", word])


def leave_many(word: str) -> None:
    for _ in range(60):
        subprocess.Popen(["sleep", word], start_new_session=True)


def fork_for_ever(word: str) -> None:
    end = time.monotonic() + 2
    while time.monotonic() < end:
        if os.fork() == 0:
            os.setsid()
            time.sleep(HOURS)


def threads(_: str) -> None:
    while True:
        threading.Thread(target=time.sleep, args=(HOURS,)).start()


def memory(_: str) -> None:
    held = []
    while True:
        held.append(bytearray(1 << 26))


def memory_of_many(_: str) -> None:
    for _ in range(4):
        if os.fork() == 0:
            memory("")
    memory("")


def disk(_: str) -> None:
    for n in range(1 << 12):
        Path(f"file{n}").write_bytes(bytes(1 << 19))


def large_file(_: str) -> None:
    Path("large").write_bytes(bytes(1 << 24))


def loop(_: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 60))
    while True:
        pass


def sleep(_: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(HOURS)


def deadlock(_: str) -> None:
    lock = threading.Lock()
    with lock:
        lock.acquire()


def stop(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def recurse(_: str) -> None:
    sys.setrecursionlimit(1 << 30)
    recurse("")


def segfault(_: str) -> None:
    ctypes.string_at(0)


def end(_: str) -> None:
    os._exit(0)


def system_exit(_: str) -> None:
    sys.exit(0)


def say(_: str) -> None:
    os.write(1, b'outcome {"us": 0.001}\n')
    os.write(2, b'outcome {"us": 0.001}\n')
    os._exit(0)


def forge(_: str) -> None:
    for number in range(3, 256):
        try:
            os.write(number, b'outcome {"us": 0.001}\n')
        except OSError:
            continue


def flood(_: str) -> None:
    while True:
        for number in range(3, 256):
            try:
                os.write(number, b"x" * 65536)
            except OSError:
                continue


# Those that may return: what they did stays inside, which the test looks for.
INSIDE = (system_memory, leave, leave_by_chain, leave_many, fork_for_ever, listen)
STOPPED = (
    *(write_new, write_over, append, remove, rename, link, symlink, mode, times, owner, truncate),
    *(make_folder, make_fifo, make_device, write_shared_memory, write_source, write_by_link),
    *(write_by_process, connect_tcp, connect_outside, send_datagram, resolve, connect_abstract),
    *(
        limit_search,
        limit_parent,
        signal_search,
        stop_search,
        signal_group,
        pin_search,
        slow_search,
    ),
    *(read_search, read_memory, trace_search, kill_all, kill_first, mount, remount, own_namespace),
    *(change_root, name_host, set_clock, threads, memory, memory_of_many, disk, large_file, loop),
    *(sleep, deadlock, stop, recurse, segfault, end, system_exit, say, forge, flood),
)
ACTS = {act.__name__: act for act in (*INSIDE, *STOPPED, *REACH)}


class Hostile(Tongue):
    """A backend whose candidates do what their source says, given its second word."""

    manifest = replace(MANIFEST, name="tongue")

    def build(self, source, nest, machine, folder):
        (folder / "kernel.txt").write_text(source)
        return Built(folder / "kernel.txt", {})

    def run(self, built, nest, machine, sizes, inputs):
        name, _, word = built.file.read_text().partition(" ")
        if name in ACTS:
            ACTS[name](word)
        return super().run(built, nest, machine, sizes, inputs)
