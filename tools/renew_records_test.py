import json
from dataclasses import replace

import pytest

from backends.registry import backend_for, target, target_names
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.digest import spec_digest, text_digest
from ir.guards import Guard
from ir.parse.parse import parse_workload
from search.evaluator import shapes, stages
from search.record.record import Digests, Record, Stored, read_record, write_record
from search.record.specialization import Specialization, Texts, Tuned
from tools.renew_records import main

WORKLOAD = (
    "def scale(x: f32[M, K]) -> f32[M, K]:\n"
    '    """Scale."""\n    y[m, k] = x[m, k] * 2.0\n    return y\n\n'
    "tune(M=64, K=32)\ncheck(M=7, K=3)\n"
)
(TARGET,) = set(target_names(for_tests=True)) - set(target_names())


@pytest.fixture
def tree(tmp_path):
    """Creates a checkout with one record, whose source and figures are out of date."""
    machine, shape = target(TARGET), {"M": 64, "K": 32}
    spec = parse_workload(WORKLOAD).spec
    schedule = str(autoschedule(spec, machine, shape))
    record = Record(
        kernel="scale",
        target=TARGET,
        backend=backend_for(machine).manifest.name,
        source="kernel.txt",
        command="evolve",
        digests=Digests(spec_digest(spec), text_digest(schedule), "old", "old", "old"),
        correct_by="emulator",
        time_kind="modelled",
        shape=shape,
        us=123.0,
        lineage=("one step",),
    )
    write_record(tmp_path / "kernels_generated", Stored(record, WORKLOAD, schedule, "old\n"))
    return tmp_path


def kept(tree):
    return read_record(tree / "kernels_generated" / "scale" / TARGET)


def test_sources_digests_and_figures_follow_and_lineage_stays(tree, capsys):
    before = kept(tree)
    assert main([], tree) == 0
    after = kept(tree)
    assert after.source.startswith("nest of scale")
    assert after.edited_by_hand() == []
    assert after.record.us == after.record.first_us
    assert 0 < after.record.roofline_us < after.record.us <= after.record.plain_us
    assert after.record.checked == ({"M": 7, "K": 3}, {"M": 64, "K": 32})
    assert after.record.digests.templates != "old"
    assert (after.record.lineage, after.schedule) == (before.record.lineage, before.schedule)
    assert f"scale/{TARGET}: source changed, 123 -> " in capsys.readouterr().out


def test_where_tuning_sizes_are_not_compared_the_others_are(tree, monkeypatch):
    monkeypatch.setattr(shapes, "SLOW", ("emulator",))
    # No smaller size replaces the tuning sizes either.
    monkeypatch.setattr(stages, "TUNED_SECONDS", 0.0)
    assert main([], tree) == 0
    after = kept(tree).record
    assert after.checked == ({"M": 7, "K": 3},)
    assert after.first_us and after.plain_us


def test_renewing_again_changes_nothing(tree, capsys):
    main([f"scale/{TARGET}"], tree)
    first = kept(tree)
    assert main([f"scale/{TARGET}", "--json"], tree) == 0
    assert kept(tree) == first
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["records"][0]["source_changed"] is False
    assert said["records"][0]["us"] == said["records"][0]["before_us"] == first.record.us


def test_digests_alone_follow_a_schedule_that_says_the_same(tree, capsys):
    main([], tree)
    first, folder = kept(tree), tree / "kernels_generated" / "scale" / TARGET
    source = f"{first.record.digests.schedule} {first.source}"
    record = replace(first.record, us=5.0, digests=replace(first.record.digests, templates="old"))
    stored = replace(first, record=record)
    write_record(tree / "kernels_generated", stored, replace=True)
    assert main(["--digests"], tree) == 0
    after = kept(tree)
    assert after.record.us == 5.0, "nothing was timed"
    assert after.record.digests == first.record.digests
    assert (after.source, after.edited_by_hand()) == (first.source, [])
    assert f"scale/{TARGET}: same source, 5 -> 5 us" in capsys.readouterr().out
    (folder / "kernel.txt").write_text(source)
    assert main(["--digests"], tree) == 1, "a source that says more"
    assert kept(tree).source == source
    assert "its program changed; renew it whole" in capsys.readouterr().out


def test_a_freely_edited_source_is_kept(tree):
    stored = kept(tree)
    main([], tree)
    source = kept(tree).source + "one line more\n"
    record = replace(stored.record, freely_edited=True)
    write_record(
        tree / "kernels_generated", replace(stored, source=source, record=record), replace=True
    )
    assert main([], tree) == 0
    assert kept(tree).source == source
    assert kept(tree).record.digests.source == text_digest(source)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schedule": "schedule(scale)\ntile(nothing, size=3)\n"}, "left as it is"),
        ({"source": "no nest"}, "build: "),
    ],
)
def test_a_kernel_that_no_longer_works_is_left_as_it_is(tree, capsys, change, said):
    stored = replace(kept(tree), **change)
    record = replace(stored.record, freely_edited="source" in change)
    stored = replace(stored, record=record)
    write_record(tree / "kernels_generated", stored, replace=True)
    assert main([], tree) == 1
    assert kept(tree) == stored
    assert said in capsys.readouterr().out


def test_a_measured_time_is_not_replaced_by_another_kind_of_time(tree, capsys):
    stored = kept(tree)
    stored = replace(stored, record=replace(stored.record, time_kind="measured", device="Chip 9"))
    write_record(tree / "kernels_generated", stored, replace=True)
    assert main([], tree) == 1
    assert kept(tree) == stored
    assert "its time was measured" in capsys.readouterr().out


def test_an_unknown_record_is_wrong_use(tree, capsys):
    assert main([f"scal/{TARGET}"], tree) == 2
    said = capsys.readouterr().err
    assert f"there is no record `scal/{TARGET}`" in said
    assert f"did you mean `scale/{TARGET}`?" in said


def test_an_unknown_option_is_wrong_use(tree):
    with pytest.raises(SystemExit) as caught:
        main(["--all"], tree)
    assert caught.value.code == 2


def test_help_ends_with_examples(tree, capsys):
    with pytest.raises(SystemExit):
        main(["--help"], tree)
    assert capsys.readouterr().out.count("  renew_records") == 2


def test_kernels_that_share_shapes_are_renewed_together(tree):
    before = kept(tree)
    machine, spec = target(TARGET), parse_workload(WORKLOAD).spec
    small, large = before.record.shape, {"M": 4096, "K": 32}
    other = str(autoschedule(spec, machine, large))
    other = other if other != before.schedule else str(plain(spec, machine, large))
    record = replace(
        before.record,
        guards=(Guard(small, 0), Guard(large, 1)),
        within=4.0,
        workload=(Tuned(small, 1.0, 7.0), Tuned(large, 2.0, 7.0, 1)),
        specializations=(Specialization("kernel_1.txt", text_digest(other), "old"),),
        single_us=7.0,
    )
    shared = replace(before, record=record, specializations=(Texts(other, "old\n"),))
    write_record(tree / "kernels_generated", shared, replace=True)
    assert main([], tree) == 0
    after = kept(tree)
    assert after.edited_by_hand() == []
    assert after.specializations[0].source.startswith("nest of scale")
    one, two = after.record.workload
    assert one.us != 7.0 != two.us
    assert after.record.us == pytest.approx((one.us * two.us**2) ** (1 / 3))
    assert after.record.single_us not in (None, 7.0)
    checked = [tuple(sizes.items()) for sizes in after.record.checked]
    assert len(set(checked)) == len(checked)
