"""The equipment of a search: what it starts from, its operators, the models that it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.registry import target
from ir.parse.parse import parse_spec
from search.command.models import RunModels, Sources, model_operators, models_of
from search.command.problem import Problem
from search.command.promotion import winner_source
from search.context import Operator
from search.foreign import Foreign
from search.operator import local_operators, usual
from search.operator.study import lacking
from search.outcome import Outcome
from search.prompt.document import document
from search.prompt.lessons import Lessons
from search.prompt.operations import operations
from search.store.recall import recalled
from search.stored import Keeper


@dataclass(frozen=True, slots=True)
class Equipment:
    """operators: by name.  models: None where none is asked."""

    problem: Problem
    operators: Mapping[str, Operator]
    models: RunModels | None

    def close(self) -> None:
        """Lets go of connections."""
        if self.models is not None:
            self.models.close()


def equipped(
    problem: Problem,
    sources: Sources,
    store: Keeper,
    *,
    ended: Sequence[tuple[Problem, Outcome]] = (),
    memory: bool = False,
    lessons: Lessons | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Equipment:
    """A search's equipment, which for a run that goes on or is replayed is as it was.

    ended: the searches of this session so far, whose winners for the same kernel are carried
    over.  memory: whether earlier runs in the store are asked too.  lessons: None for none.
    """
    if not (problem.run or problem.replays):
        problem = _prepared(problem, store, ended, memory, lessons)
    settings = problem.settings
    operators = local_operators(settings.preferences)
    models = models_of(problem, sources, store)
    if models is not None:
        skills = [document(f"lesson{n}", text) for n, text in enumerate(settings.lessons)]
        operators |= model_operators(problem, models, skills)
    if not settings.operators and (package := lacking()):
        say(f"nothing is tuned: the Python package `{package}` is not installed here")
    wanted = settings.operators or usual(operators)
    chosen = {name: o for name, o in operators.items() if name in wanted}
    if not chosen:
        say("none of the operators can be used; all that need no model are taken")
        chosen = local_operators(settings.preferences)
    return Equipment(problem, chosen, models)


def _prepared(
    problem: Problem,
    store: Keeper,
    ended: Sequence[tuple[Problem, Outcome]],
    memory: bool,
    lessons: Lessons | None,
) -> Problem:
    settings = problem.settings
    foreign = [_carried(p, o) for p, o in ended if p.settings.kernel == settings.kernel and o.best]
    if memory:
        foreign += recalled(store, settings, lambda name: target(name).backends)
    settings = replace(settings, foreign=tuple(foreign))
    if lessons is not None:
        kinds = operations(parse_spec(settings.spec))
        settings = replace(
            settings,
            preferences=dict(lessons.preferences(problem.machine, kinds)),
            lessons=tuple(d.file_text for d in lessons.documents(problem.machine)),
        )
    return replace(problem, settings=settings)


def _carried(problem: Problem, outcome: Outcome) -> Foreign:
    """The winner of another search, with its source."""
    best, found = outcome.best, outcome.evaluation
    assert best is not None and found is not None, "it was asked for"
    return Foreign(
        target=best.target,
        backend=best.backend,
        formulation=best.formulation,
        schedule=best.schedule,
        us=found.us,
        time_kind=found.time_kind,
        run=outcome.run,
        source=winner_source(problem, outcome),
        edited=best.source is not None,
    )
