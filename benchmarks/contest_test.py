"""Tests a contest on the CPU: built kernels are interpreted, and every call takes 20 ms."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
import torch

from backends.backend import BackendError
from backends.gpu.threads.interpreter.interpret import interpret
from backends.registry import backend, served_by, target
from benchmarks import candidates, contest, prebuilt
from benchmarks.baselines import BASELINES
from benchmarks.built import place, read_built
from benchmarks.candidates import CONTESTS, Contest, asked_contests
from benchmarks.contest import Bench, late_jobs
from benchmarks.race import Track
from benchmarks.rehearsal import SlowDevice
from benchmarks.stopwatch import Reading
from ir.errors import KernelError

SMALL = Contest("matmul_tf32", "f32", dict(M=64, K=32, N=64), 0.95, (dict(M=64, K=64, N=32),))
SCHEDULE = (
    "schedule(matmul_tf32)\ntile(m, size=64)\ntile(n, size={n})\ntile(k, size=32)\n"
    "place(m.outer, level=grid)\nplace(n.outer, level=grid)\nplace(k.outer, level=loop)\n"
    "compute(c, unit=matrix)\npipeline(a, stages=2)\npipeline(b, stages=2)\ncopy(a, by=bulk)\n"
    "copy(b, by=bulk)\nthreads(c, count=128)\n"
)
MACHINE = served_by(target("h100"), backend("cuda"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Builds two candidates in CUDA C++, whose compiler is faster."""
    root = tmp_path_factory.mktemp("contest")
    own = root / "benchmarks" / "schedules_of_languages" / "h200" / SMALL.name
    own.mkdir(parents=True)
    for label, n in (("first", 32), ("second", 64)):
        (own / f"{label}-cuda.sched").write_text(SCHEDULE.format(n=n), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "SCHEDULES", own.parent.parent)
        patch.setattr("benchmarks.carried.ROOT", root)
        patch.setitem(CONTESTS, "small", SMALL)
        words = ["--target=h100", "--schedules=h200", "--contests=small", "--backends=cuda"]
        assert prebuilt.main([*words, f"--out={root / 'built'}"]) == 0
        yield read_built(root / "built", "h100")


class SlowerDevice(SlowDevice):
    """A device on which every call takes 20 ms, so few are timed."""

    def us_between(self, first, second):
        return 20_000.0

    def now(self):
        self.time += 0.02
        return self.time


@pytest.fixture
def bench(monkeypatch):
    """Interprets a launch on the tensors themselves."""

    def enqueued(self, built, nest, machine, sizes):
        program = self.lowered(nest, machine).program

        def launch(*tensors):
            held = dict(zip((p.name for p in program.tensors), (t.numpy() for t in tensors)))
            interpret(program, sizes, held, self.rows(machine), 232448, 0)

        return launch

    monkeypatch.setattr(type(backend("cuda")), "enqueued", enqueued)
    seen = lambda call, inputs: [call(*inputs)] and ["matmul_tf32_0"]  # noqa: E731
    return Bench(Track(MACHINE, "cuda", SlowerDevice(), place="cpu", seen=seen))


def raced(folder, out, stopwatch, seconds=1000.0):
    given = Namespace(backend="cuda", out=out, seconds=seconds)
    rows = []
    every = contest.jobs([SMALL], folder, "cuda")
    contest.run(rows, every, folder, MACHINE, given, stopwatch, lambda: seconds, {"date": "now"})
    return rows


def test_a_row_has_the_fastest_right_candidate_and_what_became_of_the_others(
    folder, bench, tmp_path
):
    rows = raced(folder, tmp_path / "found.json", bench)
    assert [r["shape"] for r in rows] == [SMALL.sizes, SMALL.more[0]]
    for row in rows:
        assert row["correct"] and row["us"] == 20_000.0 and row["candidate"] == "first"
        assert row["own_kernels_only"] and row["baselines_us"]["eager"] > 0
        assert [c["label"] for c in row["candidates"]] == ["first", "second"]
        assert all(c["correct"] and len(c["sha256"]) == 64 for c in row["candidates"])
        assert row["aim"] == 0.95 and row["tflops"] > 0
        assert row["schedule_from"].endswith(f"h200/{SMALL.name}/first-cuda.sched")
    assert json.loads((tmp_path / "found.json").read_text())["rows"] == rows


