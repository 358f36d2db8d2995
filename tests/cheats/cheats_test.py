"""Cheats and honest oddities through the evaluator, without a device."""

from __future__ import annotations

import re
from collections import defaultdict
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from search.core.evaluation import Evaluation, Failure
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Stages
from tests.cheats import edits, equations, families, promises, sources
from tests.cheats.case import PLACES, Case, bench, lacking
from tests.cheats.honest import honest

CHEATS = [*equations.cheats(), *families.cheats(), *sources.cheats(), *edits.cheats()]
CHEATS += promises.cheats()
HONEST = [*honest(), *families.honest(), *promises.honest()]
NAMES = attrgetter("name")
MOST = 60  # of either, at least so many kinds


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What becomes of each case: those of a kernel at a place are evaluated together, those with
    sources of their own in the sandbox."""
    together: dict[tuple, list[Case]] = defaultdict(list)
    for case in CHEATS + HONEST:
        together[case.kernel, case.place, bool(case.edits)].append(case)
    known: dict[Case, Evaluation | Failure] = {}

    def of(case: Case) -> Evaluation | Failure:
        if why := lacking(case.place):
            pytest.skip(why)
        if case not in known:
            group = together[case.kernel, case.place, bool(case.edits)]
            known.update(zip(group, _evaluated(group, tmp_path_factory), strict=True))
        return known[case]

    return of


def _evaluated(group, folders):
    tried = bench(group[0].kernel, group[0].place)
    asked = [case.candidate() for case in group]
    if group[0].edits:
        with LocalEvaluator([tried], workers=1) as evaluator:
            found = dict(evaluator.evaluate(asked))
        return [found[n] for n in range(len(asked))]
    stages, place = Stages.of(tried), folders.mktemp("cases")
    found = []
    for candidate in asked:
        with TemporaryDirectory(dir=place) as folder:
            found.append(stages.evaluate(candidate, Path(folder), lambda stage: None))
    return found


@pytest.mark.parametrize("case", CHEATS, ids=NAMES)
def test_a_cheat_is_refused_for_its_reason(outcomes, case):
    found = outcomes(case)
    assert isinstance(found, Failure), f"it passes, though {case.why}"
    assert found.stage == case.stage, found
    assert re.search(case.said, found.reason), found


@pytest.mark.parametrize("case", HONEST, ids=NAMES)
def test_an_honest_oddity_is_accepted(outcomes, case):
    found = outcomes(case)
    assert isinstance(found, Evaluation), f"{found}, though {case.why}"


def test_there_are_enough_kinds_of_both():
    for cases in (CHEATS, HONEST):
        assert len({case.name for case in cases}) == len(cases) >= MOST
        assert {case.place for case in cases} == set(PLACES)
