"""Trials: the parameter combinations for which an answer is evaluated.

The first legal combination comes with the answer, the others one by one as outcomes arrive. Of an
answer only its candidates are kept: they have the combinations and their outcomes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from search.core.candidate import Candidate
from search.core.settings import TRIALS
from search.core.trial import Template, Values
from search.loop.context import Context, GaveUp
from search.operator.offering import combination
from search.operator.study import TPE, StudyParameter, asked, lacking
from search.operator.study import Trial as Told

# combinations of an answer in evaluation at once, so that later ones use earlier outcomes
AHEAD = 4
HOPELESS = 3  # failures without a correct candidate, after which an answer is abandoned
LOOKS = 32  # combinations that the sampler is asked for, to find a new one
REASONS = 6  # reasons for illegal combinations that are reported
Key = tuple[str, ...]  # values in the order of the parameters


@dataclass(frozen=True, slots=True)
class Trials:
    """Chooses combinations: all of them in order of preference if the limit permits, else samples
    of Optuna's TPE."""

    limit: int = TRIALS  # combinations that are evaluated for an answer
    # Combinations that give no candidate, by answer. This is only a cache: the choice does not
    # depend on it, because a resumed run starts without it.
    _dead: dict[int, set[Key]] = field(default_factory=dict, compare=False, repr=False)

    def first(self, context: Context, template: Template, operator: str) -> Candidate | GaveUp:
        """The most preferred combination that gives a candidate. It carries the answer."""
        reasons: dict[str, str] = {}
        for values in template.combinations():
            found = combination(context, template, values, operator, context.memory.number)
            if isinstance(found, Candidate):
                trial = found.origin.trial
                assert trial is not None, "a combination says which it is"
                whole = replace(trial, template=template)
                return replace(found, origin=replace(found.origin, trial=whole))
            said = ", ".join(f"{name}={value}" for name, value in values.items())
            reasons.setdefault(found.reason, said)
        lines = [f"with {said}: {reason}" for reason, said in list(reasons.items())[:REASONS]]
        return GaveUp("\n".join([f"none of {template.count} combinations is a kernel", *lines]))

    def next(self, context: Context, first: Candidate, seed: str) -> Candidate | GaveUp:
        """The next combination of the answer that `first` carries, if one is due.

        context: with the parents of the answer. The result depends only on the graph, the outcomes
        and the seed.
        """
        trial = first.origin.trial
        assert trial is not None and trial.template is not None, "it carries an answer"
        made = [
            c
            for c in context.graph
            if (t := c.origin.trial) is not None and t.answer == trial.answer
        ]
        if reason := self._waits(context, made):
            return GaveUp(reason)
        template = trial.template
        rng = random.Random(f"{seed}/{trial.answer}/{len(made)}")
        known = {_key(c.origin.trial.values) for c in made if c.origin.trial}
        dead = self._dead.setdefault(trial.answer, set())
        left = {
            key: values for values in template.combinations() if (key := _key(values)) not in known
        }
        sampled: Iterator[Key] = iter(())
        if len(made) + len(left) > self.limit and not lacking():
            sampled = islice(_sampled(context, template, made, self.limit, rng), LOOKS)
        while left:
            key = next((key for key in sampled if key in left), next(iter(left)))
            values = left.pop(key)
            if key in dead:
                continue
            operator = first.origin.operator
            found = combination(context, template, values, operator, trial.answer)
            if isinstance(found, Candidate):
                origin = replace(found.origin, prompt=first.origin.prompt, tag=first.origin.tag)
                return replace(found, origin=origin)
            dead.add(key)
        return GaveUp("no combination is left")

    def _waits(self, context: Context, made: Sequence[Candidate]) -> str:
        """Why no further combination is due now or ever; empty if one is."""
        told = [context.outcomes[c.key] for c in made if c.key in context.outcomes]
        if len(made) >= self.limit:
            return "the answer has had all its trials"
        if made and (not told or len(made) - len(told) >= AHEAD):
            return "combinations before it are not known yet"
        if len(told) >= HOPELESS and all(outcome.us is None for outcome in told):
            return "nothing of the answer is correct"
        return ""


def _key(values: Values) -> Key:
    return tuple(values.values())


def _sampled(
    context: Context,
    template: Template,
    made: Sequence[Candidate],
    limit: int,
    rng: random.Random,
) -> Iterator[Key]:
    """Combinations that a sampler proposes; some may be known."""
    names = template.parameters
    axes = {n: StudyParameter(len(values), _ascends(values)) for n, values in names.items()}
    told = [
        Told(_setting(names, c.origin.trial.values), _us(context, c))
        for c in made
        if c.key in context.outcomes and c.origin.trial is not None
    ]
    start = dict.fromkeys(axes, 0)
    for setting in asked(TPE, axes, told, start, rng.getrandbits(32), startup=max(2, limit // 3)):
        yield tuple(values[setting[name]] for name, values in names.items())


def _setting(names: Mapping[str, Sequence[str]], values: Values) -> dict[str, int]:
    return {name: each.index(values[name]) for name, each in names.items()}


def _us(context: Context, candidate: Candidate) -> float | None:
    return context.outcomes[candidate.key].us


def _ascends(values: Sequence[str]) -> bool:
    """Whether values are sorted numbers, so that neighbours are similar."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return False
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))
