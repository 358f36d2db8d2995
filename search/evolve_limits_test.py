"""If models are useless or their budget is used up, the run reports it, keeps its results and ends
normally."""

import json
import re

import pytest

from search.llm.exchange import ModelError, reply_of
from search.store.store import Store
from testing.cli.place import Place
from testing.model_server.server import ModelServer

KEY = "sk-0123456789-abcdef"
RUN = "rows-null-1"
WORDS = (
    "--target=null",
    "--kernel=rows.kir",
    "--shape=M=100,K=300,N=70",
    "--model=tiny",
    "--operators=universal,mutate",
    "--store=runs.db",
    "--seed=1",
)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def at(server, key=KEY):
    """Environment of a run that asks a server."""
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": key, "NO_PROXY": "127.0.0.1"}


def kept(place, found):
    """The replies that are stored; all that was told is, and how it ended."""
    store = Store(str(place.work / "runs.db"))
    record, stored = store.load(found["run"]), store.exchanges(found["run"])
    store.close()
    assert len(record.outcomes) == found["evaluations"]
    (ended,) = [event.detail for event in record.events if event.kind == "stopped"]
    assert ended == found["stopped_because"]
    return [reply_of(each.reply) for each in stored]


def ended(place, server, *words, **more):
    """Exit code, the run in the JSON object, the stored replies, stderr."""
    code, out, err = place.run_here(*WORDS, "--json", *words, **at(server, **more))
    (found,) = json.loads(out)["runs"]
    assert found["best_us"] and "Traceback" not in err, "what was found is shown"
    return code, found, kept(place, found), err


def test_a_wrong_key_ends_the_run_and_the_message_names_the_variable(place):
    with ModelServer(otherwise="nonsense", key="sk-another") as server:
        more = ("--evaluations=20", "--report=page.html")
        code, found, replies, err = ended(place, server, *more)
        assert len({seen.answer for seen in server.seen}) == 1
    assert code == 2
    assert "status 401: it does not take the key in OPENAI_API_KEY" in found["stopped_because"]
    assert err.count("\nevolve: ") == 2, "the page, and the fault"
    assert f"evolve: {server.base_url}: the endpoint answers with status 401" in err
    assert replies and {reply.kind for reply in replies} == {"key"}
    assert found["models"]["unanswered"] == len(replies) and not found["models"]["answers"]
    files = [file for file in place.folder.rglob("*") if file.is_file()]
    assert (place.work / "page.html") in files
    assert KEY not in err and not [f for f in files if KEY.encode() in f.read_bytes()]


@pytest.mark.parametrize(
    "operators, ends",
    [
        ("universal,mutate", "12 evaluations"),
        pytest.param("universal", "nothing new", marks=pytest.mark.slow),
    ],
)
def test_a_model_that_only_talks_nonsense_is_counted_as_refused(place, operators, ends):
    with ModelServer(otherwise="nonsense") as server:
        more = ("--evaluations=12", f"--operators={operators}")
        code, found, replies, _ = ended(place, server, *more)
    assert code == 0 and found["stopped_because"].startswith(ends)
    models = found["models"]
    assert models["answers"] == models["refused"] == len(replies) == len(server.seen) > 0
    code, out, _ = place.run_here(f"--resume={RUN}", "--store=runs.db", **at(server))
    words = f"{models['answers']} answers, {models['refused']} of them refused"
    assert code == 0 and f"rows on null, models: {models['tokens']} tokens" in out and words in out


