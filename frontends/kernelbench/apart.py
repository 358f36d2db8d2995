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
_PRELOADED = f"{__package__}.ready"
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def apart(
    work: Callable[..., Any],
    *args: Any,
    seconds: float = 300.0,
    gigabytes: float | None = 16.0,
    devices: bool = True,
) -> Any:
    """What `work(*args)` returns; function, arguments and result can be pickled.

    gigabytes: of data that the process may hold; None: no limit, for work that opens a device, whose
    driver reserves more addresses than there is memory.  devices: whether the work sees accelerators.
    Raises the work's KernelError; a process that dies or takes too long is one too.
    """
    _shorten()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_PRELOADED, work.__module__])  # read when the server starts
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(
        target=_child, args=(theirs, work, args, gigabytes, devices), daemon=True
    )
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
    out: Connection,
    work: Callable[..., Any],
    args: tuple[Any, ...],
    gigabytes: float | None,
    devices: bool,
) -> None:
    threading.Thread(target=_end_with_caller, daemon=True).start()
    if not devices:
        os.environ.update(dict.fromkeys(_VISIBLE, "-1"))
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
