"""Thirty faults of an endpoint in random order: the run ends normally, and can be replayed."""

import json
import random
from pathlib import Path

from testing.cli.place import Place
from testing.model_server.server import ModelServer

ANSWERS = Path(__file__).parent / "testdata" / "rows"
KEY = "sk-0123456789-abcdef"
FAULTS = (
    "broken",
    "cut",
    "dead",
    "empty",
    "error_in_200",
    "fault",
    "filtered",
    "garbage",
    "malformed_edit",
    "nonsense",
    "refusal",
    "too_large",
    "too_long",
    "uncounted",
    "wait",
)


def test_thirty_faults_in_random_order_do_not_end_a_run(tmp_path):
    place, order = Place(tmp_path, "null"), list(2 * FAULTS)
    random.Random(23).shuffle(order)
    words = ("--kernel=rows.kir", "--target=null", "--model=tiny", "--seed=3")
    words += ("--operators=universal,mutate", "--evaluations=24", "--store=runs.db", "--json")
    with ModelServer(order, folder=ANSWERS, otherwise="nonsense") as server:
        where = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
        code, said, noise = place.run(*words, **where)
    assert code == 0, noise
    assert [seen.answer for seen in server.seen[:30]] == order and len(server.seen) > 30
    (run,) = json.loads(said)["runs"]
    assert run["evaluations"] == 24 and run["stopped_because"].startswith("24 evaluations")
    made = {row["operator"]: row["children"] for row in run["operators"]}
    assert made["universal"] > 0, "the model was asked on"
    assert run["models"]["cut"] > 0, "an answer that was too long is counted"
    code, again, noise = place.run("--replay=rows-null-1", "--store=runs.db", "--json")
    assert code == 0 and again.replace("rows-null-2", "rows-null-1") == said, noise
    files = [file for file in place.folder.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert KEY not in said and KEY not in noise
