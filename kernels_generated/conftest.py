"""Gives the record's folder to the tests that ask for one."""

from pathlib import Path

from search.record.record import record_folders

HERE = Path(__file__).parent


def pytest_generate_tests(metafunc) -> None:
    """`folder` is that of each `--record=PATH`, else each record's under this folder in turn."""
    if "folder" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("--record")
    folders = [Path(path).parent for path in given] if given else record_folders(HERE)
    names = [f"{f.parent.name}-{f.name}" for f in folders]
    metafunc.parametrize("folder", folders, ids=names, scope="module")
