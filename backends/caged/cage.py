"""What a process gives up before it loads a library of somebody's."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

from backends.caged.landlock import READ_FILE, READS, network, restrict, scopes, version, writes
from backends.caged.linux import keep_files, no_new_privileges
from backends.caged.seccomp import computing, here, install


def prepare(threads: bool) -> None:
    """Does before a fork what is the same for all that shut themselves in."""
    with suppress(OSError):
        computing(here(), 0, threads)
    gc.freeze()  # else a collection copies pages of the parent


def shut_in(library: Path, *kept: int, threads: bool = False) -> None:
    """Gives up all files but a library, signals to others, and all system calls but those that computing
    needs, each as far as the kernel lets it. kept: open files that stay, beside the streams. threads:
    whether it may start threads and read the clock."""
    keep_files(*kept)
    with suppress(OSError):
        no_new_privileges()
        with suppress(OSError):
            abi = version()
            restrict(READS | writes(abi), network(abi), scopes(abi), [(library, READ_FILE)])
        install(computing(here(), os.getpid(), threads))
