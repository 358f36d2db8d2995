"""Compiler failures: caused by the candidate, or by the machine."""

import os

import pytest

from backends.backend import BackendError, MachineFault
from backends.shared import compiler
from backends.shared.compiler import Compiler


def build(folder, script, seconds=1800.0):
    """The result of a shell script in place of a compiler."""
    command = folder / "compiler"
    command.write_text(f"#!/bin/sh\n{script}\n")
    os.chmod(command, 0o755)
    Compiler(str(command), (), seconds).build("text", folder, "kernel.cc", ())


@pytest.mark.parametrize(
    "script",
    [
        "kill -9 $$",
        "kill -15 $$",
        'echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1',
        'echo "collect2: fatal error: ld terminated with signal 9 [Killed]" >&2; exit 1',
    ],
)
def test_a_compiler_that_is_killed_says_nothing_of_the_source(tmp_path, script):
    with pytest.raises(MachineFault) as caught:
        build(tmp_path, script)
    assert (caught.value.stage, caught.value.kind) == ("build", "machine")


def test_so_does_one_that_is_too_slow(tmp_path):
    with pytest.raises(MachineFault, match="took over"):
        build(tmp_path, "exec sleep 1800", seconds=0.2)


def test_what_it_says_of_the_source_is_the_candidates(tmp_path):
    with pytest.raises(BackendError, match="line 1: no") as caught:
        build(tmp_path, 'echo "kernel.cc:1: error: no" >&2; exit 1')
    assert not isinstance(caught.value, MachineFault)


def test_a_compiler_that_is_killed_while_it_says_its_version_is_asked_again(tmp_path):
    """Otherwise the toolchain of a run would have no version."""
    command = tmp_path / "compiler"
    first = tmp_path / "first"
    command.write_text(f"#!/bin/sh\nif mkdir {first} 2>&-; then kill -9 $$; fi\necho 7.1\n")
    command.chmod(0o755)
    assert Compiler(str(command), ()).version() == f"{command} 7.1"
    command.write_text("#!/bin/sh\nkill -9 $$\n")
    compiler._version.cache_clear()
    with pytest.raises(MachineFault, match="does not say its version"):
        Compiler(str(command), ()).version()
