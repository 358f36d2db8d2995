"""The budget of a prompt: how many tokens a text has at most, and what fits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ir.errors import KernelError

CHARACTERS = 3.5  # of a token, at least, in code and English: an estimate on the safe side
LEAST = 40  # tokens below which a section is dropped rather than cut
QUOTED = 6_000  # characters of a reason, or of an answer that is shown again
_GAP = "\n\n"
Name = TypeVar("Name", bound=Hashable)


def prompt_tokens(window: int) -> int:
    """Of a prompt at most: the other half of a context window is for the answer, and for what follows
    where that is refused."""
    return window // 2


def knowledge_tokens(window: int) -> int:
    """Of a prompt's documents at most."""
    return window // 8


def tokens(text: str) -> int:
    """An estimate of a text's tokens from its characters, rather too many than too few.

    No tokenizer is asked: models differ, and most take about four characters for a token.
    """
    return math.ceil(len(text) / CHARACTERS)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a prompt."""

    name: str
    text: str
    priority: float = 0.0  # what is higher is kept first
    required: bool = False  # never cut and never dropped
    # May lose lines from its end; else it is there whole or not at all.
    cuttable: bool = False


@dataclass(frozen=True, slots=True)
class Fitted:
    """Sections that fit a budget, in the order they were given."""

    sections: tuple[Section, ...]
    # Names.
    dropped: tuple[str, ...]
    cut: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sections below one another."""
        return _GAP.join(s.text for s in self.sections)

    @property
    def tokens(self) -> int:
        """Of the whole text."""
        return tokens(self.text)


def fit(sections: Sequence[Section], budget: int) -> Fitted:
    """The sections that fit into a number of tokens, those of higher priority first.

    Of equal priority, the earlier comes first. KernelError where the required ones alone are too
    many.
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
    """A text, its middle left out where it has more than so many characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out]\n{text[-half:]}"


def shortened(texts: Mapping[Name, str], room: int) -> dict[Name, str]:
    """Texts by name, the longest cut at a line until all of them fit into a number of tokens."""
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
    """As many first lines as fit, and a line that says how many were left out; empty where that
    is not worth it."""
    lines = text.splitlines()
    for count in range(len(lines) - 1, 0, -1):
        short = "\n".join((*lines[:count], f"[... {len(lines) - count} lines left out]"))
        if _cost(short) <= most:
            return short if tokens(short) >= LEAST else ""
    return ""