PRICED = ("--price=tiny=1/2", "--max-cost=0.05")
BUDGETS = [
    pytest.param(
        ("--max-tokens=30000",),
        r"does not allow a request .* of 30000 tokens are spent",
        id="tokens",
        marks=pytest.mark.slow,
    ),
    pytest.param(PRICED, r"does not allow a request .* of 0\.05 is paid", id="money"),
    pytest.param(
        ("--max-tokens=1000",),
        r"request of .*: 0 of 1000 tokens are spent",
        id="tokens to the last",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize("words, said", BUDGETS)
def test_a_budget_that_is_used_up_ends_the_run_in_order(place, words, said):
    with ModelServer(otherwise="nonsense") as server:
        code, found, replies, err = ended(place, server, "--evaluations=40", *words)
    assert code == 0 and re.search(said, found["stopped_because"]), found["stopped_because"]
    models = found["models"]
    assert models["tokens"] <= 30000 if "tokens" in said else models["cost"] <= 0.05
    assert (models["cost"] is None) == ("--price" not in words[0] and models["tokens"] > 0)
    assert models["unanswered"] == sum(isinstance(r, ModelError) for r in replies) > 0
    code, again, _ = place.run_here(f"--replay={RUN}", "--store=runs.db", "--json", words[0])
    assert code == 0 and json.loads(again)["runs"][0]["models"] == models


@pytest.mark.slow
def test_a_run_whose_budget_is_used_up_goes_on_with_more(place):
    with ModelServer(otherwise="nonsense") as server:
        words = ("--evaluations=12", "--max-tokens=30000", "--operators=universal")
        _, found, _, _ = ended(place, server, *words)
        more = (f"--resume={RUN}", "--store=runs.db", "--json", "--max-tokens=900000")
        code, out, _ = place.run_here(*more, **at(server))
    (longer,) = json.loads(out)["runs"]
    assert code == 0 and longer["stopped_because"].startswith("nothing new")
    assert longer["models"]["tokens"] > 30000 > found["models"]["tokens"]


def test_an_outage_does_not_end_a_search_and_takes_no_tokens(place):
    outage = ("empty", "dead", "garbage", "fault", "error_in_200")
    with ModelServer(otherwise=outage) as server:
        code, found, replies, _ = ended(place, server, "--evaluations=8")
    assert code == 0 and found["stopped_because"].startswith("8 evaluations")
    models = found["models"]
    assert replies and models["unanswered"] == len(replies) == sum(models["failed"].values())
    assert (models["answers"], models["refused"], models["tokens"]) == (0, 0, 0)
    code, again, _ = place.run_here(f"--replay={RUN}", "--store=runs.db", "--json")
    assert code == 0 and json.loads(again)["runs"][0]["models"] == models


def test_a_search_ends_at_its_time_while_its_only_model_is_silent(place):
    with ModelServer(otherwise="slow") as server:
        more = ("--operators=universal", "--seconds=6")
        code, found, replies, _ = ended(place, server, *more)
    assert code == 0 and found["stopped_because"] == "the 6 s it was given are over"
    assert {reply.kind for reply in replies} <= {"timeout", "gone"}
    assert found["models"]["tokens"] == 0


def test_without_a_key_it_is_said_once_and_the_search_goes_on(place):
    kernels = ("--kernel=rows.kir", "--kernel=scale.kir", "--evaluations=4", "--model=tiny")
    code, out, err = place.run_here("--target=null", "--json", "--store=runs.db", *kernels)
    runs = json.loads(out)["runs"]
    assert code == 0 and [run["evaluations"] for run in runs] == [4, 4]
    assert err.count("no model is used: OPENAI_API_KEY is not set") == 1
    assert not any("models" in run for run in runs)


REFUSED = {
    "unknown policy": (("--policy=gredy",), ["--policy", "`gredy`", "greedy"]),
    "unknown operator": (("--operators=univers",), ["--operators", "`univers`", "universal"]),
    "no evaluations": (("--evaluations=0",), ["--evaluations", "`0`", "from 1"]),
    "no tokens": (("--max-tokens=0",), ["--max-tokens", "`0`", "from 1"]),
    "no money": (("--max-cost=0",), ["--max-cost", "`0`", "positive"]),
    "a price that is not known": (
        ("--max-cost=1", "--price=other=1/2"),
        ["--max-cost", "what `tiny` costs", "--price=NAME"],
    ),
    "a price that is none": (("--price=tiny=cheap",), ["--price", "`tiny=cheap`"]),
    "a weight that is none": (("--model=tiny2:-1",), ["--model", "`tiny2:-1`", "positive"]),
}


@pytest.mark.parametrize("words, said", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_kept(place, words, said):
    with ModelServer(otherwise="nonsense") as server:
        code, out, err = place.run_here(*WORDS, *words, **at(server))
        assert not server.seen
    assert (code, out) == (2, "") and err.startswith("evolve: ") and err.count("evolve: ") == 1
    assert all(word in err for word in said), err
    assert place.new_files() == []
