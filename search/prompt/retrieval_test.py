"""The index is ranked, then whole documents are taken, kinds in turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.prompt.document import Document
from search.prompt.knowledge import Library
from search.prompt.retrieval import OTHERS, OWN, Query, machine_words, query, rank, retrieve
from testing.samples.samples import SMALL, WITH_THREADS, decisions, workload

SOFTMAX = workload("softmax").spec


def doc(name, kind="idioms", title="Nothing", machines=(), operations=(), tags=(), lines=1, **more):
    body = "A sentence.\n" + "more text here\n" * lines
    sources = ("ir/lower/verbs.py",)
    words = tuple(tags), tuple(machines), tuple(operations)
    return Document(name, kind, title, body, sources, *words, **more)


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


def ask(*diagnosis, machine=(), surface="", **places):
    return Query({"diagnosis": diagnosis, **places}, frozenset(machine), surface)


def taken(asked, budget=10_000, documents=DOCS):
    return [t.document.name for t in retrieve(documents, asked, budget).taken]


def test_the_best_document_is_the_one_that_shares_the_most_telling_words():
    found = rank(DOCS, ask("online softmax"))
    assert [t.document.name for t in found][:2] == ["online", "rows"]
    assert found[0].score > found[1].score > 0


def test_what_shares_no_word_is_not_taken():
    assert taken(ask("spills")) == ["spills"]
    assert taken(ask("nonsense")) == []


def test_what_is_about_the_kernel_comes_first_and_what_is_about_others_not_at_all():
    own = doc("own", operations=["scan", "norm"], about=("scan",))
    other = doc("other", title="Spill spill", operations=["scan", "product"], about=("product",))
    documents = Library((*DOCS, own, other))
    asked = ask("spill", operations=("scan",))
    assert taken(asked, documents=documents) == ["own", "spills"]
    assert "product" in documents.named("other").about
    assert "products" not in taken(ask("pipeline", operations=("scan",)))


def test_a_document_helps_with_its_surfaces_and_leads_on_some():
    leading = doc("leading", surfaces=("source", "schedule"), leads=("source",))
    documents = Library((*DOCS, leading, doc("own", operations=["scan"], about=("scan",))))
    found = {
        surface: taken(ask("nonsense", operations=("scan",), surface=surface), documents=documents)
        for surface in ("schedule", "equations", "source")
    }
    assert found == {"schedule": ["own"], "equations": ["own"], "source": ["leading", "own"]}


def test_a_document_of_another_machine_is_not_found():
    assert "waves" not in taken(ask("waves", machine=["sm_90a"]))
    assert "waves" in taken(ask("waves", machine=["gfx942"]))


def test_a_diagnosis_counts_for_more_than_the_verbs():
    asked = ask("spill", verbs=("pipeline",))
    assert [t.document.name for t in rank(DOCS, asked)][:2] == ["spills", "products"]


def test_each_says_why_it_was_taken():
    documents = Library((*DOCS, doc("own", operations=["scan"], about=("scan",))))
    found = retrieve(
        documents, ask("online softmax stream", operations=("scan", "softmax")), 10_000
    )
    assert [t.why for t in found.taken][:2] == [
        "idioms about scan",
        "idioms on online, stream, softmax",
    ]


def test_few_others_are_taken_and_no_more_of_its_own_than_help():
    many = Library((*DOCS, *(doc(f"more{n}", title="Online softmax spill") for n in range(9))))
    assert len(taken(ask("softmax spill"), documents=many)) == OTHERS
    own = Library(tuple(doc(f"own{n}", operations=["scan"], about=("scan",)) for n in range(9)))
    found = retrieve(own, ask(operations=("scan",)), 10_000)
    assert len(found.taken) == OWN and len(found.left) == 9 - OWN


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
