"""What must hold for a record: run by Bazel with a `--record=PATH` for each, by pytest over all."""

import difflib

import pytest

from kernels_generated.reproduction import lacking, reproduction
from search.core.evaluation import Failure
from search.core.workload import bound_us
from search.evaluator.shapes import bounded
from search.evaluator.stages import CLOCK
from search.record.record import MEASURED, read_record

RENEW = "./bazelw run //tools:renew_records -- {kernel}/{folder}"
SAME = 1e-9  # relative: a time that is computed, written and read


@pytest.fixture(scope="module")
def stored(folder):
    """The record with its texts."""
    return read_record(folder)


@pytest.fixture(scope="module")
def made(stored):
    """The record with its backend; skips where that cannot be loaded."""
    if why := lacking(stored):
        pytest.skip(why)
    return reproduction(stored)


@pytest.fixture(scope="module")
def outcome(made):
    """What becomes of the stored sources on this machine, each where it is run; skips where
    nothing can."""
    can = made.can
    if not can.get("correct_by") or not can.get("time_kind"):
        pytest.skip(f"`{made.stored.record.backend}` cannot run here: {can.get('why')}")
    return made.evaluate_all([kernel.source for kernel in made.stored.kernels])


def test_the_files_are_those_that_the_record_was_made_from(stored):
    edited = stored.edited_by_hand()
    assert not edited, f"{', '.join(edited)} changed since; if that is right: {renew(stored)}"


def test_the_backend_emits_the_same_source_again(made):
    record, kernels = made.stored.record, made.stored.kernels
    if record.freely_edited and all(
        specialization.freely_edited for specialization in record.specializations
    ):
        pytest.skip("the source was edited freely: it says more than the schedule")
    names = [record.source, *(specialization.source for specialization in record.specializations)]
    diff = [
        line
        for name, kernel, now in zip(names, kernels, made.emit_all(), strict=True)
        for line in difflib.unified_diff(
            kernel.source.splitlines(), now.splitlines(), name, "emitted now", lineterm=""
        )
    ]
    if diff:
        remedy = f"\nIf the new text is right: {renew(made.stored)}"
        pytest.fail("\n".join([*diff, remedy]), pytrace=False)


def test_the_kernel_equals_the_reference_at_all_check_shapes(outcome):
    if isinstance(outcome, Failure):
        pytest.fail(f"{outcome.stage}, {outcome.kind}: {outcome.reason}", pytrace=False)
    assert outcome.errors, "nothing was compared: the spec has no check shapes"


def test_its_figures_are_those_that_can_be_had_again(made, outcome):
    record = made.stored.record
    if record.roofline_us is not None:
        spec = made.workload.spec
        assert bound_us(spec, made.machine, made.shapes) == pytest.approx(record.roofline_us), (
            renew(made.stored)
        )
        assert record.us >= CLOCK * record.roofline_us or not bounded(spec), "faster than can be"
    if isinstance(outcome, Failure):
        return
    then, now = (
        said.partition(",")[0]
        for said in (record.digests.toolchain, str(made.can.get("toolchain")))
    )
    if record.digests.code and then == now:  # the compiler, which comes first, is the same
        assert outcome.code_sha256 == record.digests.code, renew(made.stored)
    if MEASURED in (record.time_kind, outcome.time_kind):
        return
    assert outcome.correct_by == record.correct_by, renew(made.stored)


def test_the_kernel_takes_the_time_that_the_record_says(made, outcome):
    record = made.stored.record
    if isinstance(outcome, Failure):
        pytest.skip(f"the kernel fails at stage {outcome.stage}")
    if MEASURED in (record.time_kind, outcome.time_kind):
        pytest.skip("a measured time is not the same twice")
    then, now = record.digests.toolchain, made.can.get("toolchain")
    if record.time_kind == "modelled" and then != now:
        pytest.skip(f"modelled from what `{then}` made; here it is `{now}`")
    assert outcome.time_kind == record.time_kind
    remedy = f"if that is right: {renew(made.stored)}"
    assert outcome.us == pytest.approx(record.us, rel=SAME), remedy


def test_each_tuned_shape_is_given_the_kernel_that_the_record_says(made, tmp_path):
    record = made.stored.record
    chosen = made.dispatched(tmp_path).chosen
    assert [chosen(t.shape) for t in record.workload] == [t.kernel for t in record.workload]


def renew(stored) -> str:
    record = stored.record
    return RENEW.format(kernel=record.kernel, folder=record.folder)
