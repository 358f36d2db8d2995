"""Functions of an untrusted library, called in a process that can only compute."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from backends.caged.frames import Malformed
from backends.caged.memory import Segment
from backends.caged.native import Call, native
from backends.caged.process import Died, host

_TEXT = r"""
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static char said[256];
static int early = open("/etc/passwd", O_RDONLY);
static int runs;
#define EXPORT extern "C" const char*
EXPORT add(double* to, const double* from, long long count) {
  for (long long n = 0; n < count; ++n) to[n] += from[n];
  return nullptr;
}
EXPORT words() { return "first"; }
EXPORT many() { return std::snprintf(said, sizeof said, "run %d", ++runs), said; }
EXPORT tried(long long judge) {
  char place[64];
  std::snprintf(place, sizeof place, "/proc/%lld/mem", judge);
  int done = early >= 0;
  done |= (open("/etc/passwd", O_RDONLY) >= 0) << 1;
  done |= (open(place, O_RDONLY) >= 0) << 2;
  done |= (open("/tmp/speciate-native", O_CREAT | O_WRONLY, 0600) >= 0) << 3;
  done |= (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) << 4;
  done |= (fork() >= 0) << 5;
  done |= (kill(static_cast<pid_t>(judge), SIGUSR1) == 0) << 6;
  done |= (syscall(SYS_shmget, 0, 4096, 01600) >= 0) << 7;
  done |= (syscall(SYS_process_vm_readv, judge, 0, 0, 0, 0, 0) >= 0) << 8;
  std::snprintf(said, sizeof said, "%d", done);
  return said;
}
EXPORT with_thread() {
  int done = 0;
  pthread_t other;
  const auto run = [](void* to) -> void* { return *static_cast<int*>(to) = 1, nullptr; };
  if (pthread_create(&other, nullptr, run, &done) == 0) pthread_join(other, nullptr);
  done |= (fork() >= 0) << 1;
  std::snprintf(said, sizeof said, "%d", done);
  return said;
}
extern "C" void pause_for(long long milliseconds) {
  timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += milliseconds * 1000000, end.tv_sec += end.tv_nsec / 1000000000, end.tv_nsec %= 1000000000;
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}
EXPORT speak() {
  for (int f = 1; f < 3; ++f)
    if (write(f, "to a model", 10) < 0) continue;
  return nullptr;
}
EXPORT stop() { std::abort(); }
EXPORT leave() { _exit(3); }
EXPORT nowhere() { return reinterpret_cast<const char*>(8); }
EXPORT forged() {
  const unsigned length = 1u << 30;
  for (int f = 3; f < 64; ++f) send(f, &length, 4, MSG_DONTWAIT);
  return nullptr;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "code.cc").write_text(_TEXT)
    made = folder / "code.so"
    flags = ["-std=c++20", "-shared", "-fPIC", "-O1"]
    subprocess.run(["g++", *flags, str(folder / "code.cc"), "-o", str(made)], check=True)
    return made


def said(library: Path, *calls: Call) -> str:
    """The result of calls in a new process."""
    with native(library, Segment(64), ("libstdc++.so.6", "libm.so.6")) as code:
        assert code.load(sorted({call.function for call in calls})) == ""
        return code.call(*calls)


def test_a_function_changes_memory_that_both_sides_have(library):
    memory = Segment(4096)
    to, given = (memory.room(80).view(np.float64) for _ in range(2))
    to[...], given[...] = np.arange(10), 0.5
    with native(library, memory, ("libstdc++.so.6", "libm.so.6")) as code:
        assert code.load(["add"]) == ""
        call = Call("add", (code.address(to), code.address(given), 10))
        assert code.call(call, call) == ""
        np.testing.assert_array_equal(to, np.arange(10) + 1)
        given[...] = 2
        assert code.call(call) == ""
    np.testing.assert_array_equal(to, np.arange(10) + 3)


@pytest.mark.parametrize(("threads", "done"), [(False, "0"), (True, "1")])
def test_threads_are_started_where_they_may_be_and_processes_nowhere(threads, done, library):
    wanted = ("libstdc++.so.6", "libm.so.6")
    with native(library, Segment(64), wanted, threads=threads) as code:
        assert code.load(["with_thread"]) == ""
        assert code.call(Call("with_thread", ())) == done


def test_calls_are_timed_by_the_clock_of_their_process(library):
    with native(library, Segment(64), ("libstdc++.so.6", "libm.so.6"), threads=True) as code:
        assert code.load(["pause_for"], texts=False) == ""
        one, several = (code.seconds(*[Call("pause_for", (5,))] * n) for n in (1, 4))
    assert one >= 0.005 and several >= 0.02


def test_a_segment_is_given_out_once_and_not_beyond_its_end():
    memory = Segment(200)
    first, second = memory.room(70), memory.room(70)
    first[...] = 1
    assert not second.any() and memory.offset(second) == 128
    with pytest.raises(AssertionError, match="made for less"):
        memory.room(70)


def test_the_first_text_is_said_and_ends_the_calls(library):
    assert said(library, Call("words", ()), Call("many", ())) == "first"
    for _ in range(2):  # no state stays from one process to the next
        assert said(library, Call("many", ())) == "run 1"


def test_what_it_prints_goes_nowhere(library, capfd):
    """Otherwise its last words would be part of the failure's reason, which a model reads."""
    host.cache_clear()  # otherwise the host has the output of an earlier test
    said(library, Call("speak", ()))
    out, err = capfd.readouterr()
    assert "to a model" not in out + err


def test_what_a_library_lacks_is_named(library, tmp_path):
    with native(library, Segment(8), ("libstdc++.so.6", "libm.so.6")) as code:
        assert code.load(["words", "other"]) == "the source defines no `other`"
    with native(tmp_path / "none.so", Segment(8)) as code:
        assert "cannot be loaded" in code.load([])


def test_it_can_do_nothing_to_others(library):
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        assert said(library, Call("tried", (os.getpid(),))) == "0"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not heard


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("stop", signal.SIGABRT, "died of SIGABRT"),
        ("nowhere", signal.SIGSEGV, "died of SIGSEGV"),
        ("leave", 0, "exit code 3"),
    ],
)
def test_its_end_is_told_and_the_next_one_runs(library, name, number, words):
    with pytest.raises(Died, match=words) as seen:
        said(library, Call(name, ()))
    assert seen.value.number == number
    assert said(library, Call("words", ())) == "first"


def test_a_message_of_its_own_making_is_no_answer(library):
    with pytest.raises(Malformed, match="where at most"):
        said(library, Call("forged", ()))
