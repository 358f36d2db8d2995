"""The page is well-formed, self-contained and complete."""

import html.parser
import re
from dataclasses import replace

import pytest

from search.report.page import Engine, HeldOutRow, ShapeRow
from search.report.render import render
from search.report.testing import NOTHING, RESULT, page

VOID = {"meta"}
HEADINGS = [
    "Best so far",
    "Archive",
    "Engines, before and after",
    "Lineage of the winner",
    "Failures",
    "The winner",
    "How this was obtained",
    "How this page was made",
]


class Reader(html.parser.HTMLParser):
    """Checks that elements are closed in order; keeps attributes, ids and headings."""

    def __init__(self):
        super().__init__()
        self.open, self.attributes, self.headings, self.pieces = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data.strip())
        if "style" not in self.open:
            self.pieces.append(data)

    @property
    def text(self):
        return "".join(self.pieces)


def read(*results):
    reader = Reader()
    reader.feed(render(page(*results)))
    assert reader.open == []
    return reader


@pytest.mark.parametrize("results", [(RESULT,), (NOTHING,), (RESULT, NOTHING)])
def test_the_page_is_well_formed_and_has_every_section_for_every_result(results):
    headings = read(*results).headings
    for heading in HEADINGS[:-1]:
        assert headings.count(heading) == len(results)
    assert headings.count(HEADINGS[-1]) == 1


@pytest.mark.parametrize("results", [(RESULT,), (RESULT, NOTHING)])
def test_the_page_asks_for_nothing_outside_itself(results):
    text = render(page(*results))
    assert "http" not in text and "//" not in text
    assert not re.search(r"@import|url\(|<script|<link|<img|<iframe", text)
    reader = read(*results)
    ids = {value for name, value in reader.attributes if name == "id"}
    links = [value for name, value in reader.attributes if name in ("href", "src")]
    assert all(link.startswith("#") and link[1:] in ids for link in links)


def test_the_page_says_how_correctness_and_time_were_obtained():
    text = read(RESULT).text
    assert "Correct by simulator, time simulated." in text
    assert "40.0 µs simulated" in text and "300 µs simulated" in text
    assert "10.0 µs computed" in text and "Best so far, simulated times" in text
    assert "Stopped because 8 evaluations were asked for and made." in text
    assert "evolve --target=chip" in text and "3.11" in text and "M=3, N=7" in text


def test_the_lineage_has_a_step_for_each_ancestor_with_its_edits():
    text = read(RESULT).text
    steps = [
        "where it began",
        "tile(m): size 32 → 64",
        "crossover with #4",
        "- pipeline(x, stages=2)",
    ]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)
    assert "1.60×" in text and "1.25×" in text


def test_failures_are_counted_by_stage_with_their_reasons():
    text = " ".join(" ".join(read(RESULT).pieces).split())
    assert "check 2 output `y` is off by <1> 2 times" in text
    assert "build 1 no such register" in text
    assert "None of the" not in text


def test_engines_that_neither_kernel_uses_are_only_named():
    idle = replace(RESULT, engines=(*RESULT.engines, Engine("mesh", 0.0, 0.0)))
    assert "Idle in both: mesh." in read(idle).text
    assert "Idle" not in read(RESULT).text


def test_what_a_candidate_says_cannot_become_markup():
    text = render(page(RESULT))
    assert "off by &lt;1&gt;" in text and "1 &lt; 2" in text and "x by w &amp; more" in text
    assert "off by <1>" not in text


def test_lines_that_the_search_changed_are_marked():
    assert '<code class="marked">tile(m, size=64)</code>' in render(page(RESULT))


def test_a_page_of_several_results_begins_with_a_table_of_them():
    assert "over plain" in read(RESULT, NOTHING).text
    assert 'id="overview"' not in render(page(RESULT))


def test_a_result_without_a_correct_candidate_says_so():
    text = read(NOTHING).text
    assert "No candidate was correct" in text and "The archive is empty." in text


def test_a_small_screen_gets_a_curve_of_its_own_with_its_levels_in_words():
    text = render(page(RESULT))
    widths = [int(w) for w in re.findall(r'<svg class="plot \w+" viewBox="0 0 (\d+) ', text)]
    assert widths == [860, 360]
    legend = re.search(r'<p class="legend levels">(.*?)</p>', text)[1]
    for level in ("plain schedule 300 µs", "first schedule 40.0 µs", "best 20.0 µs", "roofline"):
        assert level in legend
    assert "min-width: 660px" not in text


def test_a_printed_page_breaks_within_a_result_and_shows_whole_texts():
    """A result is longer than a page of paper: if it must not be broken, the first page is
    blank."""
    (rules,) = re.findall(r"@media print \{(.*)\n\}", render(page(RESULT)), re.DOTALL)
    kept = [rule.partition("{")[0] for rule in rules.split("}") if "break-inside: avoid" in rule]
    assert kept and not any(re.search(r"\b(article|section)\b", selector) for selector in kept)
    assert "max-height: none" in rules


def test_both_light_and_dark_are_there():
    text = render(page(RESULT))
    assert "prefers-color-scheme: dark" in text and 'content="light dark"' in text


SHARED = replace(
    RESULT,
    shapes=(
        ShapeRow("M=8", 2.0, 9.0, 4.0, 1.0, 1, 0.5),
        ShapeRow("M=64", 1.0, None, 4.0, 4.0, 0, 2.0),
    ),
    guards=("near M=8: kernel 1", "otherwise: kernel 0"),
    held_out=(HeldOutRow("M=9", 1, 2.0, 3.0, None, "check: `y` is off by <1>"),),
    held_out_words="0 of 1 correct",
)


def test_kernels_that_share_shapes_are_shown_with_guards_and_held_out_shapes():
    reader = read(SHARED)
    assert {"At each shape", "At shapes that it was not tuned for"} < set(reader.headings)
    said = ("M=64", "near M=8: kernel 1", "50%", "check: `y` is off by <1>", "0 of 1 correct")
    for piece in said:
        assert piece in reader.text
    alone = read(replace(SHARED, guards=(), held_out=(), held_out_words=""))
    assert "At each shape" in alone.headings and "shared" not in alone.text
    assert "At each shape" not in read(RESULT).headings
