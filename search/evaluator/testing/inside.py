"""Runs functions in a sandboxed process, for tests."""

import faulthandler
import json
import os
from pathlib import Path

import pytest

from search.evaluator import sandbox
from search.evaluator.sandbox import Limits


def inside(folder: Path, act, limits: Limits = Limits()):
    """The result of `act` in a sandboxed child, or the name of its exception, or how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            sandbox.enter(folder, limits)
            said = act()
        except BaseException as error:
            said = type(error).__name__
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else os.waitstatus_to_exitcode(status)


def need(layers, *names):
    """Skips a test if a layer does not work on this machine."""
    for name in names:
        if not layers[name].startswith("yes"):
            pytest.skip(f"{name}: {layers[name]}")
