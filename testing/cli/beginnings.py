"""First lines for a Python process, run before the program is loaded."""

from __future__ import annotations


def hiding(*packages: str) -> str:
    """After these none of the packages is found, as on a machine where they are not installed."""
    return f"""
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find(name, *more):
    return None if name.partition(".")[0] in {packages!r} else found(name, *more)
PathFinder.find_spec = find
"""


def signalled(number: int, count: int) -> str:
    """After these the process sends itself a signal when it has stored so many evaluations."""
    return f"""
import os
from search.store.store import Store
stored, left = Store.evaluated, {count}
def evaluated(*given):
    global left
    stored(*given)
    left -= 1
    if not left:
        os.kill(os.getpid(), {int(number)})
Store.evaluated = evaluated
"""
