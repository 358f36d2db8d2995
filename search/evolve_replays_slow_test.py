"""A run of every starter kernel with a model is replayed exactly, without the model."""

import json

import pytest

from backends.registry import target
from ir.edits.edits import neighbours
from ir.parse.parse import parse_workload
from search.cli.suite import LIBRARY
from search.store.store import Store
from search.warm_start.autoscheduled import scheduled
from testing.cli.place import Place
from testing.model_server.server import ModelServer

KERNELS = sorted(file.stem for file in LIBRARY.glob("*.kir"))
TARGET = "null"
EVALUATIONS = 10
PARAMETERS = "PARAMETER how in (hand, machine, chance)\n"
SOURCE = "By hand.\n{}>>>>>>> FILE kernel.txt\nnest of {} for null, by {}\n<<<<<<< END\n"


def write_answers(folder):
    """For each kernel two other schedules, a source, and a source with parameters."""
    for name in KERNELS:
        workload = parse_workload((LIBRARY / f"{name}.kir").read_text(), name)
        spec, sizes, machine = workload.spec, workload.tune, target(TARGET)
        first = scheduled(spec, machine, sizes)
        edits = neighbours(spec, first, machine, sizes)
        for number, edit in enumerate((edits[0], edits[-1])):
            words = json.dumps([f"`{name}`", "Edit `schedule.sched`."])
            text = f"{edit}.\n>>>>>>> FILE schedule.sched\n{edit.apply(first)}\n<<<<<<< END\n"
            (folder / f"{name}_{number}.md").write_text(f"+++\nwords = {words}\n+++\n{text}")
        for kind, parts in (("one", ("", name, "one")), ("more", (PARAMETERS, name, "$how"))):
            words = json.dumps([f"`{name}`", "Edit the source `kernel.txt`"])
            text = SOURCE.format(*parts)
            (folder / f"{name}_{kind}.md").write_text(f"+++\nwords = {words}\n+++\n{text}")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The place, and the command's output for each kernel's run."""
    folder = tmp_path_factory.mktemp("answers")
    write_answers(folder)
    place = Place(tmp_path_factory.mktemp("recorded"), TARGET)
    with ModelServer(folder=folder, otherwise=["nonsense", "refusal"]) as server:
        where = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-0"}
        words = ("--model=scripted", "--operators=universal,combine,mutate", "--seed=3")
        code, said, noise = place.run(
            f"--target={TARGET}",
            *words,
            f"--evaluations={EVALUATIONS}",
            "--store=runs.db",
            "--json",
            NO_PROXY="127.0.0.1",
            **where,
        )
    assert code == 0, noise
    return place, {run["kernel"]: run for run in json.loads(said)["runs"]}


def test_every_starter_kernel_was_evolved_with_answers_that_were_taken(recorded):
    _, runs = recorded
    assert sorted(runs) == KERNELS and len(KERNELS) == 14
    models = [run["models"] for run in runs.values()]
    assert all(one["answers"] > one["refused"] for one in models)
    assert sum(one["parameterised"] for one in models) > 5
    assert all(4 < run["evaluations"] <= EVALUATIONS for run in runs.values())


@pytest.mark.parametrize("kernel", KERNELS)
def test_its_replay_is_the_same_to_the_byte(recorded, kernel):
    place, runs = recorded
    name = runs[kernel]["run"]
    code, said, noise = place.run(f"--replay={name}", "--store=runs.db", "--json")
    assert code == 0, noise
    (again,) = json.loads(said)["runs"]
    whole = json.dumps(again).replace(f'"{again["run"]}"', f'"{name}"')
    assert whole == json.dumps(runs[kernel])
    store = Store(str(place.work / "runs.db"))
    first, second = store.load(name), store.load(again["run"])
    store.close()
    assert second.generations == first.generations and second.outcomes == first.outcomes
    assert [c.origin for c in second.graph()] == [c.origin for c in first.graph()]
