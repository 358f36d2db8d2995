"""Parameters of an answer: values that a model leaves to be timed.

Outside the blocks of an answer, on a line of its own:

    PARAMETER chunk in (32, 16, 64)

In the new lines of a block, `$chunk` stands where the value goes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from ir.source import near
from search.core.trial import USE

MOST = 256  # combinations of an answer
WORD = "PARAMETER"
FORM = f"`{WORD} NAME in (VALUE, VALUE, ...)`, where a value is a number or a word"
_DECORATION = "`*- \t"  # characters that models put around a line
_DECLARES = re.compile(rf"{WORD}\b")
_DECLARATION = re.compile(rf"{WORD}\s+\$?(\S+)\s+in\s+[(\[](.*)[)\]]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?|[A-Za-z_][\w.]*")


def declares(line: str) -> bool:
    """Whether a line outside of blocks declares a parameter, correctly or not."""
    return _DECLARES.match(line.strip(_DECORATION)) is not None


def parameters(
    lines: Sequence[tuple[int, str]], faults: list[str]
) -> Mapping[str, tuple[str, ...]]:
    """The values of each parameter that is declared outside of blocks.

    lines: with their numbers. All faults are added to `faults`.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, line in lines:
        if not declares(line):
            continue
        bare = line.strip(_DECORATION)
        declaration = _DECLARATION.fullmatch(bare.rstrip(".;"))
        if declaration is None:
            faults.append(f"line {number}: `{bare}` names no parameter; needed: {FORM}")
            continue
        name, values = declaration[1], [v.strip() for v in declaration[2].split(",")]
        # a trailing comma, as in a Python tuple with one element
        if len(values) > 1 and not values[-1]:
            values.pop()
        faults += (f"line {number}: {fault}" for fault in _faults(name, values, found))
        found[name] = tuple(dict.fromkeys(values))
    count = prod(len(values) for values in found.values())
    if count > MOST:
        sizes = " x ".join(str(len(values)) for values in found.values())
        faults.append(
            f"the parameters have {sizes} = {count} combinations; allowed: at most {MOST}; "
            "name fewer values"
        )
    return found


def _faults(name: str, values: Sequence[str], known: Mapping[str, object]) -> list[str]:
    """The faults of one parameter."""
    found = []
    if _NAME.fullmatch(name) is None:
        found.append(f"a parameter cannot be named `{name}`; allowed: letters, digits and `_`")
    if name in known:
        found.append(f"`{name}` is named twice; give all of its values on one line")
    if not any(values):
        return [*found, f"`{name}` has no values; needed: {FORM}"]
    wrong = [value for value in values if _VALUE.fullmatch(value) is None]
    if wrong:
        said = ", ".join(f"`{value}`" for value in wrong)
        found.append(f"`{name}` cannot be {said}; allowed: numbers, as 16, or words, as f32")
    twice = [value for value in dict.fromkeys(values) if values.count(value) > 1]
    if twice and not wrong:
        found.append(f"`{name}` has {', '.join(twice)} twice; name each value once")
    return found


def misused(
    named: Mapping[str, object], changed: Mapping[str, str], before: Mapping[str, str]
) -> list[str]:
    """The parameters that texts use without a declaration, and those that are declared and not
    used.

    changed, before: the new texts of files, and the old texts of all files.
    """
    faults = []
    used: set[str] = set()
    for file, text in changed.items():
        old = set(USE.findall(before[file]))
        for number, line in enumerate(text.split("\n"), 1):
            for name in dict.fromkeys(USE.findall(line)):
                used.add(name)
                if name not in named and name not in old:
                    allowed = ", ".join(f"${each}" for each in named) or "none is named"
                    hint = near(name, named, "") if named else ""
                    faults.append(
                        f"line {number} of the new `{file}`: `${name}` has no values; allowed: "
                        f"{allowed}; {hint or f'name it outside the blocks: {FORM}'}"
                    )
    for name in named:
        if name not in used:
            faults.append(
                f"the parameter `{name}` is used nowhere; write `${name}` in the new lines where "
                "its value goes, or do not name it"
            )
    return faults
