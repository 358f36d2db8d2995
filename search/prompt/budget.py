"""The token budget of a prompt: estimates of tokens, and the selection of sections."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ir.errors import KernelError

CHARACTERS = 3.5  # least characters of a token in code and English: a conservative estimate
LEAST = 40  # a section with fewer tokens is dropped and not cut
QUOTED = 6_000  # characters of a quoted reason or answer
_GAP = "\n\n"
Name = TypeVar("Name", bound=Hashable)


def prompt_tokens(window: int) -> int:
    """The largest number of tokens of a prompt. The other half of the context window is for the
    answer and for further rounds."""
    return window // 2


def knowledge_tokens(window: int) -> int:
    """The largest number of tokens of a prompt's documents."""
    return window // 8


def tokens(text: str) -> int:
    """A conservative estimate of a text's tokens from its characters.

    It uses no tokenizer: models differ, and most take about four characters for a token.
    """
    return math.ceil(len(text) / CHARACTERS)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a prompt."""

    name: str
    text: str
    priority: float = 0.0  # higher values are kept first
    required: bool = False  # never cut and never dropped
    # Whether lines at its end may be cut; otherwise it is kept whole or dropped.
    cuttable: bool = False


@dataclass(frozen=True, slots=True)
class Fitted:
    """Sections that fit a budget, in their given order."""

    sections: tuple[Section, ...]
    # Names of sections.
    dropped: tuple[str, ...]
    cut: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of all sections."""
        return _GAP.join(s.text for s in self.sections)

    @property
    def tokens(self) -> int:
        """The tokens of the whole text."""
        return tokens(self.text)


def fit(sections: Sequence[Section], budget: int) -> Fitted:
    """The sections that fit a number of tokens; higher priorities come first.

    Of equal priorities the earlier comes first. Raises KernelError if the required sections alone
    exceed the budget.
    """
    required = sum(_cost(s.text) for s in sections if s.required)
    if required > budget:
        names = ", ".join(s.name for s in sections if s.required)
        raise KernelError(
            f"a prompt's required sections take about {required} tokens, the budget is {budget}",
            where=names,
            allowed=f"{required} or more",
            hint="raise the budget, or choose a model with a longer context",
        )
    left = budget - required
    kept = {n: s for n, s in enumerate(sections) if s.required}
    cut: set[int] = set()
    others = [n for n, s in enumerate(sections) if not s.required]
    for n in sorted(others, key=lambda n: (-sections[n].priority, n)):
        section = sections[n]
        if _cost(section.text) > left:
            short = _shortened(section.text, left) if section.cuttable else ""
            if not short:
                continue
            cut.add(n)
            section = Section(section.name, short, section.priority, False, True)
        kept[n] = section
        left -= _cost(section.text)
    return Fitted(
        sections=tuple(kept[n] for n in sorted(kept)),
        dropped=tuple(s.name for n, s in enumerate(sections) if n not in kept),
        cut=tuple(sections[n].name for n in sorted(cut)),
    )


def excerpt(text: str, most: int = QUOTED) -> str:
    """A text of at most `most` characters, without its middle if it is longer."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out]\n{text[-half:]}"


def shortened(texts: Mapping[Name, str], room: int) -> dict[Name, str]:
    """Texts by name; the longest are cut at lines until all fit a number of tokens."""
    found = dict(texts)
    for taken, name in enumerate(sorted(texts, key=lambda n: len(texts[n]))):
        share = max(0, room) // (len(texts) - taken)
        if _cost(texts[name]) > share:
            left_out = f"[... {len(texts[name].splitlines())} lines left out]\n"
            found[name] = _shortened(texts[name], share) or left_out
        room -= _cost(found[name])
    return found


def _cost(text: str) -> int:
    return tokens(text + _GAP)


def _shortened(text: str, most: int) -> str:
    """As many first lines as fit, and a line with the number of omitted lines; empty if that is too
    short to be useful."""
    lines = text.splitlines()
    for count in range(len(lines) - 1, 0, -1):
        short = "\n".join((*lines[:count], f"[... {len(lines) - count} lines left out]"))
        if _cost(short) <= most:
            return short if tokens(short) >= LEAST else ""
    return ""
