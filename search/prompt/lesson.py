"""A lesson: the results of a finished run, distilled from its graph and outcomes without a model.

Each child is compared with the parent that it resembles most. Each differing decision counts as one
edit. A child with several edits divides its gain among them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ir.edits.edits import difference
from ir.errors import KernelError
from search.core.by_backend import BackendResult, backend_result
from search.core.candidate import Candidate
from search.core.difference import lines
from search.core.evaluation import Evaluation, Failure
from search.core.lowered import schedule_of, spec_of
from search.core.outcome import Outcome
from search.prompt.document import Document
from search.prompt.operations import operations

GLANCED = "measured"  # kind of the time of candidates that are too slow to be checked
FASTER = 1.01  # least speed-up over the parent that counts as a gain
EQUATIONS, SOURCE = "equations", "source"  # edits without a verb
MOST_REASONS = 8  # reasons in a document
MOST_PAID, MOST_COST = 6, 4  # single edits in a document, by gain and by loss
_LONGEST = 160  # characters of a reason


@dataclass(slots=True)
class Tally:
    """The results of the edits of one verb."""

    tries: int = 0  # evaluated edits
    faster: float = 0.0  # edits whose child was faster than its parent
    failed: int = 0  # edits whose child failed although its parent did not
    timed: float = 0.0
    # Sum of the logarithms of the speed-ups over the parents, for the `timed` edits.
    log_gain: float = 0.0

    @property
    def speedup(self) -> float:
        """Geometric mean of the speed-ups over the parents; 1 without times."""
        return math.exp(self.log_gain / self.timed) if self.timed else 1.0

    @property
    def table(self) -> Mapping[str, float]:
        """The counts for a document's header."""
        return {
            "tries": self.tries,
            "faster": round(self.faster, 3),
            "failed": self.failed,
            "speedup": round(self.speedup, 4),
        }


@dataclass(frozen=True, slots=True)
class Lesson:
    """The results of a run for one backend."""

    outcome: Outcome  # the run
    result: BackendResult  # the result of the backend
    date: str
    operations: tuple[str, ...]  # kinds of operations in its spec
    tallies: Mapping[str, Tally] = field(default_factory=dict)  # by verb, in alphabetical order
    # Reasons of failed edits, as (verb, reason) with counts.
    reasons: Mapping[tuple[str, str], int] = field(default_factory=dict)
    # Edits that are the only difference between a child and its parent, with the speed-up, best
    # first.
    single: Mapping[str, float] = field(default_factory=dict)
    winner: tuple[str, ...] = ()  # difference of the best from the first

    @property
    def document(self) -> Document:
        """The lesson as a skill of the knowledge base."""
        chosen, best = self.outcome.settings, self.result.evaluation
        backend = self.result.backend
        several = len(chosen.backends) > 1
        return Document(
            name=f"{self.outcome.run}-{backend}" if several else self.outcome.run,
            kind="skill",
            title=f"What paid for {chosen.kernel} on {chosen.target}",
            body=_body(self),
            sources=(f"run {self.outcome.run}",),
            tags=tuple(v for v in self.tallies if v.isidentifier()),
            machines=(chosen.target, backend),
            operations=self.operations,
            provenance={
                "run": self.outcome.run,
                "kernel": chosen.kernel,
                "target": chosen.target,
                "backend": backend,
                "date": self.date,
                "sizes": dict(chosen.sizes),
                "evaluations": self.result.evaluated,
                "policy": chosen.policy,
                "seed": chosen.seed,
                "time_kind": best.time_kind if best else "",
                "correct_by": best.correct_by if best else "",
            },
            verbs={verb: tally.table for verb, tally in self.tallies.items()},
        )


def distil(outcome: Outcome, backend: str, date: str) -> Lesson:
    """The lesson of a run for one of its backends. date: of the run's end, such as `2026-01-31`."""
    tallies: dict[str, Tally] = {}
    reasons: Counter[tuple[str, str]] = Counter()
    single: dict[str, float] = {}
    for parent, child in _pairs(outcome, backend):
        before, after = outcome.outcomes[parent.key], outcome.outcomes[child.key]
        if not isinstance(before, Evaluation):
            continue
        verbs = tuple(_verbs(parent, child))
        for verb in verbs:
            _count(tallies.setdefault(verb, Tally()), before, after, len(verbs))
            if isinstance(after, Failure) and not after.slow:
                reasons[verb, f"{after.stage}: {_short(after.headline)}"] += 1
        if isinstance(after, Evaluation) and len(verbs) == 1 and _comparable(before, after):
            single.setdefault(lines(parent, child)[0], before.us / after.us)
    result = backend_result(outcome, backend)
    return Lesson(
        outcome=outcome,
        result=result,
        date=date,
        operations=operations(spec_of(outcome.settings.spec)),
        tallies=dict(sorted(tallies.items())),
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        single=dict(sorted(single.items(), key=lambda item: (-item[1], item[0]))),
        winner=result.edits,
    )


