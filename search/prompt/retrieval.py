"""Retrieval in two stages: ranks the index, then takes whole documents within a budget.

The words of a query are: kinds of operations and functions of the spec, dtypes, verbs of the
schedule, words of a diagnosis, and words of the machine. Documents about operations of the kernel
come first. Documents about other operations or for another surface are left out. Some documents
lead: every edit of a surface needs them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from ir.functions import POINTWISE
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Apply, Spec
from search.prompt.budget import tokens
from search.prompt.document import Document
from search.prompt.knowledge import Library
from search.prompt.operations import operations
from search.prompt.ranking import Ranking, words

# The weight of a query word by its origin. The diagnosis says what is slow, and the operations what
# is computed. The others only distinguish documents that are equal in these.
WEIGHTS = {
    "diagnosis": 3.0,
    "operations": 2.0,
    "functions": 1.0,
    "dtypes": 1.0,
    "verbs": 0.25,
    "machine": 0.25,
}
TITLE = 2  # weight of a title's words in the index, relative to the first sentence
WORDS = 6  # words of one origin with full weight; each of more words has less
ABOUT = 4.0  # weight of an operation that a document is about, before its rarity
OWN = 7  # largest number of documents about the kernel's operations
OTHERS = 2  # largest number of further documents, besides leading ones
RELEVANT = 0.25  # least share of the best score of the further documents
MOST_WORDS = 4  # words of a reason


@dataclass(frozen=True, slots=True)
class Query:
    """A query: words by origin, and the machine's words. A document with `machines` must name one
    of these."""

    words: Mapping[str, tuple[str, ...]]
    machine: frozenset[str] = frozenset()
    surface: str = ""  # the edited surface; empty: any

    def admits(self, d: Document) -> bool:
        """Whether a document is valid for the machine, helps with the surface, and is about an
        operation of the kernel if it names any."""
        asked = self.words.get("operations")
        return (
            (not d.machines or bool(set(d.machines) & self.machine))
            and (not self.surface or self.surface in d.surfaces)
            and (
                asked is None
                or not d.operations
                or self.surface in d.leads
                or bool(set(d.about or d.operations) & set(asked))
            )
        )

    def weights(self, labels: Container[str]) -> dict[str, float]:
        """The weight of each word: the maximum over its origins.

        labels: words of all documents' titles and tags. A diagnosis consists of sentences, so only
        its words among these count.
        """
        found: dict[str, float] = {}
        for place, some in self.words.items():
            told = dict.fromkeys(stem for text in some for stem in words(text))
            if place == "diagnosis":
                told = {word: None for word in told if word in labels}
            for word in told:
                weight = WEIGHTS[place] * min(1.0, WORDS / len(told))
                found[word] = max(found.get(word, 0.0), weight)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Taken:
    """A selected document with its score and the reason in words."""

    document: Document
    score: float
    why: str
    own: bool = False  # whether it is about an operation of the kernel
    leads: bool = False  # whether every edit of the surface needs it

    @property
    def tokens(self) -> int:
        """The tokens of its text."""
        return tokens(self.document.text)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The documents for one prompt."""

    taken: tuple[Taken, ...]  # in the order of selection
    left: tuple[str, ...]  # names of relevant documents that did not fit

    @property
    def text(self) -> str:
        """The text of all documents for a prompt."""
        return "\n".join(t.document.text for t in self.taken)

    @property
    def tokens(self) -> int:
        """The tokens of all documents."""
        return sum(t.tokens for t in self.taken)


def query(
    spec: Spec,
    machine: Machine,
    schedule: Schedule | None = None,
    diagnosis: str = "",
    surface: str = "",
) -> Query:
    """The query for an edit of a candidate's surface, from its spec, schedule and diagnosis."""
    nodes = [n for e in spec.equations for n in e.value.walk()]
    functions = {n.function for n in nodes if isinstance(n, Apply)}
    special = sorted(f for f in functions if POINTWISE[f].unit == "special")
    found = {
        "operations": operations(spec),
        "functions": tuple(special),
        "dtypes": tuple(dict.fromkeys(t.dtype for t in (*spec.inputs, *spec.outputs))),
        "verbs": tuple(dict.fromkeys(d.verb for d in schedule.decisions)) if schedule else (),
        "diagnosis": (diagnosis,),
        "machine": tuple(w for w in sorted(machine_words(machine)) if _telling(w)),
    }
    return Query(found, machine_words(machine), surface)


