"""The test of records, tried on good and bad records of a target that needs no toolchain."""

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backends.emit import template_digest
from backends.registry import backend_for, target, target_names
from ir.autoschedule.autoschedule import plain
from ir.digest import spec_digest, text_digest
from ir.errors import KernelError
from ir.guards import Guard
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload
from ir.reference.inputs import random_inputs
from kernels_generated.reproduction import reproduction
from search.core.evaluation import Evaluation
from search.core.workload import bound_us
from search.record.record import Digests, Record, Stored, read_record, write_record
from search.record.specialization import Specialization, Texts, Tuned

ROOT = Path(__file__).parent.parent
WORKLOAD = (
    "def scale(x: f32[M, K]) -> f32[M, K]:\n"
    '    """Scale."""\n    y[m, k] = x[m, k] * 2.0\n    return y\n\n'
    "tune(M=64, K=32)\ncheck(M=7, K=3)\n"
)


@pytest.fixture
def stored():
    (name,) = set(target_names(for_tests=True)) - set(target_names())
    machine, shape = target(name), {"M": 64, "K": 32}
    spec = parse_workload(WORKLOAD).spec
    backend = backend_for(machine)
    schedule = plain(spec, machine, shape)
    source = backend.emit(lower(spec, schedule, machine, shape), machine)
    record = Record(
        kernel="scale",
        target=name,
        backend=backend.manifest.name,
        source="kernel.txt",
        command="a test",
        digests=Digests(
            spec=spec_digest(spec),
            schedule=text_digest(str(schedule)),
            source=text_digest(source),
            templates=template_digest(backend.manifest.name),
            toolchain="null 1",
        ),
        correct_by="emulator",
        time_kind="modelled",
        shape=shape,
        us=1.0,
    )
    made = Stored(record, WORKLOAD, str(schedule), source)
    found = reproduction(made).evaluate(source)
    assert isinstance(found, Evaluation)
    return replace(made, record=replace(record, us=found.us))


@pytest.fixture
def rewritten(stored):
    """The record with other equations, equal to the spec's, and what they come to."""
    variant = WORKLOAD.partition("\ntune")[0].replace("x[m, k] * 2.0", "x[m, k] + x[m, k]")
    machine, spec = target(stored.record.target), parse_workload(variant).spec
    schedule = plain(spec, machine, stored.record.shape)
    nest = lower(spec, schedule, machine, stored.record.shape)
    source = backend_for(machine).emit(nest, machine)
    digests = replace(
        stored.record.digests,
        variant=text_digest(variant),
        schedule=text_digest(str(schedule)),
        source=text_digest(source),
    )
    record = replace(stored.record, digests=digests)
    made = replace(stored, record=record, variant=variant, schedule=str(schedule), source=source)
    found = reproduction(made).evaluate(source)
    assert isinstance(found, Evaluation)
    return replace(made, record=replace(record, us=found.us))


class Outcomes:
    """A plugin that keeps what became of each test, and what was said of it."""

    def __init__(self):
        self.words, self.said = {}, []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.words.setdefault(report.nodeid, report.outcome)
            self.said.append(str(report.longrepr))


def checked(root, stored):
    """The outcomes of the six tests, and what they said."""
    folder = write_record(root, stored).folder
    seen = Outcomes()
    words = [
        "-c",
        "pytest.ini",
        "--rootdir",
        ".",
        "-p",
        "no:terminal",
        "-p",
        "no:hypothesispytest",
        "-o",
        "addopts=--import-mode=importlib -p no:cacheprovider",
        "kernels_generated/record_check.py",
        f"--record={folder}/record.toml",
    ]
    with contextlib.chdir(ROOT):
        pytest.main(words, plugins=[seen])
    return list(seen.words.values()), "\n".join(seen.said)


def test_a_good_record_passes(tmp_path, stored):
    words, said = checked(tmp_path, stored)
    assert words == ["passed"] * 6, said


def test_a_record_with_equations_of_its_own_is_emitted_from_them(tmp_path, stored, rewritten):
    assert rewritten.source != stored.source
    words, said = checked(tmp_path, rewritten)
    assert words == ["passed"] * 6, said
    folder = tmp_path / "scale" / stored.record.target
    assert read_record(folder) == rewritten


def test_a_record_whose_equations_are_lost_fails(tmp_path, rewritten):
    words, said = checked(tmp_path, replace(rewritten, variant=None))
    assert words[:2] == ["failed", "failed"], said
    assert "variant.kir" in said


