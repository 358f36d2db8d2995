"""Apart: a function called in a process of its own, with limits on time and memory."""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ir.errors import KernelError

LONGEST = 50  # characters of a folder in which a socket can be named: 107 are all there are
_PRELOADED = "frontends.kernelbench.ready"


def apart(
    work: Callable[..., Any],
    *args: Any,
    seconds: float = 300.0,
    gigabytes: float | None = 16.0,
) -> Any:
    """What `work(*args)` returns; function, arguments and result can be pickled.

    gigabytes: of data that the process may hold; None: as there is, for one that opens a device,
    whose driver reserves more addresses than there is memory. A KernelError of the work is raised here; that the
    process dies, or takes too long, is one.
    """
    _shorten()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_preloaded(work, gigabytes))  # read when the first one starts
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, work, args, gigabytes), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            raise KernelError(f"the work takes longer than {seconds:g} s", hint="give it more time")
        found, error = ours.recv()
    except EOFError:
        child.join()
        raise KernelError(
            f"the process ended with {child.exitcode}",
            hint=f"it may hold {gigabytes:g} GB; a problem can be scaled down" if gigabytes else "",
        ) from None
    finally:
        child.kill()
        child.join()
    if error is not None:
        raise error
    return found


def _preloaded(work: Callable[..., Any], gigabytes: float | None) -> list[str]:
    """What is there before a process is forked. Exporting asks whether there is a device, and no
    process forked after that can open one: what will open it has only modules there."""
    return [work.__module__] if gigabytes is None else [_PRELOADED, work.__module__]


def _shorten() -> None:
    """The server's socket lies in the folder for temporary files, which may have too long a name."""
    if len(tempfile.gettempdir()) <= LONGEST:
        return
    before, tempfile.tempdir = tempfile.tempdir, "/tmp"
    try:
        multiprocessing.util.get_temp_dir()  # is kept from the first call on
    finally:
        tempfile.tempdir = before


def _child(
    out: Connection, work: Callable[..., Any], args: tuple[Any, ...], gigabytes: float | None
) -> None:
    threading.Thread(target=_end_with_caller, daemon=True).start()
    if gigabytes is not None:
        limit = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        out.send((work(*args), None))
    except KernelError as error:
        out.send((None, error))
    except Exception as error:  # code of others
        out.send((None, KernelError(f"{type(error).__name__}: {error}")))


def _end_with_caller() -> None:
    """Nobody else ends this process where the caller dies: it is a child of the server's."""
    caller = multiprocessing.parent_process()
    assert caller is not None, "it is run in a process that was started"
    caller.join()
    os._exit(1)
