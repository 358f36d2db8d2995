import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.digest import spec_digest, text_digest
from ir.errors import KernelError
from ir.guards import Guard
from ir.parse.parse import parse_workload
from search.record.record import (
    BUILD_TEXT,
    Digests,
    Record,
    Stored,
    Unfit,
    parse_record,
    read_record,
    record_folders,
    write_record,
)
from search.record.specialization import Specialization, Texts, Tuned

WORKLOAD = (
    "def scale(x: f32[M, K]) -> f32[M, K]:\n"
    '    """Scale."""\n    y[m, k] = x[m, k] * 2.0\n    return y\n\n'
    "tune(M=64, K=32)\ncheck(M=7, K=3)\n"
)
SCHEDULE = "schedule(scale)\ntile(m, size=16)\n"
SOURCE = "int kernel;\n"


def stored(us=10.0, workload=WORKLOAD, **changed):
    digests = Digests(
        spec=spec_digest(parse_workload(workload).spec),
        schedule=text_digest(SCHEDULE),
        source=text_digest(SOURCE),
        templates="t" * 16,
        toolchain="compiler 12",
        code="c0de",
    )
    made = Record(
        kernel="scale",
        target="chip",
        backend="tongue",
        source="kernel.cc",
        command="evolve --target=chip",
        digests=digests,
        correct_by="simulator",
        time_kind="simulated",
        shape={"M": 64, "K": 32},
        us=us,
        checked=({"M": 7, "K": 3}, {"M": 64, "K": 32}),
        unfit=(Unfit({"M": 1, "K": 1}, 'slower than "nothing"'),),
        first_us=30.0,
        roofline_us=4.0,
        evaluations=60,
        seed=1,
        lineage=("tile m: 8 -> 16", "stage x: depth 2 -> 3"),
    )
    return Stored(dataclasses.replace(made, **changed), workload, SCHEDULE, SOURCE)


def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_what_is_left_to_torch_is_in_the_text_where_something_is(tmp_path):
    assert "left_to_torch" not in stored().record.text()
    made = stored(left_to_torch=("_linalg_eigh", "svd"))
    assert 'left_to_torch = ["_linalg_eigh", "svd"]' in made.record.text()
    assert read_record(write_record(tmp_path, made).folder) == made


def test_what_is_written_reads_back_equal(tmp_path):
    written = write_record(tmp_path, stored())
    assert written.written
    assert written.folder == tmp_path / "scale" / "chip"
    assert read_record(written.folder) == stored()
    assert record_folders(tmp_path) == (written.folder,)


def test_a_record_is_exactly_these_files(tmp_path):
    write_record(tmp_path, stored())
    assert listing(tmp_path) == [
        "scale",
        "scale/BUILD.bazel",
        "scale/chip",
        "scale/chip/kernel.cc",
        "scale/chip/record.toml",
        "scale/chip/schedule.sched",
        "scale/spec.kir",
    ]
    assert (tmp_path / "scale" / "BUILD.bazel").read_text() == BUILD_TEXT


def test_another_variant_is_kept_with_it(tmp_path):
    given = dataclasses.replace(stored(), variant="def scale...")
    folder = write_record(tmp_path, given).folder
    assert read_record(folder) == given
    write_record(tmp_path, stored(us=5.0))
    assert read_record(folder) == stored(us=5.0)


OTHER = "schedule(scale)\ntile(m, size=4)\n"
SHARED = {
    "workload": (Tuned({"M": 64, "K": 32}, 2.0, 9.0), Tuned({"M": 4, "K": 32}, 1.0, 1.5, 1)),
    "guards": (Guard({"M": 64, "K": 32}, 0), Guard({"M": 4, "K": 32}, 1)),
    "within": 4.0,
    "specializations": (
        Specialization(
            "kernel_1.cc",
            text_digest(OTHER),
            text_digest("int other;\n"),
            False,
            ("+ a",),
            text_digest("def scale..."),
        ),
    ),
    "single_us": 11.0,
}


def shared(**changed):
    """A record with two kernels."""
    made = stored()
    record = dataclasses.replace(made.record, **{**SHARED, **changed})
    texts = Texts(OTHER, "int other;\n", "def scale...")
    return dataclasses.replace(made, record=record, specializations=(texts,))


def test_kernels_that_share_shapes_are_one_record(tmp_path):
    folder = write_record(tmp_path, shared()).folder
    assert [p.name for p in sorted(folder.iterdir())] == [
        "kernel.cc",
        "kernel_1.cc",
        "record.toml",
        "schedule.sched",
        "schedule_1.sched",
        "variant_1.kir",
    ]
    assert read_record(folder) == shared()
    assert shared().edited_by_hand() == []
    (folder / "schedule_1.sched").write_text(SCHEDULE)
    (folder / "kernel_1.cc").write_text(SOURCE)
    assert read_record(folder).edited_by_hand() == ["schedule_1.sched", "kernel_1.cc"]


