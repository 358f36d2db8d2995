"""A Python that finds few packages, as on a machine where the others are not installed."""

from __future__ import annotations


def hiding(*packages: str) -> str:
    """A program's first lines, after which none of the packages is found."""
    return f"""
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find(name, *more):
    return None if name.partition(".")[0] in {packages!r} else found(name, *more)
PathFinder.find_spec = find
"""
