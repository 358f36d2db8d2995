"""Tests the commands with a scripted server instead of a model: compare, record, replay.

No figure here is one of a model: the server's answers are prepared, and its recording stays in the
test's folder.
"""

import json
import os
from pathlib import Path

import pytest

from benchmarks.models.__main__ import main
from benchmarks.models.recording import ENDING, read
from testing.cli.variables import variables
from testing.model_server.server import ModelServer

RECORDED = Path(__file__).parent / "recorded"
KERNEL, KEY = "matmul_chain", "sk-0123456789-abcdef"
ANSWER = """+++
words = ["Edit the source `kernel.txt`"]
+++
By hand.

PARAMETER how in (hand, machine)

>>>>>>> FILE kernel.txt
nest of matmul_chain for null, by $how
<<<<<<< END
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    (folder / "answers").mkdir()
    (folder / "answers" / "source.md").write_text(ANSWER)
    for name in ("home", "work"):
        (folder / name).mkdir()
    environ = {**os.environ, **variables(folder / "home", folder / "work"), "OPENAI_API_KEY": KEY}
    with ModelServer(folder=folder / "answers", otherwise="nonsense") as server:
        environ |= {"OPENAI_BASE_URL": server.base_url, "NO_PROXY": "127.0.0.1"}
        words = ["--model", "scripted", "--kernels", KERNEL, "--target", "null", "--seeds", "1"]
        words += ["--evaluations", "20", "--store", str(folder / "s.db")]
        assert main(["compare", *words, "--out", str(folder / "r.json")], environ) == 0
    return folder, environ


def test_a_kernel_is_searched_with_and_without_at_as_many_evaluations(compared):
    folder, _ = compared
    table = json.loads((folder / "r.json").read_text())
    alone, helped = table["rows"]
    assert (alone["model"], helped["model"]) == ("", "scripted")
    assert alone["made"] == helped["made"] == 20 and alone["first_us"] == helped["first_us"]
    assert alone["answers"] is None and helped["answers"] > 0 and helped["steps"] == 0
    assert table["summary"]["scripted"]["blocks"] == 1
    assert table["endpoint"].startswith("http://127.0.0.1")
    assert KEY not in (folder / "r.json").read_text()


def test_a_run_is_recorded_and_replayed_without_the_model(compared, capsys):
    folder, environ = compared
    run = json.loads((folder / "r.json").read_text())["rows"][1]["run"]
    words = ["record", run, "--store", str(folder / "s.db"), "--out", str(folder / "recorded")]
    assert main(words, environ) == 0
    file = folder / "recorded" / f"{run}{ENDING}"
    assert KEY not in file.read_text() and "scripted at http://127.0.0.1" in read(file).title
    alone = {name: value for name, value in environ.items() if not name.startswith("OPENAI")}
    assert main(["replay", str(file)], alone) == 0
    assert "the replay is the same" in capsys.readouterr().out
    other = file.with_stem("other")
    first, *rest = file.read_text().splitlines(keepends=True)
    head = json.loads(first)
    head["told"][-1][1] = 0.5
    other.write_text("".join([json.dumps(head) + "\n", *rest]))
    assert main(["replay", str(other)], alone) == 1
    assert "evaluation 19: " in capsys.readouterr().out


def test_recordings_of_models_are_of_no_server_of_a_test_and_are_replayed():
    """There is none until an endpoint is available (docs/search.md)."""
    for file in sorted(RECORDED.glob(f"*{ENDING}")):
        head = read(file).head
        assert "scripted" not in head["models"] and "127.0.0.1" not in head["endpoint"], file
        assert main(["replay", str(file)]) == 0, f"{file} is of other code: record it again"
