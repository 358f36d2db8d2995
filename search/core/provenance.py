"""Provenance in words: how correctness was checked, and the kind and machine of times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def here(environment: Mapping[str, Any], backend: str) -> Mapping[str, str]:
    """The environment of a backend according to an evaluator; empty if it has none."""
    found = environment.get("backends", {}).get(backend)
    found = found or environment.get("here")  # runs of older versions had one backend
    return found if isinstance(found, Mapping) else {}


def time_words(said: Mapping[str, str], kind: str, target: str) -> str:
    """`measured on DEVICE at CLOCKS`, or for example `modelled for TARGET`.

    said: the backend's description of this machine. It is used for measured times only, because
    other times belong to no device.
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
