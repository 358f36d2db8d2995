"""Work on a candidate's own code in a clean process: one whose memory never held what a judge knows.

Compilers of Python's kernels evaluate these, and so do interpreters. A fork of the process that judges has
its memory, though expected results are wiped in it. A process that was given the line of a clean one (`join`)
sends such work there: a function of a module, and its arguments. The clean process forks for each piece of work;
it never runs the work itself. A process without a line, as of a tool, forks itself.
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

MOST_KEPT = 256 << 20  # bytes of files that come back from one piece of work
_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 20
_line: list[int] = []  # of the clean process, where there is one


def join(line: int) -> None:
    """Has this process send work there from now on. line: a descriptor of a stream, whose other end
    `serve` has."""
    _line[:] = [line]


def leave() -> None:
    """Closes that line, at which the clean process ends: this process does its work itself again."""
    while _line:
        os.close(_line.pop())


def joined() -> bool:
    """Whether work of this process is done in a clean one."""
    return bool(_line)


def apart(
    function: Callable[..., Any],
    *args: Any,
    seconds: float,
    stage: str,
    folder: Path,
    keep: Iterable[str] = (),
) -> Any:
    """What `function(place, *args)` gives in a process of its own, which may write in the folder `place`;
    BackendError as of `in_child`.

    function: of a module, to be found by its name there. args: what can be pickled.  folder: where a fork of
    this process works, and where what it writes stays.  keep: names of folders in `place` whose files are in
    `folder` afterwards, wherever the work was done.
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
    """Writes a file that came back; its name leads nowhere else."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        raise ChildEnded("build", f"it sent a file `{name}`", "crash")
    file = folder / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def serve(line: int, folder: Path) -> None:
    """Does what is asked at the other end of a line until that is closed. folder: where work is done."""
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
    """The files in some folders, by their names in `place`; what is no plain file is left out."""
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
