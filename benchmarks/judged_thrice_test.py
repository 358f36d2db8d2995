"""Tests rows that are judged three times: how they are divided among GPUs, and runs that end
early."""

import json
from argparse import Namespace

import pytest

from benchmarks import judged_thrice
from benchmarks.judged_thrice import main, shared_out
from benchmarks.starter import asked_rows

HEAD = {"command": "c", "date": "d", "machine": "m", "driver": "1", "versions": {"torch": "2"}}


def test_gpus_have_about_as_many_contenders_and_each_row_one_gpu():
    rows = asked_rows("", judged_thrice.DTYPES)
    parts = shared_out(rows, 4, "")
    assert sorted(r.key for part in parts for r in part) == sorted(r.key for r in rows)
    assert len(rows) >= 20 and all(5 <= len(part) <= 8 for part in parts)
    assert len(shared_out(rows[:2], 4, "")) == 2


@pytest.fixture
def thrice(monkeypatch, tmp_path, capsys):
    """Runs the command with fake runs that write files.

    speed: returns the speed-up of a row in a run on a GPU, or None if the run has no such row.
    """

    def run(speed, *words):
        def ran(asked, gpu, keys, seconds, out):
            number = int(out.stem[-1])
            rows = []
            for row in asked_rows("", "", ",".join(keys)):
                ratio = speed(row, number, gpu)
                if ratio:
                    rows.append(
                        {
                            "kernel": row.kernel,
                            "dtype": row.dtype,
                            "shape": dict(row.sizes),
                            "source": "s",
                            "fastest": "eager",
                            "us": 1.0,
                            "baselines_us": {"eager": ratio},
                            "speedup": ratio,
                        }
                    )
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps({**HEAD, "summary": {}, "rows": rows}))

        monkeypatch.setattr(judged_thrice, "_run", ran)
        out = tmp_path / "thrice.json"
        given = ["--target=h200", f"--out={out}", f"--work={tmp_path / 'work'}", *words]
        code = main(given)
        return code, json.loads(out.read_text()) if out.exists() else None, capsys.readouterr()

    return run


def test_all_rows_of_all_gpus_are_compared(thrice):
    code, made, said = thrice(lambda row, number, gpu: 2.0 + 0.01 * number, "--gpus=4")
    assert code == 0 and "25 of 25 rows within 2%" in said.out
    assert made["rows"][0]["speedups"] == [2.01, 2.02, 2.03] and made["not_reached"] == []
    assert made["command"] == (
        "python3 -m benchmarks.judged_thrice --target=h200 --gpus=4 --dtypes=f16,bf16,i32 --processes=8"
    )


def test_rows_that_a_run_lacks_are_named_and_a_wide_one_shows(thrice):
    def speed(row, number, gpu):
        if row.kernel == "cumsum" and number == 2:
            return None
        return 2.0 + (0.1 * number if row.kernel == "softmax" else 0.0)

    code, made, said = thrice(speed, "--gpus=2", "--dtypes=f16", "--kernels=softmax,cumsum")
    assert code == 1 and "0 of 1 rows within 2%" in said.out
    assert [name.split("__")[0] for name in made["not_reached"]] == ["cumsum"]


def test_what_was_never_judged_thrice_is_told(thrice):
    code, made, said = thrice(lambda row, number, gpu: None, "--kernels=softmax")
    assert code == 2 and made is None and "judged nothing" in said.err
    code, made, said = thrice(lambda row, number, gpu: 2.0, "--gpus=0")
    assert code == 2 and "--gpus" in said.err


def test_a_run_says_which_gpu_and_rows_it_has(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        judged_thrice.subprocess, "run", lambda command, **more: seen.append((command, more))
    )
    asked = Namespace(target="h200", row_seconds=45, baselines="eager", schedules="", processes=4)
    judged_thrice._run(asked, 3, ["a", "b"], 100.0, tmp_path / "x" / "r.json")
    ((command, more),) = seen
    assert {"--rows=a,b", "--baselines=eager", "--processes=4"} <= set(command)
    assert more["env"]["CUDA_VISIBLE_DEVICES"] == "3"