def test_one_that_is_wrong_or_breaks_its_process_loses_and_is_not_raced_again(
    folder, bench, tmp_path
):
    asked = []

    def stopwatch(job):
        asked.append((job.candidate.label if job.candidate else "", job.row.sizes["K"]))
        if job.candidate and job.candidate.label == "first":
            return Reading(reason="no answer in 25 s")
        return bench(job)

    rows = raced(folder, tmp_path / "found.json", stopwatch)
    assert [r["candidate"] for r in rows] == ["second", "second"]
    assert rows[0]["candidates"][0]["reason"] == "no answer in 25 s"
    assert asked == [("", 32), ("first", 32), ("second", 32), ("", 64), ("second", 64)]


def test_a_candidate_is_checked_at_check_sizes_before_it_is_timed(folder, bench, monkeypatch):
    job = next(j for j in contest.jobs([SMALL], folder, "cuda") if j.candidate)
    run = type(backend("cuda")).run
    spoiled = lambda *a: {n: x + np.float32(x.shape == (7, 5)) for n, x in run(*a).items()}  # noqa: E731
    monkeypatch.setattr(type(backend("cuda")), "run", spoiled)
    with pytest.raises(BackendError, match="M=7, K=33, N=5"):
        bench(job)
    assert bench(replace(job, checked=True)).row["correct"]


def test_nothing_is_begun_when_the_time_is_over(folder, bench, tmp_path):
    assert raced(folder, tmp_path / "found.json", bench, seconds=0.0) == []


def test_files_that_are_not_those_that_were_built_do_not_run(folder, bench, tmp_path):
    file = folder.folder / place(f"{SMALL.name}.first", "cuda") / "launches.json"
    before = file.read_text()
    file.write_text(before + "\n")
    try:
        rows = raced(folder, tmp_path / "found.json", bench)
    finally:
        file.write_text(before)
    assert "launches.json has sha256" in rows[0]["candidates"][0]["reason"]
    assert rows[0]["candidate"] == "second"


def test_the_first_sizes_alone_are_raced_where_that_is_asked(folder):
    few = list(contest.jobs([SMALL], folder, "cuda", 1))
    assert {tuple(j.row.sizes.items()) for j in few} == {tuple(SMALL.sizes.items())}
    assert len(few) == 1 + len(SMALL.candidates("h200", "cuda"))


def test_compiled_baselines_come_last():
    found = [(j.contest.kernel, j.names) for j in late_jobs(asked_contests("conv1d,matmul_f8"))]
    assert found[0] == ("conv1d", ("compile",)) and {k for k, _ in found} == {"conv1d"}
    assert all(not n.startswith("eager") for _, names in found for n in names)


def test_wrong_use_is_told(tmp_path, capsys, folder):
    with pytest.raises(KernelError, match="no contest `fame`"):
        asked_contests("fame")
    words = ["--target=h100", f"--built={folder.folder}", f"--out={tmp_path / 'x.json'}"]
    assert contest.main(words) == 2
    assert "`cutedsl` built nothing there" in capsys.readouterr().err
    assert contest.main([*words, "--backend=cuda"]) == 2
    assert "there is no `h100` here" in capsys.readouterr().err
    assert contest.main([*words[:1], f"--built={tmp_path}", words[2]]) == 2
    assert not (tmp_path / "x.json").exists()


def test_baselines_of_contests_agree():
    """Two forms of one function: a race judges by the one that it times."""
    a, b = torch.randn(8, 16), torch.randn(4, 16)
    torch.testing.assert_close(BASELINES["matmul_tf32"].call(a, b), a @ b.t(), rtol=1e-3, atol=1e-2)
    short = [t.to(torch.float8_e4m3fn) for t in (a, b)]
    wide = [t.double() for t in short]
    found, wanted = (BASELINES["matmul_f8"].call(*given) for given in (short, wide))
    torch.testing.assert_close(found.double(), wanted, rtol=1e-2, atol=1e-2)
