"""Retrieval in two stages: the index is ranked, then documents are taken whole within a budget.

The ranking is by the words of a query: kinds of operations and functions of the spec, dtypes,
verbs of the schedule, words of a diagnosis, the machine's. What is taken is balanced over the kinds
of documents, so that ten good idioms do not keep out the one constraint.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from ir.functions import POINTWISE
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Apply, Spec
from search.prompt.budget import tokens
from search.prompt.document import KINDS, Document
from search.prompt.knowledge import Library
from search.prompt.operations import operations
from search.prompt.ranking import Ranking, words

# What a word of the query counts, by where it is from. A diagnosis says what is slow, operations
# what there is to do; all else only tells documents apart that these leave equal.
WEIGHTS = {
    "diagnosis": 3.0,
    "operations": 2.0,
    "functions": 1.0,
    "dtypes": 1.0,
    "verbs": 0.25,
    "machine": 0.25,
}
TITLE = 2  # how often a title's words count in the index, beside the first sentence's
WORDS = 6  # of one place that count in full; of more, each counts less
RELEVANT = 0.25  # of the best score: what has less is taken only as the best of its kind
MOST_WORDS = 4  # of a reason


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: words by where they are from, and the words of the machine, one of
    which a document's `machines` must have where it names any."""

    words: Mapping[str, tuple[str, ...]]
    machine: frozenset[str] = frozenset()

    def weights(self, labels: Container[str]) -> dict[str, float]:
        """Each word with what it counts: the most of the places that it is from.

        labels: of the documents, titles included. A diagnosis is written in sentences, of which
        only words that label some document are looked for.
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
    """A document that was chosen, its score, and why in words."""

    document: Document
    score: float
    why: str

    @property
    def tokens(self) -> int:
        """Of its text."""
        return tokens(self.document.text)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The documents for one prompt."""

    taken: tuple[Taken, ...]  # in the order in which they were chosen
    left: tuple[str, ...]  # names of relevant documents that did not fit

    @property
    def text(self) -> str:
        """The documents below one another, as a prompt shows them."""
        return "\n".join(t.document.text for t in self.taken)

    @property
    def tokens(self) -> int:
        """Of all of them."""
        return sum(t.tokens for t in self.taken)


def query(
    spec: Spec, machine: Machine, schedule: Schedule | None = None, diagnosis: str = ""
) -> Query:
    """What a candidate's spec, schedule and diagnosis ask of the knowledge base."""
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
    return Query(found, machine_words(machine))


def machine_words(machine: Machine) -> frozenset[str]:
    """What a document may call a machine: its name, the backend that serves it, words of its title
    (where an architecture stands), and whether programs have threads."""
    title = (w.strip(",.").lower() for w in machine.title.split())
    serving = (machine.rendering.backend,) if machine.rendering.backend else machine.backends
    return frozenset({machine.name, *serving, *title, machine.model.word})


def _telling(word: str) -> bool:
    """Whether a machine's word is a name: of letters and digits, as architectures are."""
    return any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def retrieve(library: Library, asked: Query, budget: int) -> Retrieved:
    """The documents that a query finds, whole, in at most `budget` tokens.

    Kinds take turns, in the order of their best document; each gives its best that fits. The same
    library, query and budget give the same documents.
    """
    ranked = rank(library, asked)
    enough = RELEVANT * max((t.score for t in ranked), default=0.0)
    waiting: dict[str, list[Taken]] = {kind: [] for kind in KINDS}
    for t in ranked:
        alike = waiting[t.document.kind]
        if t.score >= enough or not alike:
            alike.append(t)
    turns = sorted((k for k in KINDS if waiting[k]), key=lambda k: -waiting[k][0].score)
    taken: list[Taken] = []
    left = budget
    while any(waiting.values()):
        for kind in turns:
            chosen = next((t for t in waiting[kind] if _cost(t) <= left), None)
            if chosen is None:
                waiting[kind] = []
                continue
            waiting[kind].remove(chosen)
            taken.append(chosen)
            left -= _cost(chosen)
    names = {t.document.name for t in taken}
    more = (t for t in ranked if t.score >= enough and t.document.name not in names)
    return Retrieved(tuple(taken), tuple(t.document.name for t in more))


def rank(library: Library, asked: Query) -> tuple[Taken, ...]:
    """The documents that hold for the machine and share a word with the query, best first;
    constraints share all queries."""
    held = [d for d in library if not d.machines or set(d.machines) & asked.machine]
    ranking = Ranking(_index_words(d) for d in held)
    labels = {word for d in held for word in words(f"{d.title} {_labels(d)}")}
    found = [
        Taken(d, sum(parts.values()), _why(d, parts))
        for d, parts in zip(held, ranking.parts(asked.weights(labels)), strict=True)
        if parts or d.kind == "constraints"
    ]
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


def _why(d: Document, parts: Mapping[str, float]) -> str:
    best = sorted(parts, key=lambda w: (-parts[w], w))[:MOST_WORDS]
    return f"{d.kind} on {', '.join(best)}" if best else f"{d.kind}, for every kernel"


def _cost(taken: Taken) -> int:
    return tokens(taken.document.text + "\n")
