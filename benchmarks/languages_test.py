"""Tests a race between backends: the rows of results, and the ratios of times."""

import json
import os
from dataclasses import replace

import pytest

from backends.backend import BackendError
from benchmarks import languages
from benchmarks.languages import Race, main, ratios
from benchmarks.rehearsal import SlowDevice
from benchmarks.stopwatch import Reading
from ir.errors import KernelError

SCHEDULE = "schedule(softmax)\ntile(m, size=4)\nplace(m.outer, level=grid)\n"
RACE = Race("cpu")
ROWS = [
    {"kernel": "a", "one": {"us": 8.0}, "other": {"us": 2.0}},
    {"kernel": "b", "one": {"us": 2.0}, "other": {"us": 2.0}},
    {"kernel": "c", "one": {"us": 2.0}, "other": {"failure": "spills"}},
]


def test_ratios_are_of_the_kernels_that_both_ran():
    found = ratios(ROWS, "one", "other")
    assert found == {"geometric_mean": 2.0, "min": 1.0, "failed": ["c"]}
    assert ratios(ROWS[2:], "one", "other") == {
        "geometric_mean": None,
        "min": None,
        "failed": ["c"],
    }


def test_nothing_is_raced_where_it_would_not_be_measured(tmp_path):
    with pytest.raises(KernelError, match="not measured here"):
        main(["--target=npu", f"--out={tmp_path / 'found.json'}"])
    with pytest.raises(KernelError, match="no kernel `nothing`"):
        main(["--target=npu", f"--out={tmp_path / 'found.json'}", "--kernels=nothing"])
    with pytest.raises(KernelError, match="no `slow` to race"):
        main(["--target=npu", f"--out={tmp_path / 'found.json'}", "--modes=slow"])
    assert not list(tmp_path.iterdir())


def test_a_backend_is_checked_alone_where_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(languages, "job", told)
    monkeypatch.setattr(languages, "measured", lambda machine, built: (["cpp"], []))
    monkeypatch.setattr("benchmarks.device.facts", lambda: {"machine": "here"})
    words = ["--target=cpu", "--kernels=softmax", f"--out={tmp_path / 'found.json'}"]
    with pytest.raises(KernelError, match="there is no race"):
        main(words)
    assert main([*words, "--backends=cpp"]) == 0
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (found["languages"], found["summary"]) == (["cpp"], {})
    assert set(found["rows"][0]["cpp"]) == {"build", "run"}


def test_a_job_checks_and_times_the_schedule_of_a_record(monkeypatch, tmp_path):
    record = tmp_path / "kernels_generated/softmax/cpu"
    record.mkdir(parents=True)
    (record / "schedule.sched").write_text(SCHEDULE, encoding="utf-8")
    monkeypatch.setattr(languages, "ROOT", tmp_path)
    assert json.dumps(languages.job("softmax", "cpp", RACE, tmp_path, "build"))
    found = languages.job("softmax", "cpp", RACE, tmp_path, "run")
    assert found["us"] > 0 and found["correct_by"] == "device"


def test_what_timed_calls_give_is_checked(monkeypatch, tmp_path):
    record = tmp_path / "kernels_generated/softmax/cpu"
    record.mkdir(parents=True)
    (record / "schedule.sched").write_text(SCHEDULE, encoding="utf-8")
    monkeypatch.setattr(languages, "ROOT", tmp_path)
    languages.job("softmax", "cpp", RACE, tmp_path, "build")
    serving, seen = languages.backend("cpp"), []
    timed = type(serving).time

    def other(self, *given):
        found = timed(self, *given)
        seen.append(found)
        return replace(found, outputs={n: a + 1 for n, a in found.outputs.items()})

    monkeypatch.setattr(type(serving), "time", other)
    with pytest.raises(BackendError, match="of a timed call"):
        languages.job("softmax", "cpp", RACE, tmp_path, "run")
    assert seen


