"""Forked child processes for work that may hang, abort, or fail silently."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import pickle
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from backends.backend import BackendError
from backends.busy import starved
from backends.expected import wipe
from backends.gpu.plain_pickle import plain_value
from backends.patience import within

T = TypeVar("T")

MOST_WORDS = 700  # characters of an error message that are kept
MOST_SAID = 1 << 20  # bytes of output that are searched for errors
MOST_FILES = 1 << 16
GRACE = 1.0  # seconds that a child has to exit after its answer
_CHUNK = 1 << 20
_REPEAT = "Repro command:"  # the text after it names files that no longer exist
_SET_PDEATHSIG = 1
# How LLVM and similar tools report an error that they then ignore: at the start of a line, or after
# a source position.
_ERROR = re.compile(r"^(?:.*: )?(?:fatal )?error:.*|^LLVM ERROR.*", re.MULTILINE)


class ChildEnded(BackendError):
    """A child process that was killed, or that crashed."""


def in_child(
    work: Callable[[], T], seconds: float, stage: str, folder: Path, wanted: int | None = None
) -> T:
    """The result of `work` in a forked process that writes only under `folder`.

    The result is returned by pickle. The process has its own session, no output, and its own
    temporary folder; everything that it started dies with it. Raises BackendError(stage) if it
    raises, dies, takes more than `seconds`, or succeeds after printing `error:`.

    wanted: a descriptor that stays silent until the result is known. Data on it, or its closing,
    ends the process.
    """
    most = within(seconds)
    own = Path(tempfile.mkdtemp(prefix=f"{stage}-", dir=folder))
    read, write = os.pipe()
    said = own / "said"
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(work, own, said, write, parent)
    os.close(write)
    try:
        data, status, used = _watch(child, read, time.monotonic() + most, wanted)
        if status is None:
            why = f"it was still at it after {most:.3g} s"
            lacked = most == seconds and starved(used, seconds)
            raise ChildEnded(stage, why, "machine" if lacked else "timeout")
        return _value(data, status, stage, _text(said))
    finally:
        os.close(read)
        shutil.rmtree(own, ignore_errors=True)


def _child(work: Callable[[], T], own: Path, said: Path, pipe: int, parent: int) -> None:
    """The child's side; does not return."""
    try:
        gc.freeze()  # a collection would touch, and so copy, all pages of the parent
        os.setsid()
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the death signal was set up
            os._exit(1)
        _redirect(said)
        # These include the evaluation's outcome, which no kernel may write to.
        os.closerange(3, pipe)
        os.closerange(pipe + 1, MOST_FILES)
        faulthandler.disable()  # its tracebacks go to the parent's stream
        os.environ["TMPDIR"] = str(own)
        tempfile.tempdir = None
        wipe()  # wipes expected results of the parent before untrusted code runs
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            answer: tuple[str, Any] = ("value", work())
        except BackendError as error:
            answer = ("backend", (error.stage, error.reason, error.kind))
        except MemoryError:
            raise
        except Exception as error:  # candidate code: its failure is a result
            answer = ("raised", fault(error))
        data = memoryview(pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL))
        while data:
            data = data[os.write(pipe, data) :]
    except BaseException as error:  # nothing may return into the parent's code
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _redirect(said: Path) -> None:
    """Redirects the output of this process and its children to a file."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # Under a test runner these are its own objects, which write to its files.
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def _watch(
    child: int, pipe: int, deadline: float, wanted: int | None
) -> tuple[bytes, int | None, float]:
    """The data that a child sent; its wait status, None where it was killed at its deadline; and
    its processor time in seconds."""
    # A pidfd becomes readable when the child ends: one `select` waits for data, end and deadline.
    end = os.pidfd_open(child)
    try:
        data, in_time = _receive(pipe, end, deadline, wanted)
        if in_time:
            select.select([end], [], [], GRACE)
    finally:
        os.close(end)
        # Kills the whole session: assemblers, and whatever a kernel's file may have started.
        for send in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                send(child, signal.SIGKILL)
        _, status, use = os.wait4(child, 0)
    return data, status if in_time else None, use.ru_utime + use.ru_stime


def _receive(pipe: int, end: int, deadline: float, wanted: int | None) -> tuple[bytes, bool]:
    """The data from a pipe until it or its writer ends, and whether that was in time: before the
    deadline, and while the result was still wanted."""
    parts: list[bytes] = []
    waited = [pipe, end] if wanted is None else [pipe, end, wanted]
    while True:
        left = deadline - time.monotonic()
        ready = select.select(waited, [], [], max(left, 0))[0]
        if not ready or wanted in ready:
            return b"".join(parts), False
        part = os.read(pipe, _CHUNK) if pipe in ready else b""
        if not part:
            return b"".join(parts), True
        parts.append(part)


def _value(data: bytes, status: int, stage: str, said: str) -> Any:
    """The result that a child sent, or a BackendError that says how it failed."""
    if not data:
        raise ChildEnded(stage, *_death(status, said))
    try:
        kind, value = plain_value(data)
    except (ValueError, TypeError) as error:
        raise ChildEnded(stage, f"it sent what is no result: {error}", "crash") from None
    if kind == "backend":
        raise BackendError(*value)
    if kind == "raised":
        because = [line for line in _ERROR.findall(said)[:2] if line not in value]
        raise BackendError(stage, shortened("\n".join([value, *because])))
    if found := _ERROR.findall(said):
        raise BackendError(stage, shortened("it reported an error and went on: " + found[0]))
    return value


def _death(status: int, said: str) -> tuple[str, str]:
    """How a process that sent nothing ended, in words, and the kind of `Ended`."""
    number = os.waitstatus_to_exitcode(status)
    lines = [line for line in said.strip().splitlines() if line.strip()]
    # Messages about the cause precede the stack traces.
    about = _ERROR.findall(said) or [x for x in lines if "Assertion" in x] or lines[-3:]
    words = f": {shortened(' | '.join(about[:3]))}" if about else ""
    if number == -signal.SIGXCPU:
        return "it used all the processor time that it may have", "timeout"
    short = any(word in said for word in ("bad_alloc", "MemoryError", "out of memory"))
    if number == -signal.SIGKILL and not short:  # none of our limits ends a process this way
        return f"it was killed{words}", "machine"
    kind = "memory" if short else "crash"
    if number < 0:
        return f"it died of {signal.Signals(-number).name}{words}", kind
    return f"it ended with exit code {number} and no result{words}", kind


def limit_memory(more: int) -> None:
    """Limits the address space of this process to what it has mapped plus `more` bytes, or to its
    existing limit, if that is lower."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    wanted = pages * resource.getpagesize() + more
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def fault(error: BaseException) -> str:
    """An exception as text: its type and the end of its message, where compilers state the reason."""
    text = str(error).strip()
    cause = error.__cause__
    if cause is not None and str(cause) not in text:
        text = f"{text}\n{type(cause).__name__}: {cause}".strip()
    text = text.partition(_REPEAT)[0].strip()
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def shortened(text: str) -> str:
    """The first line of a text and its end, at most MOST_WORDS characters."""
    if len(text) <= MOST_WORDS:
        return text
    first = text.splitlines()[0][:100]
    return f"{first} ... {text[len(first) + 5 - MOST_WORDS :]}"


def _text(file: Path) -> str:
    try:
        with file.open("rb") as said:
            return said.read(MOST_SAID).decode(errors="replace")
    except OSError:
        return ""
