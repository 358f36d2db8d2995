"""A kernel's code runs in a process that has nothing, and can do nothing but send commands.

The kernels here are what admission refuses: they call the operating system.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from backends.caged.process import Died, host
from backends.sim.native.kernel_fixture import compiled, run
from backends.sim.native.kernel_process import program
from backends.sim.native.load import load

_CALLS = """
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
"""
# Reports a number that a kernel found.
_TELL = """KERNEL(k) {{
  {body}
  auto a = pe.buffer("a", Dtype::f32, {{{{M, 1}}}}, 1);
  co_await pe.fill(a.tile(), static_cast<double>({value}), {{{{M, 1}}}});
  if (pe.id() == 0) co_await pe.store(args.tensor(0), {{{{0, M, 1}}}}, a.tile());
  co_return;
}}"""
_LENGTH = "std::to_string(pe.id()).size()"  # a use of libstdc++
_ATTEMPTS = [
    'open("/etc/passwd", O_RDONLY)',
    'open("/proc/self/maps", O_RDONLY)',
    "open(text, O_RDONLY)",  # the judging process's memory
    'open("/tmp/speciate-kernel-process", O_CREAT | O_WRONLY, 0600)',
    "socket(AF_INET, SOCK_STREAM, 0)",
    "socket(AF_UNIX, SOCK_STREAM, 0)",
    "fork()",
    'execl("/bin/true", "true", nullptr)',
    "kill(judge, SIGUSR1)",
    "kill(getppid(), SIGKILL)",
    "syscall(SYS_tgkill, judge, judge, SIGUSR1)",
    "syscall(SYS_ptrace, 16, judge, 0, 0)",
    "syscall(SYS_process_vm_readv, judge, 0, 0, 0, 0, 0)",
    "syscall(SYS_prlimit64, judge, RLIMIT_NOFILE, 0, &had)",
    "syscall(SYS_pidfd_open, judge, 0)",
    "syscall(SYS_memfd_create, text, 0)",
    "syscall(SYS_nanosleep, &had, 0)",
    "syscall(SYS_shmget, 0, 4096, 01600)",
    "syscall(SYS_unshare, 0x10000000)",
    "syscall(SYS_perf_event_open, 0, 0, 0, 0, 0)",
]


def told(value, body="", outside="", sizes=()):
    """A number that code in the kernel's process found."""
    y = np.zeros(1, np.float32)
    run(f"{_CALLS}{outside}{_TELL.format(body=body, value=value)}", {"y": y}, sizes)
    return int(y[0])


def test_it_is_another_process_than_the_one_that_judges():
    mine, theirs = os.getpid(), told("getpid() & 0xfffff")
    assert theirs != mine & 0xFFFFF and theirs != os.getppid() & 0xFFFFF


def test_what_a_kernel_is_linked_with_is_there_before_it_is_shut_in():
    library = compiled("#include <string>\n" + _TELL.format(body="", value=_LENGTH))
    said = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True)
    needed = set(re.findall(r"NEEDED +(\S+)", said.stdout))
    assert "libstdc++.so.6" in needed
    assert needed <= {*program().wanted, "libc.so.6", "ld-linux-x86-64.so.2"}


def test_it_is_a_new_program_that_never_held_what_the_judge_holds():
    told("1")
    control, started = host(program(), os.getpid())
    words = Path(f"/proc/{started.pid}/cmdline").read_bytes().split(b"\0")
    assert b"-I" in words and b"-S" in words and control.fileno() >= 0
    maps = Path(f"/proc/{started.pid}/maps").read_text()
    assert "_simulator" in maps and "numpy" not in maps
    variables = Path(f"/proc/{started.pid}/environ").read_bytes().split(b"\0")
    assert {v.partition(b"=")[0] for v in variables} <= {b"LD_LIBRARY_PATH", b"PATH", b""}


def test_it_can_do_nothing_to_others():
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    tried = "\n".join(
        f"if (static_cast<int>({attempt}) >= 0) done |= 1 << {n};"
        for n, attempt in enumerate(_ATTEMPTS)
    )
    outside = (
        "static int tried(int judge) { char text[64]; rlimit had{}; int done = 0;"
        f' std::snprintf(text, sizeof text, "/proc/%d/mem", judge); {tried}\n return done; }}\n'
    )
    try:
        done = told("tried(static_cast<int>(args.size(0)))", outside=outside, sizes=[os.getpid()])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [attempt for n, attempt in enumerate(_ATTEMPTS) if done >> n & 1] == []
    assert not heard


def test_what_it_does_before_its_kernel_is_called_is_shut_in_too():
    outside = 'static int early = [] { return open("/etc/passwd", O_RDONLY) < 0 ? 7 : 1; }();\n'
    assert told("early", outside=outside) == 7


def test_it_has_no_files_but_the_socket_and_the_streams():
    count = "static int files() { int n = 0; for (int f = 0; f < 4096; ++f) n += lseek(f, 0, SEEK_CUR) >= 0 || errno == ESPIPE; return n; }\n"
    assert told("files()", outside="#include <cerrno>\n" + count) <= 4


def test_nothing_stays_from_one_simulation_to_the_next():
    outside = "static int runs = 0;\n"
    for _ in range(2):
        assert told("runs", body="++runs;", outside=outside) <= 4  # once for each element


@pytest.mark.parametrize(
    ("body", "number", "words"),
    [
        ("std::abort();", signal.SIGABRT, "died of SIGABRT"),
        ("*reinterpret_cast<volatile int*>(pe.id()) = 1;", signal.SIGSEGV, "died of SIGSEGV"),
        ("std::raise(SIGTERM);", signal.SIGTERM, "died of SIGTERM"),
        ("_exit(0);", 0, "exit code 0"),
        ("throw 1;", 0, "exit code 1"),
    ],
)
def test_its_end_is_a_failure_and_the_next_one_runs(body, number, words):
    with pytest.raises(Died, match=words) as seen:
        told("0", body=body)
    assert seen.value.number == number
    assert told("3") == 3


def test_what_it_says_by_itself_is_no_answer():
    """Frames without a command in place of the first commands."""
    body = (
        "const int nothing = 0; for (int f = 3; f < 256; ++f) send(f, &nothing, 4, MSG_DONTWAIT);"
    )
    with pytest.raises(load().SimulationError, match="sent what is no command"):
        told("0", body=body)
    assert told("3") == 3


def test_a_number_is_all_that_it_learns_of_a_tensor():
    text = """KERNEL(k) {
      Index n = co_await pe.number(args.tensor(0), {1});
      auto a = pe.buffer("a", Dtype::i64, {{M, 1}}, 1);
      co_await pe.fill(a.tile(), n + 1, {{M, 1}});
      if (pe.id() == 0) co_await pe.store(args.tensor(1), {{0, M, 1}}, a.tile());
      co_return;
    }"""
    x, y = np.array([4, 40], np.int64), np.zeros(1, np.int64)
    run(text, {"x": x, "y": y})
    assert y[0] == 41
