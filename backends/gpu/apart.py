"""Runs work on a candidate's code in a clean process, whose memory never held what the judge knows.

Compilers of Python kernels evaluate them, and so do interpreters. A fork of the judging process has
its memory, even though expected results are wiped in it. A process that has joined the connection
of a clean process (`join`) sends such work there: a module-level function and its arguments. The
clean process forks for each piece of work and never runs the work itself. A process without a
connection, such as a tool, forks itself.
"""

from __future__ import annotations

import os
import pickle
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from backends.backend import BackendError
from backends.gpu.child import ChildEnded, in_child
from backends.gpu.plain_pickle import plain_value

MOST_KEPT = 256 << 20  # most bytes of files that one piece of work returns
_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20
_line: list[int] = []  # connection to the clean process, if there is one


def join(line: int) -> None:
    """Makes this process send work to the clean process from now on. line: the descriptor of a
    stream whose other end `serve` has."""
    _line[:] = [line]


def leave() -> None:
    """Closes the connection, which ends the clean process. This process then does its work itself again."""
    while _line:
        os.close(_line.pop())


def joined() -> bool:
    """Whether this process sends its work to a clean process."""
    return bool(_line)


def apart(
    function: Callable[..., Any],
    *args: Any,
    seconds: float,
    stage: str,
    folder: Path,
    keep: Iterable[str] = (),
) -> Any:
    """The result of `function(place, *args)` in another process, which may write to the folder
    `place`. Raises BackendError as `in_child` does.

    function: a module-level function, which the other process imports by name.
    args: picklable arguments.
    folder: where a fork of this process works, and where its files stay.
    keep: names of folders in `place` whose files are in `folder` afterwards, wherever the work was
    done.
    """
    if not _line:
        return in_child(lambda: function(folder, *args), seconds, stage, folder)
    asked = pickle.dumps((function, args, seconds, stage, tuple(keep)), pickle.HIGHEST_PROTOCOL)
    try:
        _send(_line[0], asked)
        answer = _receive(_line[0])
    except OSError:
        answer = None
    if answer is None:
        raise ChildEnded(stage, "the clean process that had it ended", "machine")
    return _taken(answer, stage, folder)


def _taken(answer: bytes, stage: str, folder: Path) -> Any:
    try:
        kind, value, files = plain_value(answer)
    except (ValueError, TypeError) as error:
        raise ChildEnded(stage, f"it sent what is no result: {error}", "crash") from None
    if kind == "ended":
        raise ChildEnded(*value)
    if kind == "failed":
        raise BackendError(*value)
    for name, data in files.items():
        _write(folder, name, data)
    return value


def _write(folder: Path, name: str, data: bytes) -> None:
    """Writes a file that came back; refuses names outside of the folder."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        raise ChildEnded("build", f"it sent a file `{name}`", "crash")
    file = folder / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def serve(line: int, folder: Path) -> None:
    """Serves requests from the other end of a connection until it is closed. folder: where work is done."""
    while (asked := _receive(line)) is not None:
        function, args, seconds, stage, keep = pickle.loads(asked)
        place = Path(tempfile.mkdtemp(dir=folder))
        answer: tuple[str, Any, Mapping[str, bytes]]
        try:
            value = in_child(lambda: function(place, *args), seconds, stage, place, line)  # noqa: B023
            answer = ("value", value, _files(place, keep))
        except ChildEnded as error:
            answer = ("ended", (error.stage, error.reason, error.kind), {})
        except BackendError as error:
            answer = ("failed", (error.stage, error.reason, error.kind), {})
        finally:
            shutil.rmtree(place, ignore_errors=True)
        _send(line, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))


def _files(place: Path, keep: Iterable[str]) -> dict[str, bytes]:
    """The regular files in these folders, by their names in `place`."""
    found: dict[str, bytes] = {}
    left = MOST_KEPT
    for name in keep:
        for file in sorted((place / name).rglob("*")):
            if file.is_symlink() or not file.is_file():
                continue
            left -= file.stat().st_size
            if left < 0:
                raise BackendError("build", f"its files are more than {MOST_KEPT} bytes")
            found[str(file.relative_to(place))] = file.read_bytes()
    return found


def _send(line: int, data: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(line, left) :]


def _receive(line: int) -> bytes | None:
    """The next message; None where the other end is closed."""
    head = _exactly(line, _LENGTH.size)
    return None if head is None else _exactly(line, _LENGTH.unpack(head)[0])


def _exactly(line: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(line, min(count, _CHUNK))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
