"""Models through the command, over loopback: a whole run, its replay without network, kills.

The server's answers are drawn by the request. Which answer comes first is not the same each time, and
what is asked next depends on it: a run is the same again only by its stored order.
"""

import json
import re
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from search.core.settings import REQUESTS
from search.llm.exchange import Answer, refusal_of, reply_of, request_of
from search.prompt.regions import first_regions
from search.store.store import Store
from testing.cli.place import Place
from testing.model_server.server import ModelServer

ANSWERS = Path(__file__).parent / "testdata" / "rows"
GOLDEN = "search/golden"
KEY = "sk-0123456789-abcdef"
RUN = "rows-null-1"
PASSING = ("wait", "fault")  # these take no tokens
WORDS = (
    "--kernel=rows.kir",
    "--shape=M=100,K=300,N=70",
    "--model=tiny",
    "--evaluations=72",
    "--coach",
    "--operators=universal,combine,mutate",
    "--seed=7",
    "--target=null",
    "--json",
)


def at(server, key=KEY):
    """Environment of a run that asks a server."""
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": key, "NO_PROXY": "127.0.0.1"}


def served(order=()):
    return ModelServer(order, folder=ANSWERS, otherwise="nonsense")


@dataclass
class Whole:
    """A run that asked a server."""

    place: Place
    said: str  # stdout
    noise: str  # stderr
    seen: tuple  # requests, in order

    @property
    def found(self):
        (run,) = json.loads(self.said)["runs"]
        return run

    @property
    def exchanges(self):
        return exchanges(self.place, RUN)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("whole"), "null")
    with served(PASSING) as server:
        more = ("--store=runs.db", "--report=page.html")
        code, said, noise = place.run_here(*WORDS, *more, **at(server))
    assert code == 0, noise
    return Whole(place, said, noise, server.seen)


def load(place, run):
    store = Store(str(place.work / "runs.db"))
    record = store.load(run)
    store.close()
    return record


def exchanges(place, run):
    store = Store(str(place.work / "runs.db"))
    found = store.exchanges(run)
    store.close()
    return [(request_of(e.request), reply_of(e.reply)) for e in found]


def test_a_run_with_answers_of_every_kind_ends_in_order(whole):
    kinds = Counter(seen.answer for seen in whole.seen)
    drawn = {file.stem for file in ANSWERS.iterdir()} - {"coach_sharper", "coach_shorter"}
    assert set(kinds) > set(PASSING) and len(drawn - set(kinds)) < 4, "drawn by chance"
    assert whole.found["evaluations"] == 72 and "72 evaluations" in whole.found["stopped_because"]
    assert "status 429" in whole.noise and "status 500" in whole.noise


def test_every_exchange_is_stored(whole):
    answered = [seen for seen in whole.seen if seen.answer not in PASSING]
    stored = whole.exchanges
    assert all(isinstance(reply, Answer) for _, reply in stored)
    assert Counter(seen.prompt for seen in answered) == Counter(
        "\n".join(m.content for m in request.messages) for request, _ in stored
    )


def test_no_two_prompts_are_the_same(whole):
    """For any results of the others; those without an answer are separate, because they are sent
    again."""
    sent = Counter(seen.prompt for seen in whole.seen if seen.answer not in PASSING)
    assert len(sent) >= 50 and set(sent.values()) == {1}


def test_what_models_took_and_what_came_of_it_is_said(whole):
    models, stored = whole.found["models"], whole.exchanges
    assert models["answers"] == len(stored) and models["unanswered"] == 0
    assert models["tokens"] == sum(r.tokens_in + r.tokens_out for _, r in stored)
    assert models["cost"] is None, "no price was given"
    made = made_by_models(whole)
    taken = len(made) + len(models["prompts"]) - 1
    assert models["refused"] == len(refused(whole)) <= len(stored) - taken
    by_name = {row["operator"]: row["children"] for row in whole.found["operators"]}
    assert by_name["universal"] > 1 and sum(by_name.values()) == 72 - 2


def refused(whole):
    """Why answers were rejected, as stored with them."""
    store = Store(str(whole.place.work / "runs.db"))
    found = [why for each in store.exchanges(RUN) if (why := refusal_of(each.reply))]
    store.close()
    return found


WRONG = {  # answers that are always invalid
    "nonsense",
    "schedule_half_a_block",
    "schedule_unknown_verb",
    "equations_wrong_index",
    "refusal_of_source",
}


def test_answers_are_refused_for_a_reason_that_is_stored(whole):
    wrong = sum(seen.answer in WRONG for seen in whole.seen)
    assert 0 < wrong <= len(refused(whole))
    assert {"it was tried before", "the edits change nothing"} < set(refused(whole))


def made_by_models(whole):
    record = load(whole.place, RUN)
    return [c for g in record.generations for c in g if c.origin.prompt]


