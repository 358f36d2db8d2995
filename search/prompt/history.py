"""The history: what a search knows when it asks a model, as data for a prompt.

Candidates are described by their differences: decisions line by line, sources and equations as
diffs. Each has its time with the name of the machine.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from ir.edits.edits import difference as edits_between
from search.core.candidate import Candidate
from search.core.difference import line
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.graph import Graph
from search.core.lowered import schedule_of
from search.loop.context import Context, Refused

STEPS = 8  # steps of a lineage
RANKED = 4  # of the fastest, after the best
REFUSED = 6  # latest reasons for requests without a result
VALUES = 6  # other combinations of an answer with parameters
DIFF = 60  # lines of a diff
NAME = 8  # characters of a key that name a candidate in a prompt
Source = Callable[[Candidate], str]  # the source of a candidate in its backend's language


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate, described by its difference from another."""

    name: str
    words: tuple[str, ...]  # a line for each decision, and the model's reason
    result: str
    diff: str = ""  # of sources or equations, if decisions do not explain them


@dataclass(frozen=True, slots=True)
class History:
    """The state of a search for a prompt."""

    evaluated: int = 0
    failed: int = 0  # failed among these
    number: int = 0  # number of the request
    best: Step | None = None  # the best, described by its difference from the current kernel
    best_is_parent: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)  # texts of the best by file
    ranked: tuple[Step, ...] = ()  # the next fastest, each compared with the best
    # lineage of the current kernel, each step compared with the one before
    lineage: tuple[Step, ...] = ()
    siblings: tuple[Step, ...] = ()  # correct children of the current kernel
    wrong: tuple[Step, ...] = ()  # its failed children
    elsewhere: tuple[str, ...] = ()  # results of other searches for the kernel
    requested: tuple[str, ...] = ()  # requests in flight
    refused: tuple[Refused, ...] = ()


def name_of(candidate: Candidate) -> str:
    """The name of a candidate in a prompt."""
    return candidate.key[:NAME]


def history(context: Context, files: Mapping[str, str], source: Source) -> History:
    """The history in a context.

    files: of the first parent by name; the source is the last. source: gives the source of a
    candidate.
    """
    parent = context.parents[0].candidate
    told = [(c, o) for c in context.graph if (o := context.outcomes.get(c.key)) is not None]
    right = [(o.us, n, c) for n, (c, o) in enumerate(told) if isinstance(o, Evaluation)]
    fastest = one_of_each([c for _, _, c in sorted(right)])
    place = {c.key: n for n, c in enumerate(fastest)}
    best = fastest[0] if fastest else None
    teller = Teller(context.graph, context.outcomes, context.machine.name, source)
    line_of = [c for c in context.graph.lineage(parent.key) if c.backend == parent.backend]
    line_of = line_of[-STEPS - 1 :]
    children = [c for c in context.graph.children(parent.key) if c.key in context.outcomes]
    # Combinations of one answer are shown together, with the fastest of them.
    children = one_of_each(sorted(children, key=lambda c: place.get(c.key, len(place))), children)
    by_result = {k: [c for c in children if teller.is_right(c) == k] for k in (True, False)}
    is_parent = best is not None and best.key == parent.key
    ranked = fastest[1 : RANKED + 1]
    if is_parent:  # children are already described by their difference from it
        by_result[True] = [c for c in by_result[True] if c not in ranked]
    return History(
        evaluated=len(told),
        failed=len(told) - len(right),
        number=context.memory.number,
        best=teller.step(parent, best) if best else None,
        best_is_parent=is_parent,
        texts=_texts(best, files, source) if best and not is_parent else {},
        ranked=tuple(teller.step(fastest[0], c) for c in ranked),
        lineage=tuple(teller.step(a, b) for a, b in zip(line_of, line_of[1:])),
        siblings=tuple(teller.step(parent, c) for c in by_result[True][-STEPS:]),
        wrong=tuple(teller.step(parent, c) for c in by_result[False][-STEPS:]),
        elsewhere=tuple(
            f"{t.us:.4g} us on {t.target} ({t.backend}, {t.time_kind})" for t in context.transferred
        ),
        requested=context.memory.requested,
        refused=_by_reason(context.memory.refused),
    )


def one_of_each(
    candidates: Sequence[Candidate], order: Sequence[Candidate] | None = None
) -> list[Candidate]:
    """The candidates with only the first combination of each answer with parameters.

    order: the order of the result; None: that of `candidates`.
    """
    kept: dict[object, Candidate] = {}
    for c in candidates:
        kept.setdefault(c.origin.trial.answer if c.origin.trial else c.key, c)
    left = {c.key for c in kept.values()}
    return [c for c in (candidates if order is None else order) if c.key in left]


