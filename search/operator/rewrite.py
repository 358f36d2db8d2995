"""Rewrite: other equations for the same spec, by one to three rewrites of the table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ir.errors import KernelError
from ir.rewrites import REWRITES
from ir.rewrites.form import form_digest
from ir.spec import Spec
from search.core.candidate import Candidate
from search.core.lowered import spec_of
from search.loop.context import Context, GaveUp
from search.warm_start.autoscheduled import scheduled

Step = tuple[Spec, str]  # equations, and the rewrites that made them


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Applies up to `most` rewrites, each drawn from those that apply to the equations so far.

    Each further rewrite has probability 1/2. A rewrite is drawn before its place, so one with many
    places is not drawn more often. A variant that is in the graph, under any names, is not made
    again. A variant gets the parent's schedule as far as it lowers, and the autoschedule. Among
    `looks` variants, the child with the best estimate is kept, with a random error of up to
    `doubt`. If `tries` attempts give nothing new, all single rewrites are tried.
    """

    name: str = "rewrite"
    most: int = 3
    tries: int = 12
    looks: int = 3
    doubt: float = 0.3
    parents: int = 1
    remote: bool = False

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child with a variant that no candidate has."""
        start = context.parents[0].variant
        texts = (c.variant for c in context.graph if c.backend == context.serving)
        known = {_form(text) for text in dict.fromkeys(texts)}
        walks = (self._walk(start, rng) for _ in range(self.tries))
        found = self._best(context, walks, known, self.looks, rng)
        if found is None:
            found = self._best(context, _singles(start, rng), known, 1, rng)
        return found or GaveUp("no rewrite leads to equations that are new and can be lowered")

    def _best(
        self,
        context: Context,
        steps: Iterator[Step],
        known: set[str],
        looks: int,
        rng: random.Random,
    ) -> Candidate | None:
        """The child with the best estimate, among the first `looks` variants with children."""
        children: list[tuple[float, Candidate]] = []
        looked = 0
        for variant, note in steps:
            digest = form_digest(variant)
            if digest in known:
                continue
            known.add(digest)
            made = tuple(self._children(context, variant, note))
            for child in made:
                error = 1 + rng.uniform(-self.doubt, self.doubt)
                children.append((error * context.expected_us(child), child))
            looked += bool(made)
            if looked == looks:
                break
        return min(children, key=lambda child: child[0])[1] if children else None

    def _walk(self, start: Spec, rng: random.Random) -> Step:
        """A variant after a few rewrites; `start` itself if none applies."""
        spec, words = start, []
        for _ in range(self.most):
            for name in rng.sample(sorted(REWRITES), len(REWRITES)):
                if made := REWRITES[name](spec):
                    before, spec = spec, rng.choice(made)
                    words.append(_said(name, before, spec))
                    break
            if rng.random() < 0.5:
                break
        return spec, "; ".join(words)

    def _children(self, context: Context, variant: Spec, note: str) -> Iterator[Candidate]:
        """The variant with the parent's schedule, and with its autoschedule."""
        kept = context.offer_variant(variant, self.name, note)
        if isinstance(kept, Candidate):
            yield kept
        try:
            anew = scheduled(variant, context.machine, context.sizes)
        except KernelError:
            return
        note = f"{note}; scheduled anew"
        other = context.offer_variant(variant, self.name, note, anew)
        if isinstance(other, Candidate):
            yield other


def _singles(start: Spec, rng: random.Random) -> Iterator[Step]:
    """All variants after one rewrite, with the rewrites in random order."""
    for name in rng.sample(sorted(REWRITES), len(REWRITES)):
        for spec in REWRITES[name](start):
            yield spec, _said(name, start, spec)


def _said(name: str, before: Spec, after: Spec) -> str:
    """A rewrite in words: its name and the equations that it made."""
    had = set(before.equations)
    made = [e.target for e in after.equations if e not in had]
    return f"{name}({', '.join(made)})"


@lru_cache(maxsize=256)
def _form(text: str) -> str:
    return form_digest(spec_of(text))
