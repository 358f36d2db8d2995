"""A sandboxed process can write only to its folder, and cannot reach other processes."""

import ctypes
import fcntl
import mmap
import os
import signal
import socket
import subprocess
import termios
from pathlib import Path

import pytest

from search.evaluator import sandbox
from search.evaluator.sandbox import Limits
from search.evaluator.testing.inside import inside, need

LAYERS = (
    "control group",
    "process namespace",
    "killed with its parent",
    "limits",
    "network namespace",
    "read-only mounts",
    "own processes",
    "limited folder",
    "no new privileges",
    "landlock",
    "reads",
    "system calls",
)


@pytest.fixture
def other(layers):
    """A process of the same user. It starts after the child that found the layers, so that its id
    is none of a sandbox's."""
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


def test_every_layer_is_told(layers):
    assert tuple(layers) == LAYERS
    assert all(said.startswith(("yes: ", "no: ")) for said in layers.values())


def test_nothing_of_it_stays_with_the_one_who_asks(folder):
    sandbox.applied(folder, Limits())
    (folder.parent / "after").write_text("still writable")


def test_it_may_do_all_in_its_folder(folder):
    def act():
        (folder / "a").write_text("text")
        (folder / "b").mkdir()
        os.rename(folder / "a", folder / "b" / "c")
        os.truncate(folder / "b" / "c", 2)
        (folder / "b" / "c").unlink()
        (folder / "b").rmdir()
        Path("/dev/null").write_text("gone")
        return subprocess.run(
            ["sh", "-c", "echo run > ran && cat ran"], cwd=folder, capture_output=True, text=True
        ).stdout

    assert inside(folder, act) == "run\n"


@pytest.mark.parametrize(
    "act",
    [
        lambda file: file.write_text("mine"),
        lambda file: file.unlink(),
        lambda file: file.rename(file.with_name("moved")),
        lambda file: os.truncate(file, 0),
        lambda file: os.link(file, file.with_name("own") / "link") or os.truncate(file, 0),
        lambda file: file.with_name("new").write_text("mine"),
        lambda file: file.with_name("new").mkdir(),
        lambda file: Path("/dev/shm/speciate-test").write_text("mine"),
    ],
)
def test_it_may_write_nowhere_else(folder, layers, act):
    need(layers, "landlock")
    file = folder.parent / "theirs.txt"
    assert str(inside(folder, lambda: act(file))).endswith("Error")
    assert file.read_text() == "untouched"
    assert {p.name for p in folder.parent.iterdir()} == {"own", "theirs.txt"}


def test_it_may_not_change_modes_and_times(folder, layers):
    need(layers, "read-only mounts")
    file = folder.parent / "theirs.txt"
    before = file.stat()
    for act in (lambda: os.chmod(file, 0o777), lambda: os.utime(file, (1, 1))):
        assert inside(folder, act) == "OSError"
    assert (file.stat().st_mode, file.stat().st_mtime) == (before.st_mode, before.st_mtime)


def test_it_reaches_no_server(folder, layers):
    need(layers, "network namespace")
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = server.getsockname()
        assert inside(folder, lambda: socket.create_connection(there, 5)) in (
            "PermissionError",
            "OSError",
            "ConnectionRefusedError",
        )
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()


def test_it_may_not_signal_others(folder, layers, other):
    need(layers, "landlock")
    if "nor signals" in layers["landlock"] or "not signals" in layers["landlock"]:
        pytest.skip(layers["landlock"])
    assert inside(folder, lambda: os.kill(other.pid, signal.SIGTERM)) in (
        "PermissionError",
        "ProcessLookupError",
    )
    assert other.poll() is None


def test_it_may_not_read_the_environment_of_others(folder, layers, other):
    need(layers, "network namespace")  # whose user namespace removes the right to inspect others
    file = Path(f"/proc/{other.pid}/environ")
    assert inside(folder, lambda: file.read_bytes().decode()) in (
        "PermissionError",
        "FileNotFoundError",
    )


def test_it_may_write_to_and_control_the_devices_that_it_is_given(folder, layers):
    need(layers, "landlock")

    def write():
        return Path("/dev/zero").write_text("gone")

    def control():
        with open("/dev/ptmx", "r+b", buffering=0) as device:
            return len(fcntl.ioctl(device, termios.TIOCGWINSZ, bytes(8)))

    given = Limits().suited({"devices": ["/dev/zero", "/dev/ptmx", "/dev/no-such-device"]})
    for act, good in ((write, 4), (control, 8)):
        assert inside(folder, act) == "PermissionError"
        assert inside(folder, act, given) == good
    assert "/dev/ptmx" in sandbox.applied(folder, given)["landlock"]