def _by_reason(refused: Sequence[Refused]) -> tuple[Refused, ...]:
    """The latest request for each reason, with the number of others with that reason."""
    found: dict[str, list[str]] = {}
    for one in refused:
        found[one.reason] = [*found.pop(one.reason, ()), one.asked]
    return tuple(
        Refused(f"{asked[-1]} (and {len(asked) - 1} more)" if asked[1:] else asked[0], reason)
        for reason, asked in list(found.items())[-REFUSED:]
    )


def _texts(best: Candidate, files: Mapping[str, str], source: Source) -> dict[str, str]:
    """The texts of the best that differ from the current kernel's."""
    names = list(files)
    found = dict(zip(names, (best.variant, best.schedule, source(best)), strict=True))
    return {name: text for name, text in found.items() if text != files[name]}


class Teller:
    """Describes candidates by their differences. machine: its name. source: gives a candidate's
    source."""

    def __init__(
        self, graph: Graph, outcomes: Mapping[str, Evaluated], machine: str, source: Source
    ):
        self.graph = graph
        self.outcomes = outcomes
        self.machine = machine
        self.source = source

    def is_right(self, candidate: Candidate) -> bool:
        """Whether its outcome is an evaluation."""
        return isinstance(self.outcomes.get(candidate.key), Evaluation)

    def step(self, before: Candidate, after: Candidate) -> Step:
        """A candidate described by its difference from another, with its outcome."""
        words = [line(e) for e in _edits(before, after)]
        if after.origin.note:
            words.append(f"{after.origin.operator}: {after.origin.note.rstrip('.')}")
        words += self._others(after)
        if before.source is not None and after.source is None:
            words.append(f"its source as emitted; that of {name_of(before)} was edited")
        if not words:
            words.append("the same decisions in another order, or another text")
        result = self._result(before, after)
        return Step(name_of(after), tuple(words), result, "\n".join(self._diff(before, after)))

    def _others(self, after: Candidate) -> Iterator[str]:
        """The outcomes of the other combinations of an answer with parameters, fastest first."""
        trial = after.origin.trial
        if trial is None:
            return
        found = [
            (outcome.us if isinstance(outcome, Evaluation) else inf, n, c, outcome)
            for n, (key, outcome) in enumerate(self.outcomes.items())
            if (c := self.graph.node(key)).origin.trial is not None
            and c.origin.trial.answer == trial.answer
            and c.key != after.key
        ]
        said = [
            f"{c.origin.trial}: {result(o, self.machine)}" for *_, c, o in sorted(found)[:VALUES]
        ]
        if said:
            yield f"it with other values: {'; '.join(said)}"

    def _result(self, before: Candidate, after: Candidate) -> str:
        earlier, now = (self.outcomes.get(c.key) for c in (before, after))
        found = result(now, self.machine)
        if isinstance(earlier, Evaluation) and isinstance(now, Evaluation) and before is not after:
            found += (
                f", {now.us / earlier.us:.3f} times the {earlier.us:.4g} us of {name_of(before)}"
            )
        return found

    def _diff(self, before: Candidate, after: Candidate) -> Iterator[str]:
        """A diff of the equations if they differ, and of an edited source: against the other
        candidate if both have the same variant and schedule, else against its emitted source."""
        if before.variant != after.variant:
            yield from diff(before.variant, after.variant)
        if after.source is not None and before.source != after.source:
            alike = (before.variant, before.schedule) == (after.variant, after.schedule)
            base = before if alike and before.source else replace(after, source=None)
            yield from diff(self.source(base), after.source)


def _edits(before: Candidate, after: Candidate) -> Sequence:
    return edits_between(schedule_of(before.schedule), schedule_of(after.schedule))


def diff(before: str, after: str) -> list[str]:
    """A unified diff without its header, cut if it is long."""
    found = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))
    found = found[2:]
    left = len(found) - DIFF
    return found if left <= 0 else [*found[:DIFF], f"[... {left} lines left out]"]


def result(outcome: Evaluated | None, machine: str) -> str:
    """The outcome of a candidate in words."""
    if outcome is None:
        return "not known yet"
    if isinstance(outcome, Failure) and outcome.slow:
        return f"about {outcome.us:.4g} us ({machine}), too slow to be checked"
    if isinstance(outcome, Failure):
        return f"failed at {outcome.stage} ({outcome.kind}): {outcome.headline}"
    return f"{outcome.us:.4g} us ({machine}, {outcome.time_kind})"
