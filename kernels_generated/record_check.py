"""What must hold for a record: run by Bazel with `--record=PATH`, by pytest over all of them."""

import difflib

import pytest

from kernels_generated.reproduction import lacking, reproduction
from search.evaluation import Failure
from search.record import MEASURED, read_record

RENEW = "./bazelw run //tools:renew_records -- {kernel}/{target}"
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
    """What becomes of the stored source on this machine; skips where nothing can."""
    can = made.can
    if not can.get("correct_by") or not can.get("time_kind"):
        pytest.skip(f"`{made.stored.record.backend}` cannot run here: {can.get('why')}")
    return made.evaluate(made.stored.source)


def test_the_files_are_those_that_the_record_was_made_from(stored):
    edited = stored.edited_by_hand()
    assert not edited, f"{', '.join(edited)} changed since; if that is right: {renew(stored)}"


def test_the_backend_emits_the_same_source_again(made):
    if made.stored.record.freely_edited:
        pytest.skip("the source was edited freely: it says more than the schedule")
    now = made.emit()
    if now == made.stored.source:
        return
    name = made.stored.record.source
    diff = difflib.unified_diff(
        made.stored.source.splitlines(), now.splitlines(), name, "emitted now", lineterm=""
    )
    remedy = f"\nIf the new text is right: {renew(made.stored)}"
    pytest.fail("\n".join([*diff, remedy]), pytrace=False)


def test_the_kernel_equals_the_reference_at_all_check_shapes(outcome):
    if isinstance(outcome, Failure):
        pytest.fail(f"{outcome.stage}, {outcome.kind}: {outcome.reason}", pytrace=False)
    assert outcome.errors, "nothing was compared: the spec has no check shapes"


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


def renew(stored) -> str:
    record = stored.record
    return RENEW.format(kernel=record.kernel, target=record.target)