def test_a_record_of_one_kernel_says_nothing_of_others():
    text = stored().record.text()
    several = ("workload", "guards", "within", "specializations", "single_us")
    assert not any(word in text for word in several)
    assert "{ near = { M = 4, K = 32 }, kernel = 1 }" in shared().record.text()


def test_a_record_for_other_shapes_or_weights_is_another(tmp_path):
    write_record(tmp_path, shared())
    heavier = (Tuned({"M": 64, "K": 32}, 3.0, 9.0), Tuned({"M": 4, "K": 32}, 1.0, 1.5, 1))
    for other in (stored(us=1.0), shared(us=1.0, workload=heavier)):
        written = write_record(tmp_path, other)
        assert not written.written and "is tuned for" in written.why
    assert write_record(tmp_path, shared(us=9.0)).written


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"guards": (Guard({"M": 1, "K": 1}, 2),)}, "there is no kernel 2"),
        ({"workload": (Tuned({"M": 1, "K": 1}, 1.0, 1.0, 7),)}, "there is no kernel 7"),
        ({"guards": (Guard({"M": 1, "N": 1}, 1),)}, "a guard is near"),
        ({"guards": (Guard({"M": 0, "K": 1}, 1),)}, "a guard is near"),
    ],
)
def test_a_guard_or_a_shape_names_what_is_there(changed, what):
    with pytest.raises(KernelError, match=what):
        shared(**changed)


def test_a_faster_one_replaces_and_a_slower_or_equal_one_does_not(tmp_path):
    write_record(tmp_path, stored())
    for us in (10.0, 11.0):
        kept = write_record(tmp_path, stored(us=us))
        assert not kept.written
        assert kept.why == "the one kept takes 10 µs"
    assert write_record(tmp_path, stored(us=9.0)).written
    assert read_record(tmp_path / "scale" / "chip").record.us == 9.0


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"shape": {"M": 8, "K": 8}}, "the one kept is tuned for M=64, K=32"),
        ({"time_kind": "modelled"}, "the time kept is simulated, the new one modelled"),
    ],
)
def test_what_cannot_be_compared_replaces_only_when_told(tmp_path, changed, why):
    write_record(tmp_path, stored())
    other = stored(us=1.0, **changed)
    assert write_record(tmp_path, other).why == why
    assert write_record(tmp_path, other, replace=True).written
    assert read_record(tmp_path / "scale" / "chip") == other


def test_a_measured_time_replaces_any_other_and_is_replaced_by_no_other(tmp_path):
    write_record(tmp_path, stored(time_kind="modelled"))
    measured = stored(us=99.0, time_kind="measured", device="Chip 9", clocks="1 GHz")
    assert write_record(tmp_path, measured).written
    kept = write_record(tmp_path, stored(us=1.0, time_kind="modelled"))
    assert kept.why == "its time was measured, the new one's is modelled"
    assert read_record(tmp_path / "scale" / "chip") == measured
    assert write_record(tmp_path, stored(us=98.0, time_kind="measured")).written


def test_another_spec_of_the_name_does_not_replace_unless_told(tmp_path):
    write_record(tmp_path, stored())
    other = stored(us=1.0, workload=WORKLOAD.replace("2.0", "3.0"))
    assert write_record(tmp_path, other).why == "the one kept is of another spec"
    assert write_record(tmp_path, other, replace=True).written


def test_another_spec_is_refused_where_other_targets_have_records(tmp_path):
    write_record(tmp_path, stored(target="other_chip"))
    before = {p: (tmp_path / p).stat().st_mtime_ns for p in listing(tmp_path)}
    with pytest.raises(KernelError, match="another spec named `scale` has records here"):
        write_record(tmp_path, stored(workload=WORKLOAD.replace("2.0", "3.0")), replace=True)
    assert {p: (tmp_path / p).stat().st_mtime_ns for p in listing(tmp_path)} == before


def test_other_shapes_of_the_same_spec_may_be_written(tmp_path):
    write_record(tmp_path, stored(target="other_chip"))
    text = WORKLOAD + "check(M=1, K=1)\n"
    assert write_record(tmp_path, stored(workload=text)).written
    assert (tmp_path / "scale" / "spec.kir").read_text() == text


def test_a_file_that_says_the_same_keeps_its_layout(tmp_path):
    write_record(tmp_path, stored(target="other_chip"))
    file = tmp_path / "scale" / "spec.kir"
    file.write_text(text := WORKLOAD.replace("check(M=7, K=3)", "check(K=3, M=7)  # odd"))
    assert write_record(tmp_path, stored()).written
    assert file.read_text() == text


