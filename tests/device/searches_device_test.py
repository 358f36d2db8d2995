"""`evolve` on a GPU machine: kernels, workloads, tasks and whole modules, measured on the GPU."""

import json

import pytest

from benchmarks.kernelbench.judged import CORRECT_TRIALS
from tests.device.commands import Launched, Ran, run
from tests.device.searches import EVALUATIONS, failures, problem_names

pytestmark = pytest.mark.device


def _measured(ran: Ran, kernels: int = 1) -> list[dict]:
    """The runs of a search, each with a winner that was compared and timed on the GPU. kernels: of a
    network, which share their evaluations by their times, so that some may get none."""
    runs = ran.json["runs"]
    for each in runs:
        assert each["correct_by"] == "device" and each["time_kind"] == "measured", each
        assert each["first_us"], failures(ran)
        assert 0 < each["best_us"] <= each["first_us"]
    made = [each["evaluations"] for each in runs]
    assert sum(made) == EVALUATIONS * kernels and all(made), made
    return runs


def _of_problem(ran: Ran) -> dict:
    """The totals of a problem on its one target."""
    (total,) = ran.json["problem"]["targets"]
    return total


def _gains(ran: Ran) -> dict:
    total = _of_problem(ran)
    first, best = total["first_us"], total["best_us"]
    return {
        "command": ran.command,
        "seconds": round(ran.seconds, 1),
        "kernels": total["kernels"],
        "steps": total["steps"],
        "first_us": first,
        "best_us": best,
        "gain": first / best,
        "failures": failures(ran),
    }


@pytest.mark.parametrize("name", ["kernel", "kernel file"])
def test_a_kernel(searched: Launched, name, note):
    ran = searched[name]
    (found,) = _measured(ran)
    note(command=ran.command, first_us=found["first_us"], best_us=found["best_us"])


def test_several_shapes_share_kernels(searched: Launched, note):
    ran = searched["several shapes"]
    (found,) = _measured(ran)
    note(command=ran.command, first_us=found["first_us"], best_us=found["best_us"])
    assert len(found["shapes"]) == 2 and found["dispatch"]
    assert len(found["held_out"]["shapes"]) == 1


def test_a_task_and_its_tests(searched: Launched, note):
    ran = searched["task"]
    of_target = _of_problem(ran)
    _measured(ran, of_target["kernels"])
    note(**_gains(ran))
    assert len(of_target["results"]) == 5
    assert not [each for each in of_target["results"] if each["fault"]]


def test_a_module_with_an_operator_left_to_pytorch(searched: Launched, note):
    ran = searched["left to PyTorch"]
    of_target = _of_problem(ran)
    _measured(ran, of_target["kernels"])
    assert of_target["left_to_torch"] == ["tanh"] and not of_target["lacking"]
    note(**_gains(ran))


def test_a_page_and_a_timeline(searched: Launched, note):
    ran = searched["page and timeline"]
    _measured(ran)
    note(command=ran.command)
    assert "<html" in (ran.folder / "report.html").read_text()
    events = json.loads((ran.folder / "trace.json").read_text())["traceEvents"]
    assert events and all(event["dur"] > 0 for event in events)


@pytest.mark.parametrize("name", problem_names())
def test_a_problem(searched: Launched, name, note):
    ran = searched[name]
    _measured(ran, _of_problem(ran)["kernels"])
    note(**_gains(ran))
    assert (ran.folder / "new.py").is_file()


def test_a_stored_run_goes_on(target, idle, home, note):
    words = ("-m", "search.evolve", "--json", "--store=runs.db", "--no-promote")
    folder = home / "stored"
    first = run(folder, *words, f"--target={target}", "--kernel=softmax", "--evaluations=4")
    (began,) = first.json["runs"]
    again = run(folder, *words, f"--resume={began['run']}", "--evaluations=8")
    (ended,) = again.json["runs"]
    note(command=again.command)
    assert (began["evaluations"], ended["evaluations"]) == (4, 8)
    assert ended["best_us"] <= began["best_us"]


@pytest.fixture(scope="session")
def verdicts(searched: Launched, idle, suite, home) -> dict:
    """What KernelBench's own judge says of every solution file."""
    pairs = {
        name: [str(suite / "KernelBench" / f"{name}.py"), str(searched[name].folder / "new.py")]
        for name in problem_names()
        if (searched[name].folder / "new.py").is_file()
    }
    asked = {"suite": str(suite), "pairs": pairs}
    home.joinpath("pairs.json").write_text(json.dumps(asked))
    return run(home / "judge", "-m", "tests.device.harness", str(home / "pairs.json")).json


@pytest.mark.parametrize("name", problem_names())
def test_a_solution_passes_the_suites_own_judge(verdicts, name, note):
    found = verdicts[name]
    note(judge=found)
    assert found["compiled"] and found["correct"], found
    assert found["trials"] == f"({CORRECT_TRIALS} / {CORRECT_TRIALS})"
