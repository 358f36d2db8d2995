"""Ranks short texts by the words of a query with Okapi BM25.

score = sum over the query's words of weight * idf * tf * (k1 + 1) / (tf + k1 * norm), where norm =
1 - b + b * length / mean length and idf = ln(1 + (n - df + 0.5) / (df + 0.5)). (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; idf in the form that is
never negative.)
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

K1 = 1.2  # saturation of repeated words
B = 0.75  # influence of a text's length
_WORD = re.compile(r"[a-z0-9]*[a-z][a-z0-9]*")  # a number alone does not identify a subject
_LITTLE = frozenset(
    "a all an and are as at be but by can do does for from has have how if in into is it its more "
    "most no nor not of on one or other so than that the their them then there these they this "
    "to up was what when where which who why with without".split()
)


def words(text: str) -> tuple[str, ...]:
    """The significant words of a text, in lower case and without the `s` of plurals."""
    return tuple(_stem(w) for w in _WORD.findall(text.lower()) if len(w) > 1 and w not in _LITTLE)


def _stem(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


class Ranking:
    """Texts as lists of words, for repeated ranking."""

    def __init__(self, texts: Iterable[Sequence[str]]):
        self._counts = [Counter(text) for text in texts]
        self._lengths = [sum(c.values()) for c in self._counts]
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 0.0
        self._having = Counter(word for counts in self._counts for word in counts)

    def idf(self, word: str) -> float:
        """The weight of a word: positive, and larger for words in fewer texts."""
        having = self._having[word]
        return math.log(1 + (len(self._counts) - having + 0.5) / (having + 0.5))

    def scores(self, query: Mapping[str, float]) -> list[float]:
        """The score of each text for a query (words with weights); 0 without common words."""
        return [sum(parts.values()) for parts in self.parts(query)]

    def parts(self, query: Mapping[str, float]) -> list[dict[str, float]]:
        """The parts of each text's score, by word."""
        return [
            {word: weight * self._part(n, word) for word, weight in query.items() if word in counts}
            for n, counts in enumerate(self._counts)
        ]

    def _part(self, n: int, word: str) -> float:
        often = self._counts[n][word]
        norm = 1 - B + B * self._lengths[n] / self._mean
        return self.idf(word) * often * (K1 + 1) / (often + K1 * norm)