def test_a_place_that_cannot_be_written_is_a_fault_with_a_remedy(tmp_path):
    (tmp_path / "scale").write_text("a file in the way")
    with pytest.raises(KernelError) as caught:
        write_record(tmp_path, stored())
    assert "the record cannot be written" in str(caught.value)
    assert caught.value.hint
    assert listing(tmp_path) == ["scale"]


def test_equations_of_its_own_that_changed_are_named(tmp_path):
    own = WORKLOAD.partition("\ntune")[0].replace("x[m, k] * 2.0", "x[m, k] + x[m, k]")
    plain = stored()
    digests = dataclasses.replace(plain.record.digests, variant=text_digest(own))
    record = dataclasses.replace(plain.record, digests=digests)
    made = dataclasses.replace(plain, record=record, variant=own)
    folder = write_record(tmp_path, made).folder
    assert read_record(folder) == made
    assert read_record(folder).edited_by_hand() == []
    (folder / "variant.kir").write_text(own.replace("+", "-"))
    assert read_record(folder).edited_by_hand() == ["variant.kir"]
    (folder / "variant.kir").unlink()
    assert read_record(folder).edited_by_hand() == ["variant.kir"]


def test_what_a_kill_leaves_is_no_record(tmp_path):
    write_record(tmp_path, stored())
    left = tmp_path / "scale" / ".chip-abc" / "new"
    left.mkdir(parents=True)
    (left / "record.toml").write_text(stored().record.text())
    (left.parent / "record.toml").write_text(stored().record.text())
    assert record_folders(tmp_path) == (tmp_path / "scale" / "chip",)


def test_files_edited_by_hand_are_named(tmp_path):
    assert stored().edited_by_hand() == []
    folder = write_record(tmp_path, stored()).folder
    (folder / "kernel.cc").write_text("int other;\n")
    (folder / "schedule.sched").write_text("schedule(scale)\n")
    assert read_record(folder).edited_by_hand() == ["schedule.sched", "kernel.cc"]
    (folder.parent / "spec.kir").write_text(WORKLOAD.replace("2.0", "3.0"))
    assert "spec.kir" in read_record(folder).edited_by_hand()


@pytest.mark.parametrize("noun", ["kernel", "target"])
def test_names_that_leave_their_folder_are_refused(noun):
    with pytest.raises(KernelError, match="cannot name a folder"):
        stored(**{noun: "../x"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t + "[", "this is not TOML"),
        (lambda t: t.replace("us = 10.0", "uss = 10.0"), "field `uss` is not known"),
        (lambda t: t.replace("us = 10.0\n", ""), "this is no record: 'us'"),
        (lambda t: t.replace('"simulated"', '"guessed"'), "field `time_kind` is 'guessed'"),
        (lambda t: t.replace("[digests]", "[[digests]]"), "this is no record"),
    ],
)
def test_a_record_that_is_wrong_is_named_with_its_file(change, message):
    text = stored().record.text()
    assert change(text) != text
    with pytest.raises(KernelError) as caught:
        parse_record(change(text), "here/record.toml")
    assert str(caught.value).startswith(f"here/record.toml: {message}")


def test_a_missing_file_is_named(tmp_path):
    folder = write_record(tmp_path, stored()).folder
    (folder / "kernel.cc").unlink()
    with pytest.raises(KernelError, match="the file cannot be read"):
        read_record(folder)


@given(
    st.floats(min_value=1e-9, allow_infinity=False),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4),
    st.dictionaries(st.sampled_from("MNK"), st.integers(1, 10**9)),
)
def test_any_record_reads_back_equal(us, lineage, shape):
    made = stored(us=us, lineage=tuple(lineage), shape=shape).record
    assert parse_record(made.text()) == made


def test_a_record_that_is_edited_by_hand_is_noticed(tmp_path):
    folder = write_record(tmp_path, stored()).folder
    file = folder / "record.toml"
    text = file.read_text()
    assert read_record(folder).edited_by_hand() == []
    for old in ("us = ", "evaluations = ", "seed = "):
        file.write_text(text.replace(f"\n{old}", f"\n{old}1", 1))
        assert read_record(folder).edited_by_hand() == ["record.toml"], old
    lines = text.splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("seal")))
    assert read_record(folder).edited_by_hand() == ["record.toml"]


def test_the_record_of_one_backend_stands_beside_that_of_the_race(tmp_path):
    write_record(tmp_path, stored())
    alone = stored(us=20.0, narrowed=True)
    written = write_record(tmp_path, alone)
    assert written.written and written.folder.name == f"chip.{alone.record.backend}"
    assert read_record(written.folder) == alone
    assert record_folders(tmp_path) == (tmp_path / "scale" / "chip", written.folder)
    assert "narrowed" not in stored().record.text()
