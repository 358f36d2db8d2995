"""Tests a race with a fake backend and a fake device, on the CPU."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial

import pytest
import torch

from backends.registry import target
from benchmarks import entrant, race, workshop
from benchmarks.baselines import Baseline
from benchmarks.rehearsal import SlowDevice, TorchBackend
from benchmarks.shapes import Row
from benchmarks.variants import with_dtype
from benchmarks.workshop import built
from testing.samples.samples import spec_of, workload

MACHINE = target("h200")
ROW = Row("softmax", "f32", {"M": 64, "K": 128})
SPEC = workload("softmax").spec
GOOD = "y.copy_(torch.softmax(x, 1))"


@pytest.fixture
def track(tmp_path, monkeypatch):
    # No record or schedule file of the checkout interferes.
    monkeypatch.setattr(workshop, "choose", partial(entrant.choose, root=tmp_path))

    def make(body, seen=("softmax_0",)):
        found = race.Track(
            MACHINE,
            "made_up",
            SlowDevice(),
            place="cpu",
            seen=lambda call, inputs: [call(*inputs)] and list(seen),
        )
        folders[found.seen] = (tmp_path / str(len(folders)), TorchBackend(body))
        return found

    folders.clear()
    return make


folders = {}


def raced(row, spec, names, track, before=None):
    """Races what the track's backend builds."""
    folder, backend = folders[track.seen]
    ours = built(row, spec, MACHINE, backend, folder)
    return race.race(row, spec, ours, names, track, before)


def test_a_good_kernel_has_a_full_row(track):
    made = raced(ROW, SPEC, ["eager"], track(GOOD))
    assert made["correct"] and made["own_kernels_only"] and "reason" not in made
    assert made["us"] == 100.0 and made["baselines_us"]["eager"] > 0
    assert made["rel_err"] < 1e-6 and made["reference_rel_err"] < 1e-6
    assert made["fastest"] == "eager" and made["speedup"] > 0
    assert made["figures"] == {"registers": 40.0}
    assert made["schedule_from"] == "autoschedule" and made["schedule"]
    assert made["second_run"] == "same bits"
    wanted = {
        "kernel",
        "problem",
        "backend",
        "dtype",
        "shape",
        "us",
        "time_kind",
        "baselines_us",
        "roofline_us",
        "rel_err",
        "reference_rel_err",
        "correct",
        "correct_by",
        "own_kernels_only",
        "degenerate",
        "evaluations",
    }
    assert wanted <= set(made)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("pass", "not finite"),
        ("y.copy_(torch.softmax(x, 1) * 1.001)", "root mean square error"),
        ("y.copy_(torch.softmax(x, 1)); y[0, 0] += 1e-5", "element is off|root mean"),
        ("y.copy_(torch.softmax(x, 1)); x.zero_()", "changed its inputs"),
        (
            "y.copy_(torch.softmax(x, 1)); launch.n = getattr(launch, 'n', 0) + 1; "
            "y[0, 0] += 4e-9 * launch.n",
            "runs .* differ",
        ),
        ("raise ValueError('odd')", "ValueError: odd"),
        ("'refuse'", "BackendError: no such thing"),
    ],
)
def test_a_bad_kernel_is_a_row_with_a_reason(track, body, reason):
    made = raced(ROW, SPEC, ["eager"], track(body))
    assert not made["correct"] and made["speedup"] is None

    assert re.search(reason, made["reason"]), made["reason"]
    assert made["baselines_us"]["eager"] > 0


ROWS = spec_of("y[idx[l], d] += g[l, d]", inputs="g: f32[L, D], idx: i32[L]", result="f32[V, D]")
ADD = "y.zero_().index_add_(0, idx.long(), g); launch.n = getattr(launch, 'n', 0) + 1"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("y[0, 0] += 4e-9 * launch.n", ""),
        ("y[0, 0] += 0.1 * (launch.n > 1)", "a second run on the same inputs: .*"),
    ],
)
def test_a_second_run_that_adds_in_another_order_is_judged_by_its_errors(
    track, monkeypatch, more, reason
):
    def add(g, idx):
        return torch.zeros(16, 32, dtype=g.dtype).index_add_(0, idx.long(), g)

    monkeypatch.setitem(race.BASELINES, "f", Baseline(add, rows=False))
    row = Row("f", "f32", {"L": 512, "D": 32, "V": 16})
    made = raced(row, ROWS, [], track(f"{ADD}; {more}", seen=()))
    assert any(d.startswith("atomic(y)") for d in made["schedule"])
    assert made["second_run"] == "within tolerance"
    assert re.fullmatch(reason, made.get("reason", "")), made.get("reason")
    assert made["correct"] == (not reason)


