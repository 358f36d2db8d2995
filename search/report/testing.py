"""A small page for the tests of the report."""

from __future__ import annotations

from dataclasses import replace

from search.report.page import (
    ArchiveAxis,
    ArchiveCell,
    ArchiveMaps,
    Engine,
    EvaluationRow,
    LineageStep,
    Page,
    RunReport,
    Text,
)

TRIALS = (
    EvaluationRow(0, "first", 40.0),
    EvaluationRow(1, "plain", 300.0),
    EvaluationRow(2, "mutate", None, "check", "output `y` is off by <1>"),
    EvaluationRow(3, "mutate", 25.0),
    EvaluationRow(4, "mutate", 60.0),
    EvaluationRow(5, "crossover", 20.0),
    EvaluationRow(6, "mutate", None, "build", "no such register"),
    EvaluationRow(7, "mutate", None, "check", "output `y` is off by <1>"),
)
RESULT = RunReport(
    run="rows-chip-1",
    kernel="rows",
    title="Multiply x by w & more.",
    target="chip",
    backend="tool",
    shape="M=64, N=48",
    correct_by="simulator",
    time_kind="simulated",
    first_us=40.0,
    plain_us=300.0,
    best_us=20.0,
    roofline_us=10.0,
    stopped_because="8 evaluations were asked for and made",
    trials=TRIALS,
    lineage=(
        LineageStep(0, "first", 40.0, ()),
        LineageStep(3, "mutate", 25.0, ("tile(m): size 32 → 64",)),
        LineageStep(5, "crossover", 20.0, ("+ hoist(r, into=y)", "- pipeline(x, stages=2)"), (4,)),
    ),
    engines=(Engine("dma", 0.91, 0.64), Engine("matrix", 0.22, 0.81)),
    archive=ArchiveMaps(
        (
            ArchiveAxis("on-chip memory used", ("to 50%", "to 100%")),
            ArchiveAxis("launches", ("1", "2", "3 or more")),
        ),
        (
            ArchiveCell((0, 0), 40.0, 0),
            ArchiveCell((1, 0), 20.0, 5, True),
            ArchiveCell((1, 2), 25.0, 3),
        ),
    ),
    texts=(
        Text("Schedule", "schedule(rows)\ntile(m, size=64)\n", frozenset({1})),
        Text("Source", "int a = 1 < 2;\n"),
    ),
    facts={"seed": "1", "checked at": "M=3, N=7"},
)
NOTHING = replace(
    RESULT,
    correct_by="",
    time_kind="",
    first_us=None,
    plain_us=None,
    best_us=None,
    trials=tuple(t for t in TRIALS if t.us is None),
    lineage=(),
    engines=(),
    archive=ArchiveMaps(RESULT.archive.axes, ()),
    texts=(),
)


def page(*results: RunReport) -> Page:
    """A page of these results."""
    return Page("rows on chip", "evolve --target=chip", "1 May 2026", results, {"python": "3.11"})