def test_pytorch_is_timed_eager_and_by_modes(monkeypatch):
    calls = []
    monkeypatch.setattr("backends.gpu.device.gpu.CudaDevice", SlowDevice)
    monkeypatch.setattr("backends.gpu.device.nodes.DEVICE", "cpu")
    made = lambda call, mode: lambda *tensors: calls.append(mode) or call(*tensors)  # noqa: E731
    monkeypatch.setattr("benchmarks.race.compiled", made)
    bench = languages.Library()
    for entrant in ("eager", *languages.MODES):
        calls.clear()
        assert bench(("softmax", entrant)).row == {"us": 100.0}
        assert set(calls) == ({entrant} - {"eager"})


def test_what_pytorch_takes_stands_beside_and_so_does_why_it_has_no_time(monkeypatch):
    monkeypatch.setattr(languages, "job", told)
    monkeypatch.setattr(languages, "Stopwatch", lambda make, seconds: FewSeconds())
    race = Race("cpu", beside=("eager", "compile"))
    (row,) = languages.raced(["softmax"], race, ("cpp",), lambda row: None)
    assert row["eager"] == {"us": 3.0} and row["compile"] == {"failure": "no answer in 60 s"}


class FewSeconds:
    def __call__(self, job):
        kernel, entrant = job
        assert kernel == "softmax"
        return (
            Reading(row={"us": 3.0}) if entrant == "eager" else Reading(reason="no answer in 60 s")
        )

    def close(self):
        pass


# The jobs of the tests below compute nothing, because a child of a process with OpenMP threads must
# not use OpenMP.
def test_each_stage_has_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(languages, "job", told)
    shown = []
    rows = languages.raced(["softmax"], RACE, ("cpp", "other"), shown.append)
    assert rows == shown
    processes = {row[s] for row in (rows[0]["cpp"], rows[0]["other"]) for s in ("build", "run")}
    assert len(processes) == 4 and os.getpid() not in processes


def told(kernel, language, race, folder, stage):
    return {stage: os.getpid()}


def test_a_stage_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(languages, "job", failing)
    (row,) = languages.raced(["softmax"], RACE, ("cpp",), lambda row: None)
    assert "no `run`" in row["cpp"]["failure"]


def test_an_error_of_any_kind_ends_in_the_child(monkeypatch):
    monkeypatch.setattr(languages, "job", lambda *_: {}["absent"])
    (row,) = languages.raced(["softmax"], RACE, ("cpp",), lambda row: None)
    assert row["cpp"]["failure"] == "KeyError: 'absent'"


def failing(kernel, language, race, folder, stage):
    raise KernelError(f"no `{stage}`")


def test_large_kernels_have_a_schedule_for_each_backend_and_a_function_beside_them():
    for case in (c for c in languages.CASES.values() if c.sizes):
        assert languages.beside(case.name, ("eager",)) == ("library",)
        assert case.work().tune == case.sizes
        for name in ("triton", "cuda"):
            text = case.schedule("h200", name).read_text(encoding="utf-8")
            assert text.startswith(f"schedule({case.kernel})")


def test_kernels_without_a_function_of_their_own_are_raced_eager_where_asked():
    assert languages.beside("softmax", ("eager",)) == ("eager",)
    assert languages.beside("softmax") == ()


def test_a_target_without_schedules_says_how_to_name_another(tmp_path):
    with pytest.raises(KernelError, match="`softmax` has no schedule for `h100`") as seen:
        languages.lowered("softmax", "h100", "cuda")
    assert "--schedules" in seen.value.hint
    assert languages.lowered("softmax", "h100", "cuda", "h200").machine.name == "h100"


def test_large_kernels_do_not_count_in_the_mean():
    large = {"kernel": "d", "one": {"us": 9.0}, "other": {"us": 1.0}, "library": {"us": 1.0}}
    assert ratios([*ROWS, large], "one", "other") == ratios(ROWS, "one", "other")
