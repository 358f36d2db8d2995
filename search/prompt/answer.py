"""A model's answer: edits of files as SEARCH/REPLACE blocks or whole files, parsed strictly.

An answer has any number of blocks of two kinds. Each marker has its own line:

    <<<<<<< SEARCH schedule.sched          >>>>>>> FILE schedule.sched
    lines of the file, unchanged           the whole new text
    =======                                <<<<<<< END
    lines that replace them
    >>>>>>> REPLACE

A SEARCH block without a name refers to the file that the line before it names, or to the only file
that has its lines. Its lines may have another indentation if all are shifted equally. A line
outside of blocks that begins with PARAMETER declares a parameter (`parameters.py`); other such lines
are the model's reasoning. A misplaced line that looks like a marker makes the whole answer invalid,
because nothing is guessed. Code fences around the text of a block do not belong to it. A whole file
may have lines of `=======`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from search.prompt.fences import is_fence, opens, unfenced, unfenced_halves
from search.prompt.parameters import declares, misused, parameters

_SEARCH = re.compile(r"<<<<<<< SEARCH(?: (\S+))?")
_FILE = re.compile(r">>>>>>> FILE (\S+)")
_MIDDLE, _REPLACE, _END = "=======", ">>>>>>> REPLACE", "<<<<<<< END"
_LOOKS_LIKE = re.compile(r"(<{7}|={7}|>{7})( |$)")
_AROUND_NAMES = "`*#:\"' "  # characters that models put around a file name
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")  # not allowed in files or stores
MOST = 400_000  # characters of an answer; a kernel has a few thousand
MARKDOWN = ".md"  # suffix of files in which a fence may be part of the text
WHY = 200  # characters of a reason
FORMAT = (
    "one `<<<<<<< SEARCH NAME ... ======= ... >>>>>>> REPLACE` block for each change, or a whole "
    "file as `>>>>>>> FILE NAME ... <<<<<<< END`"
)


_Line = tuple[int, str]  # a line outside of blocks, with its number


class Refused(Exception):
    """A rejected answer. The message is sent back to the model."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The edits of an answer."""

    files: Mapping[str, str]  # new texts of the changed files
    why: str  # first line outside of all blocks, shortened
    # The possible values of `$NAME` in the new texts, by name; empty: there are no parameters.
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Block:
    """One replacement in a file."""

    file: str  # empty if the block names no file
    old: str | None  # None if `new` is the whole file
    new: str
    line: int


def edited(answer: str, files: Mapping[str, str]) -> Edited:
    """The files after an answer's edits. Raises Refused if the answer is malformed or changes
    nothing.

    files: the editable files by name. Blocks are applied in order, each to the result of the
    previous ones.
    """
    if len(answer) > MOST:
        raise Refused(f"the answer has {len(answer)} characters; {MOST} are read at most")
    if found := _NO_TEXT.search(answer):
        raise Refused(f"character {found.start() + 1} of the answer is none that a text may have")
    said: list[_Line] = []
    now = dict(files)
    blocks = 0
    faults: list[str] = []
    for block in _blocks(_lines(answer), said):
        blocks += 1
        try:
            _apply(block, now, said)
        except Refused as fault:  # other blocks may have faults too
            faults.append(str(fault))
    changed = {name: text for name, text in now.items() if text != files[name]}
    named = parameters(said, faults)
    if not faults:
        faults = misused(named, changed, files)
    if faults:
        raise Refused("\n".join(faults))
    if not blocks:
        raise Refused(f"the answer has no edit; needed: {FORMAT}")
    if not changed:
        raise Refused("the edits change nothing")
    lines = (line.strip() for _, line in said if not is_fence(line) and not declares(line))
    why = next((line for line in lines if line), "")
    return Edited(changed, why if len(why) <= WHY else f"{why[:WHY]}...", named)


def _apply(block: _Block, now: dict[str, str], said: list[_Line]) -> None:
    """Applies a block. Raises Refused if it does not match."""
    if not block.file:
        block = replace(block, file=_file_of(block, now, said))
    if block.file not in now:
        raise Refused(
            f"line {block.line}: there is no file `{block.file}`; it may be: {', '.join(now)}"
        )
    before = now[block.file]
    now[block.file] = _whole(before, block) if block.old is None else _replaced(before, block)


