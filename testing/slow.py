"""Parameters of tests that are left to the slow ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def slow(*values: Any, id: str | None = None) -> ParameterSet:
    """A parameter, or several at once, with which a test is slow."""
    return pytest.param(*values, id=id, marks=pytest.mark.slow)


def slow_but(kept: Callable[[Any], bool], values: Iterable[Any]) -> list[Any]:
    """The values of a parameter; a test runs each time with those that are kept."""
    return [value if kept(value) else slow(value) for value in values]


def in_turn(first: Iterable[Any], second: Collection[Any]) -> list[ParameterSet]:
    """The product of two parameters: each value of the first is tried each time with one of the
    second, which take turns, and with the others in the slow tests."""
    return [
        pytest.param(a, b, marks=[] if number % len(second) == turn else [pytest.mark.slow])
        for number, a in enumerate(first)
        for turn, b in enumerate(second)
    ]