def test_children_of_models_are_in_the_store_with_their_reasons(whole):
    made = made_by_models(whole)
    assert {c.origin.operator for c in made} == {"universal", "combine"}
    outcomes = load(whole.place, RUN).outcomes
    by_reason = {c.origin.note: c for c in made if c.key in outcomes}
    said = {  # another operator may have made some of these before
        "Wider tiles read x less often.": ("schedule", "tile(n, size=32)"),
        "Load further ahead.": ("schedule", "pipeline(x, stages=3)"),
        "Rows side by side too.": ("schedule", "tile(m, size=32)"),
        "Read x once, in order.": ("variant", "p[m, k]"),
        "The weights first.": ("variant", "w[k, n] * x[m, k]"),
        "The same, by hand.": ("source", "by hand"),
    }
    found = [why for why in said if why in by_reason]
    assert len(found) > 1
    for why in found:
        text, words = said[why]
        assert words in getattr(by_reason[why], text)
    wrong = outcomes[by_reason["Something else."].key]
    assert wrong.stage == "build" and "a nest starts with" in wrong.reason


def test_what_was_wrong_went_back_to_the_model(whole):
    back = [s.body["messages"][-1]["content"] for s in whole.seen if len(s.body["messages"]) > 2]
    reasons = {
        "`plaec`",
        "`q`",
        "the answer has no edit",
        "where `=======` was expected",
        "it was tried before",
    }
    told = {reason for reason in reasons if any(reason in text for text in back)}
    assert len(told) >= 3, "drawn by chance: an answer of a kind may never come"


def test_children_after_the_coach_are_made_under_its_version(whole):
    first, made, *_ = whole.found["models"]["prompts"]
    assert first["digest"] == first_regions().digest == made["parent"]
    told = load(whole.place, RUN).outcomes
    under = [c for c in made_by_models(whole) if c.origin.prompt == made["digest"]]
    assert len([c for c in under if c.key in told]) == made["children"] and under
    at_coach = next(n for n, seen in enumerate(whole.seen) if seen.answer.startswith("coach"))
    new = {
        "coach_shorter": "Do not repeat what was tried.",
        "coach_sharper": "Tile the rows, and load ahead.",
    }
    words = f"\n\n{new[whole.seen[at_coach].answer]}"
    assert not any(words in seen.prompt for seen in whole.seen[:at_coach])
    assert any(words in seen.prompt for seen in whole.seen[at_coach + 1 :])


def test_the_coachs_first_version_is_used_within_32_evaluations(whole):
    """For any results of its first answers, most of which are rejected here."""
    version = whole.found["models"]["prompts"][1]["digest"]
    under = {c.key for c in made_by_models(whole) if c.origin.prompt == version}
    told = 0
    for event in load(whole.place, RUN).events:
        if event.key in under or (event.kind == "took" and version in event.detail):
            break
        told += event.kind == "told"
    assert told < 32


def test_the_page_says_it_too(whole):
    page = (whole.place.work / "page.html").read_text()
    assert "Operators and models" in page and "at a cost that is not known" in page
    assert whole.found["models"]["prompts"][1]["digest"] in page


def test_the_key_is_nowhere(whole):
    assert all(seen.authorization == f"Bearer {KEY}" for seen in whole.seen)
    assert KEY not in whole.said and KEY not in whole.noise
    files = [file for file in whole.place.folder.rglob("*") if file.is_file()]
    assert {"runs.db", "page.html"} < {file.name for file in files}
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_replay_without_network_is_the_same_to_the_byte(whole):
    code, said, noise = whole.place.run_here(f"--replay={RUN}", "--store=runs.db", "--json")
    assert code == 0, noise
    name = json.loads(said)["runs"][0]["run"]
    assert name != RUN and said.replace(f'"{name}"', f'"{RUN}"') == whole.said
    first, again = load(whole.place, RUN), load(whole.place, name)
    assert again.generations == first.generations and again.outcomes == first.outcomes
    assert by_request(exchanges(whole.place, name)) == by_request(whole.exchanges)


def by_request(found):
    return {request.digest: reply for request, reply in found}