def _blocks(lines: list[str], said: list[_Line]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        if found := _SEARCH.fullmatch(line):
            old, middle = _until(lines, at + 1, _MIDDLE)
            new, end = _until(lines, middle + 1, _REPLACE)
            if not old.strip():
                raise Refused(f"line {at + 1}: a SEARCH block needs lines to look for")
            yield _Block(found[1] or "", old, new, at + 1)
            at = end + 1
        elif found := _FILE.fullmatch(line):
            new, end = _until(lines, at + 1, _END)
            yield _Block(found[1], None, new, at + 1)
            at = end + 1
        elif _LOOKS_LIKE.match(line):
            raise Refused(f"line {at + 1}: `{line}` is no marker here; needed: {FORMAT}")
        else:
            said.append((at + 1, line))
            at += 1


def _file_of(block: _Block, files: Mapping[str, str], said: list[_Line]) -> str:
    """The file of a block without a name.

    said: the lines before the block; a line that names a file is removed.
    """
    for number in reversed(range(len(said))):
        line = said[number][1]
        if not line.strip() or is_fence(line):
            continue
        if (name := line.strip(_AROUND_NAMES)) in files:
            del said[number]
            return name
        break
    wanted = _wanted(block)
    having = [name for name, text in files.items() if _places(_stripped(text), wanted)]
    if len(having) == 1:
        return having[0]
    stand = f"its lines stand in {', '.join(having)}" if having else "its lines stand nowhere"
    raise Refused(
        f"line {block.line}: the block has no name of a file, and {stand}; needed: {FORMAT}"
    )


def _until(lines: list[str], start: int, marker: str) -> tuple[str, int]:
    """The text up to a marker, and the marker's position."""
    for at in range(start, len(lines)):
        line = lines[at].rstrip()
        if line == marker:
            return _text(lines[start:at]), at
        if _LOOKS_LIKE.match(line) and (marker, line) != (_END, _MIDDLE):
            raise Refused(f"line {at + 1}: `{line}` where `{marker}` was expected")
    raise Refused(f"the block of line {start} has no `{marker}`: the answer was cut off")


def _whole(before: str, block: _Block) -> str:
    """The text of a whole file, without fences around it."""
    lines, markdown = _lines(block.new), block.file.endswith(MARKDOWN)
    if not opens(lines) or (markdown and opens(_lines(before))):
        return block.new
    bare = unfenced(lines, markdown)
    if opens(bare) and not markdown:
        raise Refused(
            f"line {block.line}: `{block.file}` begins with a code fence and does not end with it; "
            "needed: the text of the file alone"
        )
    return _text(bare)


def _replaced(text: str, block: _Block) -> str:
    bare = _bare(block)
    lines, wanted = _lines(text), _wanted(block)
    stripped = _stripped(text)
    found = _places(stripped, wanted)
    if not found and bare is not None:
        block, wanted = bare, _wanted(bare)
        found = _places(stripped, wanted)
    if not found and (moved := _indented(block, stripped)) is not None:
        block, wanted = moved, _wanted(moved)
        found = _places(stripped, wanted)
    if len(found) != 1:
        where = f"line {block.line}: the lines to look for stand {len(found)} times"
        raise Refused(f"{where} in `{block.file}`, not once{_nearest(wanted[0], stripped)}")
    at = found[0]
    return _text([*lines[:at], *_lines(block.new), *lines[at + len(wanted) :]])


def _bare(block: _Block) -> _Block | None:
    """The block without fences around each of its texts, or around both; None if it has none."""
    assert block.old is not None, "a whole file replaces nothing"
    old, new = _lines(block.old), _lines(block.new)
    bare_old, bare_new = unfenced(old), unfenced(new)
    if bare_old == old:
        bare_old, bare_new = unfenced_halves(old, new)
    if bare_old == old or not "".join(bare_old).strip():
        return None
    return replace(block, old=_text(bare_old), new=_text(bare_new))


def _indented(block: _Block, lines: list[str]) -> _Block | None:
    """The block moved to the indentation of the lines that it matches. None if they match nowhere
    or in several places, or if the shifts differ."""
    wanted = _wanted(block)
    found = _places([line.lstrip() for line in lines], [line.lstrip() for line in wanted])
    if len(found) != 1:
        return None
    there = lines[found[0] : found[0] + len(wanted)]
    shifts = {_indent(a) - _indent(b) for a, b in zip(there, wanted, strict=True) if b}
    new = _lines(block.new)
    if len(shifts) != 1 or min(map(_indent, filter(str.strip, new)), default=0) + min(shifts) < 0:
        return None
    (shift,) = shifts
    moved = [line if not line.strip() else " " * shift + line[max(0, -shift) :] for line in new]
    return replace(block, old=_text(there), new=_text(moved))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _stripped(text: str) -> list[str]:
    return [line.rstrip() for line in _lines(text)]


def _wanted(block: _Block) -> list[str]:
    return [line.rstrip() for line in _lines(block.old or "")]


def _places(lines: list[str], wanted: list[str]) -> list[int]:
    """The positions of a sequence of lines in others."""
    last = len(lines) - len(wanted)
    return [n for n in range(last + 1) if lines[n : n + len(wanted)] == wanted]


def _lines(text: str) -> list[str]:
    """The lines of a text. Unlike `splitlines`, it keeps form feeds and similar characters within a
    line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _text(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _nearest(wanted: str, lines: list[str]) -> str:
    near = difflib.get_close_matches(wanted, lines, 1)
    return f"; the nearest line is `{near[0]}`" if near and near[0] != wanted else ""
