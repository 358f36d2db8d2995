"""The index is ranked, then documents are taken whole, kinds in turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.prompt.document import Document
from search.prompt.knowledge import Library
from search.prompt.retrieval import Query, machine_words, query, rank, retrieve
from testing.samples.samples import SMALL, WITH_THREADS, decisions, workload

SOFTMAX = workload("softmax").spec


def doc(name, kind="idioms", title="Nothing", machines=(), operations=(), tags=(), lines=1):
    body = "A sentence.\n" + "more text here\n" * lines
    return Document(
        name,
        kind,
        title,
        body,
        ("ir/lower/verbs.py",),
        tuple(tags),
        tuple(machines),
        tuple(operations),
    )


DOCS = Library(
    (
        doc("rows", title="Rows that fit", operations=["softmax", "norm"]),
        doc("online", title="Online softmax", operations=["softmax"], tags=["stream"]),
        doc("products", operations=["product"], tags=["pipeline"]),
        doc("spills", kind="guidance", title="Registers and spills", tags=["spill", "threads"]),
        doc("waves", kind="hardware", title="Waves", machines=["gfx942"], operations=["softmax"]),
        doc("timing", kind="constraints", title="How a time is had"),
    )
)


def ask(*diagnosis, machine=(), **places):
    return Query({"diagnosis": diagnosis, **places}, frozenset(machine))


def taken(asked, budget=10_000, documents=DOCS):
    return [t.document.name for t in retrieve(documents, asked, budget).taken]


def test_the_best_document_is_the_one_that_shares_the_most_telling_words():
    found = rank(DOCS, ask("online softmax"))
    assert [t.document.name for t in found][:2] == ["online", "rows"]
    assert found[0].score > found[1].score > 0


def test_what_shares_no_word_is_not_found_but_constraints_always_are():
    assert [t.document.name for t in rank(DOCS, ask("spills"))] == ["spills", "timing"]
    assert taken(ask("nonsense")) == ["timing"]


def test_a_document_of_another_machine_is_not_found():
    assert "waves" not in taken(ask("waves", machine=["sm_90a"]))
    assert "waves" in taken(ask("waves", machine=["gfx942"]))


def test_a_diagnosis_counts_for_more_than_the_verbs():
    asked = ask("spill", verbs=("pipeline",))
    assert [t.document.name for t in rank(DOCS, asked)][:2] == ["spills", "products"]


def test_each_says_why_it_was_taken():
    found = retrieve(DOCS, ask("online softmax stream"), 10_000).taken
    assert found[0].why == "idioms on online, stream, softmax"
    assert found[-1].why == "constraints, for every kernel"


def test_kinds_take_turns():
    many = Library((*DOCS, *(doc(f"more{n}", title="Online softmax spill") for n in range(9))))
    found = taken(ask("softmax spill"), documents=many)
    assert set(found[:3]) >= {"spills", "timing"}
    assert len(found) > 5


def test_documents_are_taken_whole_within_the_budget_and_the_rest_is_named():
    long = replace(DOCS.named("online"), name="long", body="Softmax.\n" + "x\n" * 4000)
    found = retrieve(Library((*DOCS, long)), ask("online softmax"), 200)
    assert found.tokens <= 200
    assert all(t.document in DOCS.documents for t in found.taken)
    assert "long" in found.left


def test_no_budget_takes_nothing():
    assert not retrieve(DOCS, ask("softmax"), 0).taken


@given(
    st.permutations(DOCS.documents),
    st.lists(
        st.sampled_from(["softmax", "rows", "spill", "threads", "wave", "product", "time"]),
        max_size=4,
    ),
    st.integers(0, 400),
)
def test_what_is_taken_depends_on_the_query_and_the_budget_alone(documents, words, budget):
    asked = ask(*words)
    found = retrieve(Library(tuple(documents)), asked, budget)
    assert found == retrieve(DOCS, asked, budget)
    assert found.tokens <= budget
    names = [t.document.name for t in found.taken]
    assert len(names) == len(set(names)) and not set(names) & set(found.left)


def test_a_query_says_what_a_candidate_is():
    schedule = decisions(SOFTMAX, "tile(m, size=4)", "place(m.outer, level=grid)")
    found = query(SOFTMAX, SMALL, schedule, "bound by DRAM; spills 48 bytes")
    assert found.words["operations"] == ("reduction", "softmax", "special")
    assert found.words["functions"] == ("exp",)
    assert found.words["dtypes"] == ("f32",)
    assert found.words["verbs"] == ("tile", "place")
    weights = found.weights({"spill", "bound"})
    assert (weights["spill"], weights["softmax"]) == (3.0, 2.0)
    assert "byte" not in weights


def test_a_word_of_two_places_counts_as_the_one_that_counts_most():
    asked = Query({"verbs": ("pipeline",), "diagnosis": ("pipelines",)})
    assert asked.weights({"pipeline"}) == {"pipeline": 3.0}
    assert asked.weights(()) == {"pipeline": 0.25}


def test_many_words_of_a_place_count_less_each():
    asked = Query({"diagnosis": ("red green blue black white gold pink grey teal plum lime rust",)})
    assert set(asked.weights(asked.words["diagnosis"][0].split()).values()) == {1.5}


@pytest.mark.parametrize(("machine", "kind"), [(SMALL, "tiles"), (WITH_THREADS, "threads")])
def test_a_machine_is_called_by_its_name_and_the_words_of_its_title(machine, kind):
    found = machine_words(replace(machine, title="A Chip, 80 GB, sm_90a", backends=("tongue",)))
    assert found == {machine.name, "tongue", "a", "chip", "80", "gb", "sm_90a", kind}
