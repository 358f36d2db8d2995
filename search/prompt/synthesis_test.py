"""Prompts are golden texts, one for each kind of brief. Renew them with --update-golden."""

from dataclasses import replace

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import Edit
from ir.errors import KernelError
from ir.print import spec_text
from ir.schedule import Decision
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.graph import Graph
from search.core.testing import CHIP, SIZES, SPEC
from search.core.transferred import Transferred
from search.loop.context import Context, Memory, Parent, Refused
from search.prompt.brief import ANGLES, SCHEDULE, VARIANT, Brief
from search.prompt.budget import tokens
from search.prompt.document import Document
from search.prompt.history import history
from search.prompt.knowledge import Library
from search.prompt.regions import first_regions
from search.prompt.synthesis import Writer

GOLDEN = "search/prompt/golden"
RULE = autoschedule(SPEC, CHIP, SIZES)
WRITER = Writer(
    kernel="scaled_matmul",
    machine=CHIP,
    sizes=SIZES,
    checks=({"M": 1, "N": 1, "K": 1}, {"M": 7, "N": 5, "K": 9}),
    roofline_us=2.5,
    language="Tongue",
    library=Library(
        (
            Document(
                "tiles",
                "idioms",
                "Tiles",
                "Choose them well.",
                ("the makers' guide",),
                tags=("matmul",),
            ),
            Document(
                "far",
                "guidance",
                "Convolutions",
                "Not for this.",
                ("the makers' guide",),
                tags=("convolution",),
            ),
        )
    ),
)


def candidate(schedule, *parents, operator="mutate", note="", source=None):
    origin = Origin(operator, tuple(p.key for p in parents), note)
    return Candidate(spec_text(SPEC), str(schedule), "chip", "tongue", source, origin)


FIRST = candidate(RULE, operator="first")
OTHER = candidate(plain(SPEC, CHIP, SIZES), operator="plain")
SMALL = Decision("tile", "m", (("size", 8),))
CHILD = candidate(Edit(RULE.find("tile", "m"), SMALL).apply(RULE), FIRST)
WRONG = candidate(
    RULE, CHILD, operator="universal", note="Unroll the inner loop.", source="def kernel(): 1 / 0\n"
)
GRANDCHILD = candidate(RULE, CHILD, note="Less masking.", source="def kernel(): pass\n")
FIGURES = {"moved_bytes": 4000.0, "least_bytes": 1000.0, "launches": 1.0, "tiles": 6.0}
OUTCOMES = {
    FIRST.key: Evaluation(9.0, "simulated", "simulator", figures=FIGURES),
    OTHER.key: Evaluation(30.0, "simulated", "simulator"),
    CHILD.key: Evaluation(
        5.0, "simulated", "simulator", figures=FIGURES, engines={"matrix": 0.2, "memory": 0.8}
    ),
    GRANDCHILD.key: Evaluation(6.0, "simulated", "simulator"),
    WRONG.key: Failure("check", "wrong", "off by 0.3 at M=7\nat y[3, 1]"),
}


MEMORY = Memory(
    3,
    ("improve the schedule of 1a2b3c4d, 5 us (chip, simulated)",),
    (Refused("draft the source of 5e6f7a8b, 9 us (chip, simulated)", "the edits change nothing"),),
)


def context(*parents, memory=MEMORY):
    graph = Graph()
    for c in (FIRST, OTHER, CHILD, GRANDCHILD, WRONG):
        graph.add(c)
    found = tuple(Parent(p, OUTCOMES.get(p.key)) for p in parents)
    return Context(SPEC, CHIP, SIZES, found, graph, OUTCOMES, memory=memory)


def brief(kind, surface="schedule", parent=CHILD, **more):
    texts = {VARIANT: parent.variant, SCHEDULE: parent.schedule}
    texts["kernel.tng"] = parent.source or "def kernel(): ...\n"
    may = {"schedule": (SCHEDULE,), "equations": (VARIANT, SCHEDULE)}
    files = may.get(surface, ("kernel.tng",))
    shown = {n: t for n, t in texts.items() if n not in files}
    known = history(more.pop("given", context(parent)), texts, source_of)
    return Brief(kind, surface, known, {n: texts[n] for n in files}, shown, **more)


def source_of(candidate):
    return candidate.source or "def kernel(): ...\n"


EXTERNAL = Transferred(
    "elsewhere",
    "dialect",
    CHILD.variant,
    CHILD.schedule,
    1.0,
    "measured",
    source="kernel elsewhere\n",
)
BRIEFS = {
    "draft": (brief("draft", parent=FIRST), (FIRST,)),
    "improve": (
        brief("improve", "equations", hint="more on-chip memory", angle=ANGLES[0]),
        (CHILD,),
    ),
    "repair": (brief("repair", "source", WRONG, failure=OUTCOMES[WRONG.key]), (WRONG,)),
    "combine": (
        brief("combine", other="def kernel(): slowly()\n"),
        (CHILD, OTHER),
    ),
    "translate": (brief("translate", "source", transferred=EXTERNAL), (CHILD,)),
}


@pytest.mark.parametrize("kind", BRIEFS)
def test_the_prompt_is_the_golden_text(kind, golden):
    asked, parents = BRIEFS[kind]
    found = WRITER.write(context(*parents), asked, first_regions())
    golden(f"{GOLDEN}/{kind}.md", f"{found.system}\n---\n\n{found.user}")