def _pairs(outcome: Outcome, backend: str) -> Iterator[tuple[Candidate, Candidate]]:
    """Parents and children of a backend with known outcomes, on one target."""
    for child in outcome.graph:
        if not child.origin.parents or child.key not in outcome.outcomes:
            continue
        parent = outcome.graph.node(child.origin.parents[0])
        alike = parent.target == child.target and parent.backend == child.backend == backend
        if alike and parent.key in outcome.outcomes:
            yield parent, child


def _verbs(parent: Candidate, child: Candidate) -> Iterator[str]:
    """The verb of each edit between a parent and its child."""
    if parent.variant != child.variant:
        yield EQUATIONS
    if parent.source != child.source:
        yield SOURCE
    try:
        edits = difference(schedule_of(parent.schedule), schedule_of(child.schedule))
    except KernelError:
        return
    for edit in edits:
        yield edit.decision.verb


def _comparable(before: Evaluation, after: Evaluation | Failure) -> bool:
    """Whether two times are of the same kind. Times of glances are measured."""
    kind = after.time_kind if isinstance(after, Evaluation) else GLANCED
    return kind == before.time_kind


def _count(tally: Tally, before: Evaluation, after: Evaluation | Failure, among: int) -> None:
    tally.tries += 1
    if after.us is None:
        tally.failed += 1
    elif _comparable(before, after):
        tally.timed += 1 / among
        tally.log_gain += math.log(before.us / after.us) / among
        tally.faster += (before.us / after.us >= FASTER) / among


def _short(line: str) -> str:
    """A line, shortened for a list."""
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _body(lesson: Lesson) -> str:
    outcome, chosen = lesson.outcome, lesson.outcome.settings
    sizes = " ".join(f"{k}={v}" for k, v in chosen.sizes.items())
    result, best, kind = lesson.result, lesson.result.evaluation, ""
    if best is not None:
        gain = (
            f", {result.first_us / best.us:.2f} times as fast as the first"
            if result.first_us
            else ""
        )
        kind = (
            f"The best takes {best.us:.4g} us ({best.time_kind}; correct by {best.correct_by})"
            f"{gain}; the machine's bound is {outcome.roofline_us:.4g} us."
        )
    head = (
        f"A search of {result.evaluated} evaluations on {chosen.target} ({chosen.policy}, "
        f"{lesson.date}) tried {chosen.kernel} at {sizes}. {kind or 'Nothing was correct.'}"
    )
    parts = [head, "## The winner, against the first schedule", _list(lesson.winner)]
    parts += ["## Edits", _table(lesson.tallies)]
    parts += ["## Single edits that paid or cost most", _single(lesson.single)]
    parts += ["## What failed", _failures(lesson)]
    return "\n\n".join(parts) + "\n"


def _list(lines: tuple[str, ...]) -> str:
    return "\n".join(f"- `{line}`" for line in lines) or "- no difference"


def _table(tallies: Mapping[str, Tally]) -> str:
    head = "| edit of | tries | faster | failed | mean speed-up over the parent |"
    rows = [
        f"| {verb} | {t.tries} | {t.faster:.3g} | {t.failed} | {t.speedup:.3f} |"
        for verb, t in tallies.items()
    ]
    return "\n".join((head, "| --- | ---: | ---: | ---: | ---: |", *rows))


def _single(found: Mapping[str, float]) -> str:
    paid = [item for item in found.items() if item[1] >= FASTER][:MOST_PAID]
    cost = [item for item in found.items() if item[1] <= 1 / FASTER][-MOST_COST:]
    told = [f"- `{words}`: {ratio:.2f} times as fast" for words, ratio in (*paid, *cost)]
    return "\n".join(told) or "- none"


def _failures(lesson: Lesson) -> str:
    most = list(lesson.reasons.items())[:MOST_REASONS]
    lines = [f"- {verb}, {count} times: {reason}" for (verb, reason), count in most]
    return "\n".join(lines) or "- nothing"
