"""Tables are aligned, and fit a width without losing words."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from search.cli.tables import COLUMNS, SummaryLine, backends_text, columns, filled
from search.core.archive import Archive
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.outcome import Outcome
from search.core.settings import Settings


def test_cells_stand_below_each_other_under_an_underlined_head():
    rows = [("kernel", "best"), ("rows", "5.00 µs"), ("matmul_and_more", "12.3 ms")]
    assert columns(rows, "<>").splitlines() == [
        "kernel              best",
        "---------------  -------",
        "rows             5.00 µs",
        "matmul_and_more  12.3 ms",
    ]


def test_a_table_without_rows_has_its_head():
    assert columns([("kernel", "best")], "<>").splitlines() == ["kernel  best", "------  ----"]


ALIGNS = [align for _, align in COLUMNS]
TITLES = tuple(title for title, _ in COLUMNS)
ROW = (
    "rmsnorm_matmul",
    "npu_small",
    "12.3 ms",
    "999 µs",
    "12.3×",
    "1,234×",
    "0.044%",
    "interpreter",
    "simulated",
    "32 evaluations were asked for and made",
)
WORD = st.text("abcdefghij_=,", min_size=1, max_size=12)
REASON = st.lists(WORD, min_size=1, max_size=30).map(" ".join)


@given(kernel=WORD, reason=REASON, width=st.integers(80, 120), count=st.integers(1, 3))
def test_a_summary_fits_each_width_and_loses_no_word(kernel, reason, width, count):
    rows = [TITLES, *[(kernel, *ROW[1:-1], reason)] * count]
    text = columns(rows, ALIGNS, width)
    assert max(map(len, text.splitlines())) <= width
    assert text.split().count(kernel) >= count
    for cell in ROW[1:-1]:
        assert text.count(cell) >= count, "a cell is on one line"
    joined = " ".join(text.split())
    assert joined.count(" ".join(reason.split())) >= count or len(reason.split()) > 1
    seen = joined.replace(",", "")
    assert all(word.replace(",", "") in seen for word in reason.split())


def test_a_reason_is_broken_below_itself():
    rows = [("kernel", "stopped because"), ("rows", "nothing new was left to be tried here")]
    assert columns(rows, "<<", 34).splitlines() == [
        "kernel  stopped because",
        "------  --------------------------",
        "rows    nothing new was left to be",
        "        tried here",
    ]


def test_a_narrow_terminal_gets_paragraphs():
    assert columns([TITLES, ROW], ALIGNS, 80).splitlines() == [
        "rmsnorm_matmul",
        "    target npu_small, first 12.3 ms, best 999 µs, over first 12.3×,",
        "    over plain 1,234×, roofline 0.044%, correct by interpreter, time simulated,",
        "    stopped because 32 evaluations were asked for and made",
    ]


@given(text=REASON, width=st.integers(20, 120))
def test_a_sentence_fits_each_width(text, width):
    lines = filled(text, width).splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == text


def raced():
    """The outcome of a race that the second of two backends won."""
    graph, first = Graph(), "schedule(k)\ntile(m, size=32)\n"
    one = Candidate("spec", first, "chip", "one", origin=Origin("first"))
    two = Candidate("spec", first, "chip", "two", origin=Origin("first"))
    best = Candidate(
        "spec", first.replace("32", "64"), "chip", "two", origin=Origin("step", (two.key,))
    )
    for c in (one, two, best):
        graph.add(c)
    fast = Evaluation(5.0, "modelled", "interpreter")
    outcomes = {
        one.key: Failure("emit", "refused", "not in this language"),
        two.key: Evaluation(20.0, "modelled", "interpreter"),
        best.key: fast,
    }
    return Outcome(
        run="k-chip-1",
        settings=Settings("k", "spec", "chip", ("one", "two"), {"M": 64}),
        evaluations=3,
        failures={"emit": 1},
        first=one,
        first_us=None,
        plain_us=None,
        best=best,
        evaluation=fast,
        roofline_us=1.0,
        stopped_because="enough",
        seconds=1.0,
        archive=Archive((1,)),
        graph=graph,
        outcomes=outcomes,
    )


def test_a_race_has_a_row_for_each_backend():
    assert backends_text(raced()).splitlines() == [
        "k on chip, by backend, won by two:",
        "backend  evaluated  correct  failed  correct by     first     best  best schedule, over the first",
        "-------  ---------  -------  ------  -----------  -------  -------  -----------------------------",
        "one              1        0       1  -                  -        -  -",
        "two              2        2       0  interpreter  20.0 µs  5.00 µs  tile(m): size 32 → 64",
    ]
    alone = replace(raced(), settings=replace(raced().settings, backends=("two",)))
    assert backends_text(alone) == ""


def test_a_race_as_plain_data_names_the_winners_backend():
    table = SummaryLine(raced()).table()
    assert table["backend"] == "two"
    assert [(row["backend"], row["best_us"]) for row in table["backends"]] == [
        ("one", None),
        ("two", 5.0),
    ]
    nothing = replace(raced(), best=None, evaluation=None)
    assert SummaryLine(nothing).table()["backend"] is None
