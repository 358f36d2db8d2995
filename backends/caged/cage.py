"""The restrictions of a process before it loads an untrusted library."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

from backends.caged.landlock import READ_FILE, READS, network, restrict, scopes, version, writes
from backends.caged.linux import keep_files, no_new_privileges
from backends.caged.seccomp import computing, here, install


def prepare(threads: bool) -> None:
    """Prepares, before forks, what is the same for all restricted processes."""
    with suppress(OSError):
        computing(here(), 0, threads)
    gc.freeze()  # otherwise a collection would copy the parent's pages


def shut_in(library: Path, *kept: int, threads: bool = False) -> None:
    """Closes all files, blocks signals to other processes, and blocks all system calls that
    computing does not need, each as far as the kernel supports it.

    library: a file that stays readable. kept: open files that stay, besides the streams. threads:
    whether it may start threads and read the clock.
    """
    keep_files(*kept)
    with suppress(OSError):
        no_new_privileges()
        with suppress(OSError):
            abi = version()
            restrict(READS | writes(abi), network(abi), scopes(abi), [(library, READ_FILE)])
        install(computing(here(), os.getpid(), threads))