def test_kernels_of_others_are_a_failure(track):
    made = raced(ROW, SPEC, [], track(GOOD, seen=("softmax_0", "cublas_gemm")))
    assert not made["correct"] and "cublas_gemm" in made["reason"]
    assert made["own_kernels_only"] is False


def test_where_nobody_can_look_nothing_is_claimed(track):
    made = raced(ROW, SPEC, [], track(GOOD, seen=()))
    assert made["correct"] and made["own_kernels_only"] is None


def test_a_time_below_the_bound_is_refused(track):
    slow = replace(
        MACHINE,
        spaces={
            **MACHINE.spaces,
            "global": replace(MACHINE.spaces["global"], bytes_per_second=1.0),
            "cache": replace(MACHINE.spaces["cache"], bytes=1),
        },
    )
    made = raced(ROW, SPEC, [], replace(track(GOOD), machine=slow))
    assert not made["correct"] and "below the possible" in made["reason"]


def test_a_baseline_that_fails_is_recorded(track, monkeypatch):
    def fail(*_):
        raise RuntimeError("the compiler is ill\nand more")

    monkeypatch.setattr(race, "compiled", lambda call, mode: fail)
    made = raced(ROW, SPEC, ["eager", "compile"], track(GOOD))
    assert made["baselines_us"]["compile"] is None and made["fastest"] == "eager"
    assert made["failures"] == {"compile": "RuntimeError: the compiler is ill"}
    again = raced(ROW, SPEC, ["max_autotune"], track(GOOD), before=made)
    assert set(again["baselines_us"]) == {"eager", "compile", "max_autotune"}


def test_a_baseline_has_a_limit_of_time(track, monkeypatch):
    monkeypatch.setattr(race, "compiled", lambda call, mode: lambda *_: time.sleep(7200))
    made = raced(ROW, SPEC, ["compile"], replace(track(GOOD), seconds=0.2))
    assert made["failures"]["compile"].startswith("OutOfTime")


def test_a_baseline_cannot_leave_tf32_on(track):
    torch.backends.cuda.matmul.allow_tf32 = True
    raced(ROW, SPEC, ["eager"], track(GOOD))
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("kernel", ["conv1d", "map_id", "pffn", "embedding_bag", "attention"])
def test_rows_of_other_kernels_are_raced_alike(track, kernel, monkeypatch):
    from benchmarks.baselines import BASELINES

    known = workload(kernel)
    spec = with_dtype(known.spec, "f32")
    names = ", ".join(t.name for t in spec.inputs)
    body = (
        f"from benchmarks.baselines import BASELINES; "
        f"{spec.outputs[0].name}.copy_(BASELINES['{kernel}'].call({names}))"
    )
    eager = [n for n in BASELINES[kernel].names() if n.startswith("eager")]
    made = raced(Row(kernel, "f32", known.checks[-1]), spec, eager, track(body, seen=()))
    assert made["correct"], made["reason"]
    assert all(made["baselines_us"][n] > 0 for n in eager), made["failures"]


def test_a_row_uses_its_own_schedule_then_the_record_then_the_autoschedule(tmp_path):
    text = "# evaluations: 12\nschedule(softmax)\ntile(m, size=2)\nplace(m.outer, level=grid)\n"
    found = entrant.choose(ROW, SPEC, MACHINE, tmp_path)
    assert found.origin == "autoschedule" and found.evaluations == 0
    record = tmp_path / "kernels_generated/softmax/h200/schedule.sched"
    record.parent.mkdir(parents=True)
    record.write_text(text.replace("size=2", "size=4"))
    assert entrant.choose(ROW, SPEC, MACHINE, tmp_path).origin.startswith("kernels_generated")
    record.write_text(text.replace("size=2", "size=65536"))
    own = tmp_path / f"benchmarks/schedules/h200/{ROW.key}.sched"
    own.parent.mkdir(parents=True)
    own.write_text(text)
    found = entrant.choose(ROW, SPEC, MACHINE, tmp_path)
    assert found.origin.endswith(f"{ROW.key}.sched") and found.evaluations == 12
