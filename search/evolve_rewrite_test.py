"""The command finds other equations for a spec, and stores them with their speed-up."""

import pytest

from ir.parse.parse import parse_spec
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.record.record import read_record
from search.store.store import Store
from testing.cli.place import Place

PAIRS = """def pairs(x: f32[N, D], y: f32[N, K]) -> f32[N, K]:
    \"\"\"x times its transpose times y: less work when the first product is done first.\"\"\"
    t[d, k] = sum(x[i, d] * y[i, k], i)
    z[n, k] = sum(x[n, d] * t[d, k], d)
    return z

tune(N=8, D=256, K=256)
check(N=3, D=5, K=7)
"""
WORDS = (
    "--kernel=pairs.kir",
    "--evaluations=10",
    "--policy=islands",
    "--operators=rewrite,step",
    "--no-memory",
    "--store=runs.db",
)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path, "null")
    (made.work / "pairs.kir").write_text(PAIRS)
    return made


def candidates(place) -> dict[str, Candidate]:
    store = Store(str(place.work / "runs.db"))
    record = store.load(store.runs()[-1])
    store.close()
    return {c.key: c for generation in record.generations for c in generation}


def test_rewritten_candidates_are_correct_and_each_has_equations_of_its_own(place):
    place.evolve(*WORDS)
    made = candidates(place)
    told = place.tried("runs.db")
    rewritten = [c for c in made.values() if c.origin.operator == "rewrite"]
    assert len(rewritten) > 2
    assert all(isinstance(told[c.key], Evaluation) for c in rewritten if c.key in told)
    assert len({c.variant for c in rewritten}) == len(rewritten)


def test_the_winner_is_promoted_with_its_equations(place):
    tree = place.folder / "tree"
    tree.mkdir()
    (tree / "WORKSPACE").touch()
    words = (*WORDS[:1], "--evaluations=24", *WORDS[2:], "--promote")
    found = place.evolve(*words, BUILD_WORKSPACE_DIRECTORY=str(tree))
    (run,) = found["runs"]
    assert run["best_us"] < run["first_us"]
    stored = read_record(tree / run["record"])
    spec, own = (parse_spec(t.partition("\ntune")[0]) for t in (PAIRS, stored.workload))
    assert own == spec
    assert parse_spec(stored.variant) != spec
    assert any("by rewrite: " in line and "(" in line for line in stored.record.lineage)
    assert "--operators=rewrite,step" in stored.record.command
