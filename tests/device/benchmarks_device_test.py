"""The documented benchmarks on the GPU, over one row each: nothing else runs meanwhile."""

import json

import pytest

from tests.device.commands import ROOT, Ran, launched, run

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("idle")]


def _rows(ran: Ran, name: str) -> list[dict]:
    ran.require()
    found = json.loads((ran.folder / name).read_text())
    assert found["rows"], ran.err
    return found["rows"]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("benchmarks.starter", ("--kernels=softmax", "--dtypes=f16", "--baselines=eager")),
        ("benchmarks.products", ("--kernels=attention_causal", "--baselines=eager", "--seconds=1")),
    ],
)
def test_a_race(target, home, note, module, words):
    out = "--out=rows.json"
    ran = run(home / module, "-m", module, f"--target={target}", out, *words)
    rows = _rows(ran, "rows.json")
    assert all(row["correct"] and row["own_kernels_only"] and row["us"] > 0 for row in rows)
    note(command=ran.command, us=rows[0]["us"], speedup=rows[0]["speedup"])


def test_the_time_model_is_ranked(target, home, note):
    words = (f"--target={target}", "--out=rank.json", "--schedules=2", "--kernels=softmax")
    ran = run(home / "rank", "-m", "benchmarks.model_rank", *words)
    rows = _rows(ran, "rank.json")
    assert all(row["correct"] is not False for row in rows)
    note(command=ran.command, rows=len(rows))


def test_a_problem_of_kernelbench_is_raced(target, suite, home, note):
    words = (
        f"--target={target}",
        "--out=rows.json",
        "--level=2",
        "--only=76",
        "--work=work",
        "--baselines=",
    )
    where = f"--problems={suite / 'KernelBench'}"
    ran = run(home / "race", "-m", "benchmarks.kernelbench.race", where, *words)
    (row,) = _rows(ran, "rows.json")
    assert row["correct"] and row["own_kernels_only"]
    note(command=ran.command, us=row["us"])


def test_a_problem_of_kernelbench_is_attempted(target, suite, home, note):
    where = f"--problems={suite / 'KernelBench'}"
    words = (f"--target={target}", "--out=rows.json", "--level=1", "--only=23", "--reduced")
    ran = run(home / "attempt", "-m", "benchmarks.kernelbench", where, *words)
    (row,) = _rows(ran, "rows.json")
    assert row["correct"] and row["correct_by"] == "device", row
    note(command=ran.command)


def test_operators_of_aten(target, home, note):
    words = (f"--target={target}", "--out=aten.json", "--only=add,_softmax", "--samples=1")
    ran = run(home / "aten", "-m", "benchmarks.aten", *words)
    rows = _rows(ran, "aten.json")
    assert all((r["verdict"], r["correct_by"]) == ("pass", "device") for r in rows), rows
    note(command=ran.command, rows=len(rows))


def test_a_recommendation_model(target, home, note):
    ran = run(home / "dlrm", "-m", "examples.dlrm", f"--target={target}", "--out=dlrm.json")
    (row,) = _rows(ran, "dlrm.json")
    assert row["correct"] and row["us"] > 0
    note(command=ran.command, us=row["us"], speedup=row["speedup"])


def test_every_record_of_the_target(target, note):
    """What is published is emitted again, builds, and is correct on this GPU."""
    records = sorted(ROOT.glob(f"kernels_generated/*/{target}/record.toml"))
    if not records:
        pytest.skip(f"no record of `{target}` is published")
    with launched() as checks:
        for record in records:
            words = ("kernels_generated/record_check.py", f"--record={record.relative_to(ROOT)}")
            checks.start(record.parts[-3], ROOT, "-m", "pytest", "-q", *words)
        found = {name: checks[name] for name in checks.started}
    note(records=len(found), command=next(iter(found.values())).command)
    assert not {name: ran.out[-600:] for name, ran in found.items() if ran.code}
