"""How results were obtained, in words: correct by what, and times of which kind and machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def here(environment: Mapping[str, Any], backend: str) -> Mapping[str, str]:
    """What an evaluator's environment says of a backend; nothing where it says nothing."""
    found = environment.get("backends", {}).get(backend)
    found = found or environment.get("here")  # older runs had one backend
    return found if isinstance(found, Mapping) else {}


def time_words(said: Mapping[str, str], kind: str, target: str) -> str:
    """`measured on DEVICE at CLOCKS`, or `modelled for TARGET`.

    said: what the backend says of this machine.  A time that is not measured is no device's.
    """
    if kind != "measured":
        return f"{kind} for {target}"
    clocks = f" at {said['clocks']}" if said.get("clocks") else ""
    return f"measured on {said.get('device') or 'this machine'}{clocks}"


def sentence(said: Mapping[str, str], correct_by: str, kind: str, target: str) -> str:
    """`correct by interpreter, times modelled for TARGET, with TOOLCHAIN`."""
    words = f"correct by {correct_by}, times {time_words(said, kind, target)}"
    toolchain = said.get("toolchain")
    return f"{words}, with {toolchain}" if toolchain else words
