"""The documents of a prompt are those that an expert would name: a labelled set, with floors.

Precision: the share of what is taken that the expert names. Recall: the share of what the expert names
that is taken. Both are means over the kernels, without a diagnosis and with one. The floors are what was
measured, rounded down to a multiple of 0.05.
"""

import tomllib

import pytest

from backends.registry import backend, served_by, target
from search.prompt.document import SURFACES
from search.prompt.knowledge import library_of
from search.prompt.retrieval import query, retrieve
from testing.samples.samples import workload
from tests.source_tree import ROOT

LABELS = tomllib.loads((ROOT / "tests" / "testdata" / "retrieval.toml").read_text())
SAID = (
    "",
    "It takes 3.7 us; 70% of the bound is reached. Busy: dram 72%, vector 60%, matrix 20%. "
    "Engines that wait for others, of the time they have work: dma_in 40%.",
)
TOKENS = 16_000
FLOORS = {  # precision and recall
    ("sim", "schedule"): (0.70, 0.95),
    ("sim", "equations"): (0.60, 0.95),
    ("sim", "source"): (0.70, 0.95),
    ("triton", "schedule"): (0.70, 0.95),
    ("triton", "equations"): (0.60, 1.00),
    ("triton", "source"): (0.75, 0.95),
    ("cuda", "schedule"): (0.70, 0.90),
    ("cuda", "equations"): (0.65, 1.00),
    ("cuda", "source"): (0.65, 0.90),
}


def taken(name, kernel, surface, said):
    machine = served_by(target(LABELS[name]["target"]), backend(name))
    asked = query(workload(kernel).spec, machine, None, said, surface)
    return {t.document.name for t in retrieve(library_of(name), asked, TOKENS).taken}


def wanted(name, kernel, surface):
    labels = LABELS[name]
    own = set(labels["kernels"][kernel]) - set(labels["not_for"].get(surface, ()))
    return own | set(labels["surfaces"][surface])


@pytest.mark.parametrize(("name", "surface"), FLOORS)
def test_precision_and_recall_are_above_their_floors(name, surface):
    precision, recall = [], []
    for kernel in LABELS[name]["kernels"]:
        for said in SAID:
            found, labels = taken(name, kernel, surface, said), wanted(name, kernel, surface)
            precision.append(len(found & labels) / len(found))
            recall.append(len(found & labels) / len(labels))
    measured = sum(precision) / len(precision), sum(recall) / len(recall)
    floors = FLOORS[name, surface]
    assert all(m >= f for m, f in zip(measured, floors, strict=True)), measured


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("surface", SURFACES)
def test_no_kernel_gets_what_would_mislead(name, surface):
    for kernel, never in LABELS[name]["never"].items():
        for said in SAID:
            assert not set(never) & taken(name, kernel, surface, said), kernel


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("surface", SURFACES)
def test_kernels_get_the_documents_about_them(surface, said):
    own = {
        "attention": {"attention_tiles", "online_softmax"},
        "cumsum": {"reductions"},
        "softmax": {"online_softmax"},
        "embedding_bag": {"gathers"},
    }
    for kernel, documents in own.items():
        assert documents <= taken("sim", kernel, surface, said), kernel


@pytest.mark.parametrize("name", LABELS)
def test_every_label_is_a_document_and_every_kernel_is_labelled(name):
    labels, known = LABELS[name], {d.name for d in library_of(name)}
    kernels = {f.stem for f in (ROOT / "ir" / "library").glob("*.kir")}
    assert set(labels["kernels"]) == kernels
    named = [
        words
        for table in ("kernels", "surfaces", "not_for", "never")
        for words in labels[table].values()
    ]
    assert {word for words in named for word in words} <= known
