"""A sandboxed process cannot make calls that reach other processes, keys, mounts or the kernel."""

import ctypes
import errno
import os
import platform
import socket
import struct
import subprocess

import pytest

from backends.caged import seccomp
from backends.caged.linux import LIBC
from backends.caged.seccomp import ARCHITECTURES
from search.evaluator.calls import _ABSENT, _OF_DRIVERS, _REFUSED, _program, refuse_calls
from search.evaluator.sandbox import Limits
from search.evaluator.testing.inside import inside, need

ALLOWED, EPERM, ENOSYS = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
ANY = 1 << 20  # an argument without meaning


def answer(text, audit, number, *arguments):
    """The kernel's answer to a call, by a filter."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *arguments, *[ANY] * (6 - len(arguments)))
    at = held = 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("=HBBI", text, 8 * at)
        at += 1
        match code:
            case seccomp.LOAD:
                (held,) = struct.unpack_from("=I", data, value)
            case seccomp.RETURN:
                return value
            case seccomp.EQUAL:
                at += if_true if held == value else if_false
            case seccomp.AT_LEAST:
                at += if_true if held >= value else if_false
            case seccomp.ANY_BIT:
                at += if_true if held & value else if_false
            case _:
                raise AssertionError(f"no such step: {code}")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_is_in_the_tables_is_refused_on_each_architecture(name):
    machine = ARCHITECTURES[name]
    text = _program(machine, ())
    for table, expected in ((_REFUSED, EPERM), (_ABSENT, ENOSYS)):
        for call, numbers in table.items():
            if (number := numbers[machine.column]) is not None:
                assert answer(text, machine.audit, number) == expected, call
    known = {n[machine.column] for n in (*_REFUSED.values(), *_ABSENT.values())}
    by_argument = {machine.clone, machine.ioctl, machine.prlimit, machine.socket}
    for number in set(range(480)) - known - by_argument:
        assert answer(text, machine.audit, number) == ALLOWED, number


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_arguments_decide_on_some(name):
    machine = ARCHITECTURES[name]
    text, audit = _program(machine, ()), machine.audit
    assert answer(text, audit, machine.clone, 0x3D0F00) == ALLOWED  # the flags of a new thread
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(text, audit, machine.clone, flag | 17) == EPERM
    assert answer(text, audit, machine.prlimit, 0) == ALLOWED
    assert answer(text, audit, machine.prlimit, 1) == EPERM
    assert answer(text, audit, machine.ioctl, 0, 0x5401) == ALLOWED
    assert answer(text, audit, machine.ioctl, 0, 0x5412) == EPERM
    assert answer(text, audit, machine.ioctl, 0, 0x541C) == EPERM
    drivers = _program(machine, _OF_DRIVERS)
    for family in range(50):
        assert answer(text, audit, machine.socket, family) == EPERM
        expected = ALLOWED if family in (1, 2, 10, 16) else EPERM
        assert answer(drivers, audit, machine.socket, family) == expected


def test_another_architecture_has_no_calls():
    for name, machine in ARCHITECTURES.items():
        others = [m.audit for m in ARCHITECTURES.values() if m is not machine]
        for audit in (0x40000003, *others):  # including i386
            assert answer(_program(machine, ()), audit, 0) == ENOSYS, name
    machine = ARCHITECTURES["x86_64"]
    assert answer(_program(machine, ()), machine.audit, 0x40000000 | 101) == ENOSYS


def test_the_kernel_keeps_to_it(folder, layers):
    need(layers, "system calls")
    column = ARCHITECTURES[platform.machine()].column
    # Calls that the kernel permits on the process itself, or answers differently.
    tried = ("ptrace", "process_vm_readv", "kcmp", "keyctl", "personality", "pidfd_getfd")

    def act():
        found = {}
        for name in (*tried, *_ABSENT):
            number = {**_REFUSED, **_ABSENT}[name][column]
            ctypes.set_errno(0)
            LIBC.syscall(number, 0, 0, 0, 0, 0)
            found[name] = ctypes.get_errno()
        return found

    found = inside(folder, act)
    assert found == {name: errno.ENOSYS if name in _ABSENT else errno.EPERM for name in found}
    assert set(found) == {*tried, *_ABSENT}


def test_it_has_no_sockets_but_those_of_drivers(folder, layers):
    need(layers, "system calls")

    def act():
        made = []
        for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_NETLINK, socket.AF_VSOCK):
            try:
                socket.socket(family, socket.SOCK_STREAM if family != 16 else socket.SOCK_RAW)
            except PermissionError:
                continue
            made.append(int(family))
        return made

    assert inside(folder, act) == []
    assert inside(folder, act, Limits(devices=("/dev/zero",))) == [1, 2, 16]


def test_threads_processes_and_programs_start_as_ever(folder):
    def act():
        import threading

        done = []
        thread = threading.Thread(target=done.append, args=(1,))
        thread.start()
        thread.join()
        child = os.fork()
        if child == 0:
            os._exit(3)
        done.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.append(subprocess.run(["true"], check=True).returncode)
        return done

    assert inside(folder, act) == [1, 3, 0]


def test_an_architecture_without_numbers_is_told(monkeypatch):
    monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
    with pytest.raises(OSError, match="riscv64"):
        refuse_calls(())