def test_streams_that_break_off_are_asked_for_again_and_counted(tmp_path):
    place = Place(tmp_path, "null")
    with served(["cut", "broken"]) as server:
        words = (*WORDS, "--store=runs.db", "--evaluations=12")
        code, said, noise = place.run_here(*words, **at(server))
    assert code == 0 and "broke off after 24 characters; attempt 2" in noise
    replies = [reply for _, reply in exchanges(place, RUN)]
    assert len(replies) == len(server.seen) - 2
    assert {r.usage for r in replies if r.tokens_out} == {"reported"}, "no stream that broke off"
    code, again, _ = place.run_here(f"--replay={RUN}", "--store=runs.db", "--json")
    assert code == 0 and again.replace("rows-null-2", RUN) == said


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), ("--shape=B=16,U=8",)])
def test_sizes_in_another_order_than_the_signature_are_replayed_and_go_on(shape, tmp_path):
    place = Place(tmp_path, "null")
    words = ("--kernel=map_id", *shape, "--model=tiny", "--operators=universal,mutate")
    kept = ("--store=runs.db", "--json")
    with served() as server:
        more = ("--target=null", "--seed=7", "--evaluations=10")
        code, said, noise = place.run_here(*words, *more, *kept, **at(server))
        assert code == 0 and server.seen, noise
    code, again, noise = place.run_here("--replay=map_id-null-1", *kept)
    assert code == 0 and again.replace("map_id-null-2", "map_id-null-1") == said, noise
    code, again, noise = place.run_here("--resume=map_id-null-1", *kept, OPENAI_API_KEY=KEY)
    assert code == 0 and again == said, noise


@pytest.mark.slow
def test_a_run_killed_twice_goes_on_in_its_order_and_is_replayed_whole(tmp_path):
    place = Place(tmp_path, "null")
    go_on = (f"--resume={RUN}", "--store=runs.db", "--json")
    told = []
    with served() as server:
        start = (*WORDS, "--store=runs.db", "--evaluations=40")
        for words, count in ((start, 12), (go_on, 16)):
            dies = place.signalled(signal.SIGKILL, count)
            code, _, _ = place.run(*words, **at(server), **dies)
            assert code == -signal.SIGKILL
            keys = [e.key for e in load(place, RUN).events if e.kind == "told"]
            assert keys[: len(told)] == told
            told = keys
        assert place.evaluated("runs.db") == 28
        code, said, noise = place.run_here(*go_on, **at(server))
    assert code == 0 and "goes on" in noise
    keys = [e.key for e in load(place, RUN).events if e.kind == "told"]
    assert len(keys) == len(set(keys)) == 40 and keys[: len(told)] == told
    assert place.evaluated("runs.db") == 40, "what was stored is not evaluated again"
    code, again, _ = place.run_here(f"--replay={RUN}", "--store=runs.db", "--json")
    assert code == 0 and again.replace("rows-null-2", RUN) == said


@pytest.fixture(scope="module")
def first_prompts(tmp_path_factory):
    """Those that are written while only the first candidates are known."""
    place = Place(tmp_path_factory.mktemp("first"), "null")
    with ModelServer(folder=ANSWERS, otherwise="nonsense", gather=REQUESTS) as server:
        words = (*WORDS, "--operators=universal", f"--evaluations={2 + REQUESTS}", "--no-store")
        code, _, noise = place.run_here(*words, **at(server))
    assert code == 0, noise
    return [seen.body["messages"] for seen in server.seen[:REQUESTS]]


def test_the_prompts_are_golden_texts(whole, first_prompts, golden):
    """The shortest for each surface, what follows a refusal, and the coach's.

    Of the knowledge base, the source and the coach's figures only the places are kept: any new
    document may be retrieved, what a backend emits is for its own tests, and what a search comes
    to for others.
    """
    prompts = [seen.body["messages"] for seen in whole.seen]
    coaching = [m for m in prompts if "You improve the instructions" in m[-1]["content"]]
    for name, *words in (
        ("schedule", "Draft a kernel", "Edit `schedule.sched`."),
        ("equations", "Draft a kernel", "Edit `variant.kir`"),
        ("source", "Draft a kernel", "Edit the source `kernel.txt`"),
        ("coach", "You improve the instructions"),
    ):
        fitting = [
            text(m)
            for m in (*first_prompts, *coaching[:1])
            if all(w in m[-1]["content"] for w in words)
        ]
        golden(f"{GOLDEN}/prompt_{name}.md", shortest(fitting))
    refused = [text(m[2:]) for m in prompts if len(m) > 2 and "`plaec`" in m[-1]["content"]]
    golden(f"{GOLDEN}/prompt_refusal.md", shortest(refused))


def shortest(texts):
    return min(texts, key=lambda text: (len(text), text))


LEFT_OUT = {  # the separator of two texts
    "(documents)": ("\n# From the knowledge base\n", "\n# Constraints\n"),
    "(move)": ("Your move this time:", "\n\n`philosophy.md`"),
    "(figures)": ("# Results\n", "\n# How to answer\n"),
    "(source)": ("````text\nnest of rows", "\n````\n"),
}


def text(messages):
    found = "\n".join(f"[{m['role']}]\n{m['content'].rstrip()}\n" for m in messages)
    for words, (before, after) in LEFT_OUT.items():
        held = f"(?<={re.escape(before)}).*?(?={re.escape(after)})"
        found = re.sub(held, f"\n{words}\n", found, flags=re.DOTALL)
    return found
