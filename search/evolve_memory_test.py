"""Memory and lessons, through the command: the results of one run are seeds of another."""

import pytest

from search.store.store import Store
from testing.cli.place import Place

SHAPE = "--shape=M=100,K=300,N=70"  # the first schedule is not the best there
WORDS = ("--kernel=rows.kir", "--evaluations=12", "--store=runs.db", "--policy=evolutionary")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def load(place, run):
    opened = Store(str(place.work / "runs.db"))
    record = opened.load(run)
    opened.close()
    return record


def test_a_run_with_memory_starts_from_what_an_earlier_one_found(place):
    (first,) = place.evolve(*WORDS, SHAPE, "--seed=1", "--evaluations=24")["runs"]
    (second,) = place.evolve(*WORDS, SHAPE, "--seed=2", "--memory", "--evaluations=3")["runs"]
    assert second["best_us"] <= first["best_us"] < first["first_us"]
    started = load(place, second["run"]).generations[0]
    assert [c.origin.operator for c in started] == ["first", "plain", "brought"]
    assert started[-1].origin.note == f"found for null by {first['run']}"
    (third,) = place.evolve(*WORDS, SHAPE, "--seed=2", "--evaluations=3")["runs"]
    assert len(load(place, third["run"]).generations[0]) == 2, "without memory nothing is brought"


@pytest.mark.slow
def test_a_run_with_memory_at_other_sizes_takes_over_what_lowers(place):
    place.evolve(*WORDS, SHAPE)
    other = ("--memory", "--shape=M=7,K=1000,N=33", "--evaluations=4")
    (found,) = place.evolve(*WORDS, *other)["runs"]
    assert found["best_us"] and found["evaluations"] == 4


def test_lessons_are_kept_beside_the_store_and_drawn_on_by_the_next_run(place):
    (first,) = place.evolve(*WORDS, "--lessons")["runs"]
    assert not load(place, first["run"]).settings.preferences
    (lesson,) = (place.work / "lessons").glob("*.md")
    assert first["run"] in lesson.read_text()
    (second,) = place.evolve(*WORDS, "--lessons", "--seed=9")["runs"]
    settings = load(place, second["run"]).settings
    assert settings.preferences and len(settings.lessons) == 1
    (third,) = place.evolve(*WORDS, "--seed=9")["runs"]
    assert not load(place, third["run"]).settings.preferences


def test_lessons_without_a_store_are_refused(place):
    code, out, err = place.run_here("--target=null", "--kernel=rows.kir", "--lessons", "--no-store")
    assert (code, out) == (2, "") and "--lessons" in err


def test_a_winner_is_carried_from_one_target_of_a_command_to_the_next(place):
    runs = place.evolve(*WORDS, SHAPE, place.given_target("other", "null"))["runs"]
    assert [r["target"] for r in runs] == ["null", "other"]
    brought = [
        c for c in load(place, runs[1]["run"]).generations[0] if c.origin.operator == "brought"
    ]
    assert [c.target for c in brought] == ["other"] and "found for null" in brought[0].origin.note


def test_a_search_may_use_some_operators_only(place):
    (found,) = place.evolve(*WORDS, "--operators=step")["runs"]
    made = {c.origin.operator for g in load(place, found["run"]).generations[1:] for c in g}
    assert made == {"step"}


@pytest.mark.slow
def test_rewrites_are_made_where_all_operators_are_asked_for(place):
    def made(*more):
        (found,) = place.evolve(*WORDS, SHAPE, "--policy=islands", *more)["runs"]
        later = load(place, found["run"]).generations[1:]
        return {c.origin.operator for generation in later for c in generation}

    assert "rewrite" not in made() and "rewrite" in made("--operators=all")


@pytest.mark.parametrize(
    "words, said",
    [
        (("--operators=stepp",), ["stepp", "step", "--operators"]),
        (("--operators=universal",), ["needs a model", "--model"]),
        (("--max-tokens=0",), ["--max-tokens", "from 1"]),
        (("--target-speedup=0",), ["--target-speedup", "positive"]),
        (("--replay=rows-null-7", "--store=no.db"), ["rows-null-7", "--replay"]),
    ],
)
def test_what_cannot_be_is_said(place, words, said):
    target = () if words[0].startswith("--replay") else ("--target=null", "--kernel=rows.kir")
    code, out, err = place.run_here(*target, *words)
    assert code == 2 and not out and all(word in err for word in said), err
    assert not [f for f in place.new_files() if f.endswith(".db")]
