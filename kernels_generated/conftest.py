"""Gives the record's folder to the tests that ask for one."""

from pathlib import Path

import pytest

from kernels_generated.drawn import drawn
from search.record.record import record_folders

HERE = Path(__file__).parent
EVALUATED = "outcome"  # what a test asks for that needs the kernel built, checked and timed


def pytest_generate_tests(metafunc) -> None:
    """`folder` is that of each `--record=PATH`, else each record's under this folder in turn."""
    if "folder" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("--record")
    folders = [Path(path).parent for path in given] if given else record_folders(HERE)
    slow = set(folders) - drawn(folders) if EVALUATED in metafunc.fixturenames else ()
    parameters = [
        pytest.param(
            folder,
            id=f"{folder.parent.name}-{folder.name}",
            marks=[pytest.mark.slow] if folder in slow else [],
        )
        for folder in folders
    ]
    metafunc.parametrize("folder", parameters, scope="module")