def test_equations_that_compute_something_else_fail_against_the_spec(tmp_path, rewritten):
    wrong = rewritten.variant.replace("x[m, k] + x[m, k]", "x[m, k] * 3.0")
    machine, spec = target(rewritten.record.target), parse_workload(wrong).spec
    nest = lower(spec, parse_schedule(rewritten.schedule), machine, rewritten.record.shape)
    source = backend_for(machine).emit(nest, machine)
    digests = replace(
        rewritten.record.digests, variant=text_digest(wrong), source=text_digest(source)
    )
    record = replace(rewritten.record, digests=digests)
    bad = replace(rewritten, record=record, variant=wrong, source=source)
    words, said = checked(tmp_path, bad)
    assert words == ["passed", "passed", "failed", "passed", "skipped", "passed"], said
    assert "check, wrong" in said


def test_an_edited_source_is_shown_with_the_command_that_renews_it(tmp_path, stored):
    source = stored.source.replace("nest of scale", "nest of scales")
    words, said = checked(tmp_path, replace(stored, source=source))
    assert words == ["failed", "failed", "passed", "passed", "passed", "passed"], said
    assert "-nest of scales" in said
    assert "+nest of scale" in said
    assert f"//tools:renew_records -- scale/{stored.record.target}" in said


def test_a_freely_edited_source_is_not_compared(tmp_path, stored):
    source = stored.source + "one line more\n"
    digests = replace(stored.record.digests, source=text_digest(source))
    record = replace(stored.record, freely_edited=True, digests=digests)
    words, said = checked(tmp_path, replace(stored, source=source, record=record))
    assert words == ["passed", "skipped", "passed", "passed", "passed", "passed"], said
    assert "edited freely" in said


def test_a_source_that_does_not_build_fails(tmp_path, stored):
    words, said = checked(tmp_path, replace(stored, source="nothing"))
    assert words == ["failed", "failed", "failed", "passed", "skipped", "passed"], said
    assert "build, refused" in said


def test_another_modelled_time_fails(tmp_path, stored):
    record = replace(stored.record, us=stored.record.us * 1.001)
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words == ["passed", "passed", "passed", "passed", "failed", "passed"], said


@pytest.mark.parametrize("claim", [{"roofline_us": 1e-3}, {"correct_by": "simulator"}])
def test_a_claim_that_cannot_be_had_again_fails(tmp_path, stored, claim):
    record = replace(stored.record, **claim)
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words == ["passed", "passed", "passed", "failed", "passed", "passed"], said


@pytest.mark.parametrize("made_by", ["null 1", "null 1, torch 2", "null 0"])
def test_code_that_the_same_compiler_does_not_make_again_fails(tmp_path, stored, made_by):
    digests = replace(stored.record.digests, code="c0de", toolchain=made_by)
    record = replace(stored.record, digests=digests, time_kind="measured")
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words[3] == ("passed" if made_by == "null 0" else "failed"), said


def test_a_time_below_the_roofline_fails(tmp_path, stored):
    made = reproduction(stored)
    bound = bound_us(made.workload.spec, made.machine, made.shapes)
    record = replace(stored.record, us=bound / 2, roofline_us=bound, time_kind="measured")
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words[3] == "failed" and "faster than can be" in said


def test_a_measured_time_is_not_compared(tmp_path, stored):
    record = replace(stored.record, us=9.0, time_kind="measured")
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words == ["passed", "passed", "passed", "passed", "skipped", "passed"], said
    assert "not the same twice" in said


def test_a_time_that_was_modelled_with_another_toolchain_is_not_compared(tmp_path, stored):
    digests = replace(stored.record.digests, toolchain="null 0")
    record = replace(stored.record, us=stored.record.us * 2, digests=digests)
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words == ["passed", "passed", "passed", "passed", "skipped", "passed"], said
    assert "`null 0`" in said and "`null 1`" in said


def test_a_record_of_a_device_is_checked_by_other_means_where_there_is_none(tmp_path, stored):
    record = replace(
        stored.record,
        us=0.5,
        time_kind="measured",
        correct_by="device",
        device="Chip 9",
        digests=replace(stored.record.digests, toolchain="another"),
    )
    words, said = checked(tmp_path, replace(stored, record=record))
    assert words == ["passed", "passed", "passed", "passed", "skipped", "passed"], said


