"""Fixtures of the tests of the sandbox."""

import pytest

from search.evaluator import sandbox
from search.evaluator.sandbox import Limits


@pytest.fixture
def folder(tmp_path):
    """The folder of a sandboxed process, next to a file outside of it."""
    (tmp_path / "own").mkdir()
    (tmp_path / "theirs.txt").write_text("untouched")
    return tmp_path / "own"


@pytest.fixture
def layers(folder):
    """The sandbox layers that work on this machine."""
    return sandbox.applied(folder, Limits())