def machine_words(machine: Machine) -> frozenset[str]:
    """The words for a machine in documents: its name, its backends, words of its title (for example
    the architecture), and the word of its class."""
    title = (w.strip(",.").lower() for w in machine.title.split())
    serving = (machine.rendering.backend,) if machine.rendering.backend else machine.backends
    return frozenset({machine.name, *serving, *title, machine.model.word})


def _telling(word: str) -> bool:
    """Whether a machine's word is a name with letters and digits, such as an architecture."""
    return any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def retrieve(library: Library, asked: Query, budget: int) -> Retrieved:
    """The whole documents for a query, in at most `budget` tokens.

    First those that every edit of the surface needs, then those about the kernel's operations, then
    a few others with common words. The result depends only on the arguments.
    """
    ranked = rank(library, asked)
    leading = [t for t in ranked if t.leads]
    own = [t for t in ranked if t.own and not t.leads]
    rest = [t for t in ranked if not (t.own or t.leads)]
    enough = RELEVANT * max((t.score for t in rest), default=0.0)
    others = [t for t in rest if t.score >= enough and t.score > 0]
    found = _Taking(budget)
    for some, most in ((leading, len(leading)), (own, OWN), (others, OTHERS)):
        found.take(some, most)
    names = {t.document.name for t in found.taken}
    left = (t.document.name for t in (*leading, *own, *others) if t.document.name not in names)
    return Retrieved(tuple(found.taken), tuple(left))


class _Taking:
    """Takes documents within a number of tokens."""

    def __init__(self, budget: int):
        self.left = budget
        self.taken: list[Taken] = []

    def take(self, some: Sequence[Taken], most: int) -> None:
        """Takes at most `most` of some documents that fit, in their order."""
        for t in some:
            if most and _cost(t) <= self.left:
                self.taken.append(t)
                self.left -= _cost(t)
                most -= 1


def rank(library: Library, asked: Query) -> tuple[Taken, ...]:
    """The documents that a query admits, best first. An operation that few documents are about
    counts more."""
    held = [d for d in library if asked.admits(d)]
    ranking = Ranking(_index_words(d) for d in held)
    abouts = Ranking(d.about for d in held)
    labels = {word for d in held for word in words(f"{d.title} {_labels(d)}")}
    found = []
    for d, parts in zip(held, ranking.parts(asked.weights(labels)), strict=True):
        own = [word for word in d.about if word in asked.words.get("operations", ())]
        score = sum(parts.values()) + ABOUT * sum(abouts.idf(word) for word in own)
        leads = bool(asked.surface) and asked.surface in d.leads
        found.append(Taken(d, score, _why(d, parts, own, leads), bool(own), leads))
    return tuple(sorted(found, key=lambda t: (-t.score, t.document.name)))


def _index_words(d: Document) -> tuple[str, ...]:
    return (
        *words(d.title) * TITLE,
        *words(_labels(d)) * TITLE,
        *words(d.kind),
        *words(d.summary),
    )


def _labels(d: Document) -> str:
    return " ".join((*d.operations, *d.tags, *d.machines))


def _why(d: Document, parts: Mapping[str, float], own: Sequence[str], leads: bool) -> str:
    if leads:
        return f"{d.kind}, for every edit"
    if own:
        return f"{d.kind} about {', '.join(own)}"
    best = sorted(parts, key=lambda w: (-parts[w], w))[:MOST_WORDS]
    return f"{d.kind} on {', '.join(best)}" if best else f"{d.kind}, for every kernel"


def _cost(taken: Taken) -> int:
    return tokens(taken.document.text + "\n")
