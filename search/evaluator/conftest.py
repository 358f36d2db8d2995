"""Fixtures of the tests of the sandbox."""

import pytest

from search.evaluator import sandbox
from search.evaluator.sandbox import Limits


@pytest.fixture
def folder(tmp_path):
    """A folder for a sandboxed process, beside a file that is not its own."""
    (tmp_path / "own").mkdir()
    (tmp_path / "theirs.txt").write_text("untouched")
    return tmp_path / "own"


@pytest.fixture
def layers(folder):
    """Which layers there are on this machine."""
    return sandbox.applied(folder, Limits())
