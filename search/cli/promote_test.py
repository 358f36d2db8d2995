"""A winner with other equations is promoted with them, and its record names their origin."""

from dataclasses import replace

import pytest

from backends.registry import backend_for, target, target_names
from backends.served import Served
from ir.autoschedule.autoschedule import autoschedule
from ir.digest import spec_digest, text_digest
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.print import spec_text
from search.cli.promote import command, promote
from search.cli.suite import Problem
from search.core.archive import Archive
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation
from search.core.graph import Graph
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.record.record import read_record

(NAME,) = set(target_names(for_tests=True)) - set(target_names())
MACHINE, SIZES = target(NAME), {"M": 8, "K": 16}
SPEC = parse_spec(
    '''def twice(x: f32[M, K]) -> f32[M, K]:
    """Double x."""
    y[m, k] = x[m, k] * 2.0
    return y
'''
)
OTHER = parse_spec(spec_text(SPEC).replace("x[m, k] * 2.0", "x[m, k] + x[m, k]"))


def candidate(spec, origin):
    schedule = str(autoschedule(spec, MACHINE, SIZES))
    return Candidate(
        spec_text(spec), schedule, NAME, backend_for(MACHINE).manifest.name, origin=origin
    )


FIRST = candidate(SPEC, Origin("first"))
BEST = candidate(OTHER, Origin("rewrite", (FIRST.key,), "write_sum(y)"))


@pytest.fixture
def folder(tmp_path):
    backend = backend_for(MACHINE)
    settings = Settings(
        "twice",
        spec_text(SPEC),
        NAME,
        (backend.manifest.name,),
        SIZES,
        checks=({"M": 3, "K": 5},),
        evaluations=4,
        operators=("step", "rewrite"),
        left_to_torch=("svd",),
    )
    graph = Graph()
    graph.add(FIRST)
    graph.add(BEST)
    found = Evaluation(2.0, "modelled", "emulator", code_sha256="c0de")
    outcome = Outcome(
        run="twice-1",
        settings=settings,
        evaluations=4,
        failures={},
        first=FIRST,
        first_us=3.0,
        plain_us=None,
        best=BEST,
        evaluation=found,
        roofline_us=1.0,
        stopped_because="enough",
        seconds=1.0,
        archive=Archive((1,)),
        graph=graph,
        outcomes={BEST.key: found},
    )
    served = {backend.manifest.name: Served(backend, MACHINE)}
    problem = Problem(settings, served, SIZES, ours=True)
    written = promote(problem, outcome, tmp_path, {})
    assert written.written
    return written.folder


def test_the_record_holds_the_equations_and_their_digest(folder):
    stored = read_record(folder)
    assert stored.variant == BEST.variant
    assert stored.record.digests.variant == text_digest(BEST.variant)
    assert stored.record.digests.spec == spec_digest(SPEC)
    assert stored.record.digests.code == "c0de"
    assert parse_spec(stored.workload.partition("\ntune")[0]) == SPEC
    assert stored.edited_by_hand() == []
    assert stored.record.left_to_torch == ("svd",)


def test_the_source_is_that_of_the_equations(folder):
    stored = read_record(folder)
    nest = lower(OTHER, autoschedule(OTHER, MACHINE, SIZES), MACHINE, SIZES)
    assert stored.source == backend_for(MACHINE).emit(nest, MACHINE)


def test_the_lineage_names_the_operator_and_what_it_did(folder):
    lineage = read_record(folder).record.lineage
    assert "other equations, equal to the spec's, by rewrite: write_sum(y)" in lineage


def test_the_command_names_the_operators_that_made_it(folder):
    made = read_record(folder).record.command
    assert "--operators=step,rewrite" in made
    every = Settings("twice", spec_text(SPEC), NAME, ("tongue",), SIZES, evaluations=4)
    assert "--operators" not in command(every) and "--model" not in command(every)
    assert command(replace(every, models=("large:2", "small"))).endswith(
        "--model=large:2 --model=small"
    )


def test_the_command_names_the_backends_where_not_all_of_the_target_raced():
    both = Settings("twice", spec_text(SPEC), NAME, ("tongue", "dialect"), SIZES)
    assert "--backend" not in command(both, listed=("tongue", "dialect"))
    narrowed = command(replace(both, backends=("dialect",)), listed=("tongue", "dialect"))
    assert narrowed.endswith("--backend=dialect")


def test_a_backend_that_searched_alone_has_a_record_of_its_own():
    given = Settings(
        "twice", spec_text(SPEC), NAME, ("dialect",), SIZES, schedule="schedule(twice)\n"
    )
    alone = command(given, listed=("tongue", "dialect"))
    assert f"--schedule=kernels_generated/twice/{NAME}.dialect/schedule.sched" in alone
    assert f"/twice/{NAME}/schedule.sched" in command(given, listed=("dialect",))


def test_a_schedule_of_other_equations_is_nothing_to_start_from():
    given = Settings(
        "twice", spec_text(SPEC), NAME, ("tongue",), SIZES, schedule="schedule(twice)\n"
    )
    assert f"--schedule=kernels_generated/twice/{NAME}/schedule.sched" in command(given)
    assert "--schedule" not in command(given, own=False)