def test_it_may_name_its_threads_where_it_has_devices_and_do_no_more_to_processes(folder, layers):
    need(layers, "landlock", "read-only mounts")
    given = Limits(devices=("/dev/zero",))

    def name():
        return Path(f"/proc/self/task/{os.getpid()}/comm").write_text("named")

    def others():
        return Path("/proc/sys/kernel/domainname").write_text("ours")

    def own():
        return Path("/proc/self/comm").write_text("named")

    assert inside(folder, name, given) == 5
    assert str(inside(folder, name)).endswith("Error")
    for act in (others, own):
        assert str(inside(folder, act, given)).endswith("Error")


def test_a_backend_may_lift_the_limit_on_memory():
    assert Limits().suited({}) == Limits()
    assert Limits().suited({"memory": None}).memory is None


def test_memory_that_was_mapped_before_does_not_count(folder):
    held = mmap.mmap(-1, 1 << 30)
    assert inside(folder, lambda: len(bytearray(1 << 28)), Limits(memory=1 << 29)) == 1 << 28
    held.close()


def test_memory_is_limited(folder):
    def act():
        return len(bytearray(1 << 30))

    assert inside(folder, act, Limits(memory=1 << 29)) == "MemoryError"


def test_files_are_limited(folder):
    def act():
        (folder / "large").write_bytes(bytes(2048))

    assert inside(folder, act, Limits(file=1024)) == "OSError"


def test_all_its_files_together_are_limited(folder, layers):
    need(layers, "limited folder")

    def act():
        for n in range(64):
            (folder / str(n)).write_bytes(bytes(1 << 16))

    assert inside(folder, act, Limits(files=1 << 20)) == "OSError"
    assert list(folder.iterdir()) == []


def test_it_sees_no_processes_but_its_own(folder, layers):
    need(layers, "own processes")

    def act():
        return sorted(name for name in os.listdir("/proc") if name.isdecimal())

    assert inside(folder, act) == ["1", "2"]


def test_nothing_that_it_starts_outlives_it(folder, layers):
    need(layers, "process namespace")
    read, write = os.pipe()
    os.set_inheritable(write, True)

    def act():
        for _ in range(3):  # each leaves the group and the session of the previous one
            if os.fork():
                os._exit(3)
            os.setsid()
        os.write(write, b"there")
        signal.pause()

    assert inside(folder, act) == 3
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        # and then the end, because no process holds the other side
        assert pipe.read() in (b"there", b"")


def test_its_shared_memory_ends_with_it(folder, layers):
    need(layers, "process namespace")
    libc = ctypes.CDLL(None, use_errno=True)

    def act():
        return libc.shmget(0x5EC1A7E, 4096, 0o1600) >= 0

    assert inside(folder, act) is True
    assert libc.shmget(0x5EC1A7E, 4096, 0o600) == -1


@pytest.mark.parametrize("number", [signal.SIGXCPU, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM])
def test_it_ends_for_its_parent_as_it_ended(folder, number):
    assert inside(folder, lambda: os.kill(os.getpid(), number)) == -number
    assert inside(folder, lambda: os._exit(7)) == 7


def test_processor_time_is_limited(folder):
    def act():
        while True:
            pass

    assert inside(folder, act, Limits(cpu=1)) in (-signal.SIGXCPU, -signal.SIGKILL)


def test_a_crash_leaves_no_core(folder):
    assert inside(folder, lambda: ctypes.string_at(0)) == -signal.SIGSEGV
    assert list(folder.iterdir()) == []


def test_a_worker_gets_no_keys():
    given = {"PATH": "/bin", "OPENAI_API_KEY": "secret", "HOME": "/home/me", "LANG": "C.UTF-8"}
    made = sandbox.environment(given)
    assert "secret" not in made.values()
    seen = sandbox.environment({"CHIP_VISIBLE_DEVICES": "1"})
    assert seen["CHIP_VISIBLE_DEVICES"] == "1"
    assert {name: made[name] for name in ("PATH", "HOME", "LANG")} == {
        name: given[name] for name in ("PATH", "HOME", "LANG")
    }


def test_a_layer_that_cannot_be_applied_is_told_with_the_reason(folder, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(sandbox, "_leave_network", refuse)
    assert sandbox.applied(folder, Limits())["network namespace"] == (
        "no: [Errno 1] Operation not permitted"
    )