def test_what_is_most_needed_stays_within_any_budget():
    asked, parents = BRIEFS["improve"]
    whole = WRITER.write(context(*parents), asked, first_regions())
    assert not whole.dropped and whole.knowledge[0] == "tiles"
    small = replace(WRITER, tokens=1400).write(context(*parents), asked, first_regions())
    assert "knowledge" in small.dropped + small.cut
    for needed in ("# The task", "# The kernel", "# Constraints", "# How to answer"):
        assert needed in small.user
    with pytest.raises(KernelError, match="required sections"):
        replace(WRITER, tokens=50).write(context(*parents), asked, first_regions())


@pytest.mark.parametrize("surface", ["schedule", "equations", "source"])
def test_the_source_of_a_second_parent_that_was_edited_is_shown(surface):
    asked = brief("combine", surface, other=GRANDCHILD.source)
    found = WRITER.write(context(CHILD, GRANDCHILD), asked, first_regions())
    _, shown = found.user.split("# The other kernel: 6 us (chip, simulated)")
    assert "`kernel.tng` (to read only):\n````\ndef kernel(): pass\n````" in shown
    assert "`schedule.sched` (to read only)" in shown
    assert "kernel(): ..." not in shown.split("\n# ")[0]


def test_the_second_parent_is_told_whatever_else_must_go():
    asked = brief("combine", "source", other=GRANDCHILD.source)
    small = replace(WRITER, tokens=1400).write(context(CHILD, GRANDCHILD), asked, first_regions())
    assert "verbs" not in small.user and "def kernel(): pass" in small.user


LONG = "".join(f"line {n} of a long source\n" for n in range(9000))  # 233 kB


def test_what_is_only_to_be_read_is_cut_where_it_is_long():
    for kind, surface in (("improve", "schedule"), ("improve", "equations"), ("combine", "source")):
        asked = brief(kind, surface, CHILD, other=LONG)
        if surface != "source":
            asked = replace(asked, shown={**asked.shown, "kernel.tng": LONG})
        found = WRITER.write(context(CHILD, OTHER), asked, first_regions())
        assert tokens(found.user) <= WRITER.tokens
        assert "line 99 of a long source" in found.user and "lines left out]" in found.user
        assert all(text.strip() in found.user for text in asked.files.values())


def test_a_long_reason_is_cut():
    failure = Failure("build", "crash", "x" * 70_000)
    asked = brief("repair", "source", WRONG, failure=failure)
    found = WRITER.write(context(WRONG), asked, first_regions())
    assert "64000 characters left out" in found.user
    assert len(WRITER.refusal("y" * 70_000)) < 7000


def test_every_prompt_tells_what_the_search_knows():
    for kind, surface in (("improve", "schedule"), ("draft", "equations"), ("combine", "source")):
        text = WRITER.write(context(CHILD, OTHER), brief(kind, surface), first_regions()).user
        assert "5 kernels of this task were evaluated on chip, 1 of them failed" in text
        assert "This is request 3." in text and "fastest so far" in text
        assert "failed at check (wrong): off by 0.3" in text and "-def kernel(): ..." in text
        assert "the edits change nothing" in text and "1a2b3c4d" in text
        assert "6 us (chip, simulated), 1.200 times the 5 us of" in text


def test_the_fastest_kernel_is_shown_where_it_is_another():
    asked = brief("draft", "source", FIRST)
    text = WRITER.write(context(FIRST), asked, first_regions()).user
    assert (
        f"The fastest so far, by what sets it apart from the kernel above:\n\n- `{CHILD.key[:8]}`"
        in text
    )
    shown = text.split("# The fastest kernel so far, where its texts differ")[1]
    assert "tile(m, size=8)" in shown.split("\n# ")[0]
    text = WRITER.write(context(CHILD), brief("improve"), first_regions()).user
    assert "The kernel above is the fastest so far." in text and "texts differ" not in text


def test_each_surface_tells_what_an_answer_may_say():
    writer = replace(WRITER, interface="`load(x)` loads.")
    sections = {
        "schedule": ("# The legal edits of this schedule", "# The verbs of a schedule"),
        "equations": ("# The language of `variant.kir`", "# The verbs of a schedule"),
        "source": ("# What a source may use\n\n`load(x)` loads.",),
    }
    every = {one for some in sections.values() for one in some}
    for surface, wanted in sections.items():
        text = writer.write(context(CHILD), brief("improve", surface), first_regions()).user
        assert {one for one in every if one in text} == set(wanted)


@pytest.mark.parametrize("reason", ["", "\n"])
def test_a_failure_without_a_reason_is_told(reason):
    failed = Failure("check", "crash", reason)
    outcomes = {**OUTCOMES, WRONG.key: failed}
    given = replace(context(CHILD, WRONG), outcomes=outcomes)
    given = replace(given, parents=tuple(replace(p, outcome=failed) for p in given.parents))
    for kind, more in (("improve", {}), ("combine", {}), ("repair", {"failure": failed})):
        asked = brief(kind, given=given, **more)
        text = WRITER.write(given, asked, first_regions()).user
        assert "no reason was given" in text


def test_a_refusal_says_what_was_wrong():
    assert "no such verb" in WRITER.refusal("no such verb")
