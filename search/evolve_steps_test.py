"""A model compiles, checks, profiles and repairs drafts before it answers, through the command."""

import json
from pathlib import Path

import pytest

from search.llm.exchange import is_step
from search.store.store import Store
from testing.cli.place import Place
from testing.model_server.scripted import Scripted, scripted
from testing.model_server.server import ModelServer

ANSWERS = Path(__file__).parent / "testdata" / "rows"
KEY = "sk-0123456789-abcdef"
RUN = "rows-null-1"
WRONG, RIGHT = (
    scripted(ANSWERS / f"{name}.md").text for name in ("source_not_a_nest", "source_by_hand")
)
STEPS = (("compile", WRONG), ("check", RIGHT), ("profile", RIGHT), ("read", "interface"))
TOLD = ("It failed at build (", "its results are right (by emulator)", "It takes ", "interface")


def by_calls():
    return [
        Scripted(name, calls=({"name": name, "arguments": json.dumps({"it": text})},))
        for name, text in STEPS
    ]


def by_text():
    texts = [
        f"STEP {name} {text}" if name == "read" else f"STEP {name}\n{text}" for name, text in STEPS
    ]
    return ["no_tools", *(Scripted("step", text) for text in texts)]


@pytest.mark.parametrize("steps", [by_calls, pytest.param(by_text, marks=pytest.mark.slow)])
def test_a_draft_is_compiled_checked_profiled_and_repaired(steps, tmp_path):
    place = Place(tmp_path, "null")
    words = ("--kernel=rows.kir", "--target=null", "--model=tiny", "--seed=4")
    words += ("--operators=universal", "--requests=1", "--evaluations=3", "--store=runs.db")
    order = [*steps(), Scripted("answer", RIGHT)]
    with ModelServer(order, folder=ANSWERS) as server:
        where = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        code, said, noise = place.run_here(*words, "--json", **where)
    assert code == 0, noise
    results = [seen.body["messages"][-1] for seen in server.seen[-4:]]
    assert len(server.seen) == len(order)
    for result, told in zip(results, TOLD, strict=True):
        assert told in result["content"]
        assert result["role"] == ("tool" if steps is by_calls else "user")
    assert ("tools" in server.seen[-1].body) == (steps is by_calls)
    (run,) = json.loads(said)["runs"]
    assert run["models"]["steps"] == 4 and run["models"]["answers"] == 5
    assert run["operators"][0]["children"] == 1 and run["evaluations"] == 3
    store = Store(str(place.work / "runs.db"))
    stored = [e for e in store.exchanges(RUN) if is_step(e.request)]
    assert len(stored) == 4 and KEY not in "".join(e.request + e.reply for e in stored)
    code, again, noise = place.run_here(f"--replay={RUN}", "--store=runs.db", "--json")
    assert code == 0 and again.replace("rows-null-2", RUN) == said, noise
    assert [e.reply for e in store.exchanges("rows-null-2") if is_step(e.request)] == [
        e.reply for e in stored
    ]
    store.close()
    files = [file for file in place.folder.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
