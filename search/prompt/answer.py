"""A model's answer: edits of files as SEARCH/REPLACE blocks or whole files, parsed strictly.

An answer holds any number of blocks of two kinds, each between lines of their own:

    <<<<<<< SEARCH schedule.sched          >>>>>>> FILE schedule.sched
    lines as they stand                    the whole new text
    =======                                <<<<<<< END
    lines to take their place
    >>>>>>> REPLACE

What stands outside blocks is the model's reasoning. A line that looks like a marker but is not
where one belongs refuses the whole answer: nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SEARCH = re.compile(r"<<<<<<< SEARCH (\S+)")
_FILE = re.compile(r">>>>>>> FILE (\S+)")
_MIDDLE, _REPLACE, _END = "=======", ">>>>>>> REPLACE", "<<<<<<< END"
_LOOKS_LIKE = re.compile(r"(<{7}|={7}|>{7})( |$)")
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")  # what neither a file nor a store can hold
MOST = 400_000  # characters of an answer; a kernel has some thousands
WHY = 200  # characters of a reason that are kept
FORMAT = (
    "one `<<<<<<< SEARCH NAME ... ======= ... >>>>>>> REPLACE` block for each change, or a whole "
    "file as `>>>>>>> FILE NAME ... <<<<<<< END`"
)


class Refused(Exception):
    """An answer that cannot be taken; the message goes back to the model."""


@dataclass(frozen=True, slots=True)
class Edited:
    """files: the new texts of those that changed.  why: the first line outside all blocks, cut
    where it is long."""

    files: Mapping[str, str]
    why: str


@dataclass(frozen=True, slots=True)
class _Block:
    """new takes the place of old in a file; old is None where it is the whole file."""

    file: str
    old: str | None
    new: str
    line: int


def edited(answer: str, files: Mapping[str, str]) -> Edited:
    """What an answer makes of the files; Refused where it is not well-formed or changes nothing.

    files: by name, those that may be edited. Blocks are applied in order, each to what those
    before it left.
    """
    if len(answer) > MOST:
        raise Refused(f"the answer has {len(answer)} characters; {MOST} are read at most")
    if found := _NO_TEXT.search(answer):
        raise Refused(f"character {found.start() + 1} of the answer is none that a text may have")
    reasons: list[str] = []
    now = dict(files)
    blocks = 0
    for block in _blocks(answer.splitlines(), reasons):
        blocks += 1
        if block.file not in files:
            raise Refused(
                f"line {block.line}: there is no file `{block.file}`; it may be: {', '.join(files)}"
            )
        now[block.file] = block.new if block.old is None else _replaced(now[block.file], block)
    if not blocks:
        raise Refused(f"the answer has no edit; needed: {FORMAT}")
    changed = {name: text for name, text in now.items() if text != files[name]}
    if not changed:
        raise Refused("the edits change nothing")
    why = next((line.strip() for line in reasons if line.strip()), "")
    return Edited(changed, why if len(why) <= WHY else f"{why[:WHY]}...")


def _blocks(lines: list[str], reasons: list[str]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        if found := _SEARCH.fullmatch(line):
            old, middle = _until(lines, at + 1, _MIDDLE)
            new, end = _until(lines, middle + 1, _REPLACE)
            if not old.strip():
                raise Refused(f"line {at + 1}: a SEARCH block needs lines to look for")
            yield _Block(found[1], old, new, at + 1)
            at = end + 1
        elif found := _FILE.fullmatch(line):
            new, end = _until(lines, at + 1, _END)
            yield _Block(found[1], None, new, at + 1)
            at = end + 1
        elif _LOOKS_LIKE.match(line):
            raise Refused(f"line {at + 1}: `{line}` is no marker here; needed: {FORMAT}")
        else:
            reasons.append(line)
            at += 1


def _until(lines: list[str], start: int, marker: str) -> tuple[str, int]:
    """The text up to a marker, and the marker's place."""
    for at in range(start, len(lines)):
        line = lines[at].rstrip()
        if line == marker:
            return "".join(text + "\n" for text in lines[start:at]), at
        if _LOOKS_LIKE.match(line):
            raise Refused(f"line {at + 1}: `{line}` where `{marker}` was expected")
    raise Refused(f"the block of line {start} has no `{marker}`: the answer was cut off")


def _replaced(text: str, block: _Block) -> str:
    assert block.old is not None, "a whole file replaces nothing"
    lines, wanted = text.splitlines(), [line.rstrip() for line in block.old.splitlines()]
    stripped = [line.rstrip() for line in lines]
    found = [
        n for n in range(len(lines) - len(wanted) + 1) if stripped[n : n + len(wanted)] == wanted
    ]
    if len(found) != 1:
        where = f"line {block.line}: the lines to look for stand {len(found)} times"
        raise Refused(f"{where} in `{block.file}`, not once{_nearest(wanted[0], stripped)}")
    at = found[0]
    after = [*lines[:at], *block.new.splitlines(), *lines[at + len(wanted) :]]
    return "".join(line + "\n" for line in after)


def _nearest(wanted: str, lines: list[str]) -> str:
    near = difflib.get_close_matches(wanted, lines, 1)
    return f"; the nearest line is `{near[0]}`" if near and near[0] != wanted else ""