def test_where_the_backends_package_is_lacking_only_the_files_are_tested(
    tmp_path, stored, monkeypatch
):
    def absent(*_):
        raise KernelError("backend cannot be loaded") from ModuleNotFoundError(name="tongue")

    monkeypatch.setattr("kernels_generated.reproduction.backend_for", absent)
    words, said = checked(tmp_path, stored)
    assert words == ["passed", "skipped", "skipped", "skipped", "skipped", "skipped"], said
    assert "needs the Python package `tongue`" in said


def test_a_schedule_that_no_longer_fits_fails(tmp_path, stored):
    schedule = "schedule(scale)\ntile(nothing, size=3)\n"
    words, said = checked(tmp_path, replace(stored, schedule=schedule))
    assert words[:3] == ["failed"] * 3, said
    assert "verify, refused" in said


def test_a_record_that_cannot_be_read_fails(tmp_path, stored):
    folder = write_record(tmp_path, stored).folder
    (folder / "schedule.sched").unlink()
    with pytest.raises(Exception, match="cannot be read"):
        read_record(folder)


SMALL, LARGE = {"M": 64, "K": 32}, {"M": 4096, "K": 32}
OTHER = "schedule(scale)\ntile(m, size=2)\nplace(m.outer, level=grid)\n"


@pytest.fixture
def shared(stored):
    """A record of two kernels: the stored one for the small shape, the fallback for the large."""
    machine, record = target(stored.record.target), stored.record
    backend, spec = backend_for(machine), parse_workload(WORKLOAD).spec
    sources = [
        backend.emit(lower(spec, parse_schedule(text), machine, LARGE), machine)
        for text in (OTHER, stored.schedule)
    ]
    digests = replace(record.digests, schedule=text_digest(OTHER), source=text_digest(sources[0]))
    record = replace(
        record,
        shape=LARGE,
        digests=digests,
        guards=(Guard(SMALL, 1), Guard(LARGE, 0)),
        within=16.0,
        workload=(Tuned(SMALL, 1.0, 1.0, 1), Tuned(LARGE, 2.0, 1.0, 0)),
        specializations=(
            Specialization("kernel_1.txt", text_digest(stored.schedule), text_digest(sources[1])),
        ),
    )
    texts = (Texts(stored.schedule, sources[1]),)
    made = Stored(record, WORKLOAD, OTHER, sources[0], specializations=texts)
    found = reproduction(made).evaluate_all(sources)
    assert isinstance(found, Evaluation)
    rows = zip(record.workload, found.times, strict=True)
    workload = tuple(replace(tuned, us=time.us) for tuned, time in rows)
    return replace(made, record=replace(record, us=found.us, workload=workload))


def test_a_good_record_of_several_kernels_passes(tmp_path, shared):
    words, said = checked(tmp_path, shared)
    assert words == ["passed"] * 6, said


def test_each_kernel_is_checked_where_it_is_run(shared):
    made = reproduction(shared)
    sources = [kernel.source for kernel in shared.kernels]
    found = made.evaluate_all(sources)
    seen = [dict(error.sizes) for error in found.errors]
    assert SMALL in seen and LARGE in seen
    assert {"M": 512, "K": 32} in seen, "half way"
    assert [t.sizes["M"] for t in found.times] == [64, 4096]
    broken = made.evaluate_all([sources[0], "nothing"])
    assert broken.reason.startswith("kernel 1: ")


def test_a_specialization_that_was_edited_or_fails_is_told(tmp_path, shared):
    (texts,) = shared.specializations
    words, said = checked(
        tmp_path, replace(shared, specializations=(replace(texts, source="nothing"),))
    )
    assert words == ["failed", "failed", "failed", "passed", "skipped", "passed"], said
    assert "kernel_1.txt" in said and "kernel 1: " in said


def test_guards_that_choose_otherwise_than_the_record_says_fail(tmp_path, shared):
    record = replace(shared.record, guards=(Guard(SMALL, 0), Guard(LARGE, 1)))
    words, said = checked(tmp_path, replace(shared, record=record))
    assert words[-1] == "failed", said


def test_the_dispatched_kernel_runs_what_the_guards_choose(tmp_path, shared):
    made = reproduction(shared)
    run = made.dispatched(tmp_path)
    for sizes, kernel in (({"M": 5, "K": 2}, 1), ({"M": 513, "K": 2}, 0)):
        inputs = random_inputs(made.workload.spec, sizes, np.random.default_rng(1))
        assert run.chosen(sizes) == kernel
        assert np.array_equal(run.run(sizes, inputs)["y"], inputs["x"] * 2)
        assert run.time(sizes, inputs).us > 0
        assert (tmp_path / f"kernel_{kernel}").is_dir()
