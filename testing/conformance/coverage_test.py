"""The cases cover the language: its words, and every statement of a loop nest in each of its forms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.registry import target
from ir.functions import POINTWISE, REDUCTIONS, SCANS
from ir.nest.nest import Dot, Launch, Load, Loop, Map, Reduction, Statement, Store, Tile
from ir.spec import DTYPES, GIVEN, INNER, Apply, Bucketize, Cast, Range, Read, Reduce, Scan
from testing.conformance.suite import language_cases, served

SHARED = {  # forms that a nest for any machine has
    *("Load", "Store", "Fill", "Map", "Reduction", "Dot", "Scan", "Search", "Take", "Loop"),
    *("load.pad", "slice.step", "slice.rows", "slice.point", "slice.offset"),
    *("slice.window", "reduction.onto", "reduction.afresh", "dot.onto", "loop.data", "tile.window"),
    *("launch.prologue", "launch.steps", "launch.steps backwards", "launch.grid", "value.stages"),
}
ON_TILES = SHARED | {"load.shared", "slice.whole", "tile.part", "dot.afresh"}
ON_GPU = SHARED | {
    *("store.add", "load.bulk", "launch.order", "launch.threads", "launch.persistent"),
    *("launch.specialized", "slice.rows beside", "loop.steps", "loop.backwards"),
}


def forms(launch: Launch) -> Iterator[str]:
    """What of the forms of a loop nest occurs in a launch."""
    said = {
        "prologue": launch.once,
        "steps": launch.repeat,
        "steps backwards": launch.repeat and launch.repeat.backwards,
        "grid": launch.grid,
        "order": launch.rasterization,
        "threads": launch.threads,
        "persistent": launch.resident,
        "specialized": launch.specialized,
    }
    yield from (f"launch.{name}" for name, there in said.items() if there)
    if any(v.stages > 1 for v in launch.values):
        yield "value.stages"
    for s in launch.statements():
        yield type(s).__name__
        yield from statement_forms(s)


def statement_forms(s: Statement) -> Iterator[str]:
    if isinstance(s, Load):
        said = {"pad": s.pad is not None, "shared": s.shared, "bulk": s.bulk}
        yield from (f"load.{name}" for name, there in said.items() if there)
    if isinstance(s, Store) and s.reduction:
        yield "store.add"
    if isinstance(s, Reduction | Dot):
        yield f"{type(s).__name__.lower()}.{'onto' if s.accumulate else 'afresh'}"
    if isinstance(s, Loop):
        yield "loop.data" if s.low.tensor else "loop.steps" if s.tile == 1 else "loop.tiles"
        if s.backwards:
            yield "loop.backwards"
    if isinstance(s, Load | Store):
        for one in s.region:
            said = {
                "step": one.step != 1,
                "rows": one.rows is not None,
                "whole": one.whole,
                "point": one.axis is None and one.rows is None,
                "offset": str(one.offset) != "Number(value=0)",
                "window": len(one.terms) > 1 and one.rows is None,
                "rows beside": one.rows is not None and len(one.terms) > 1,
            }
            yield from (f"slice.{name}" for name, there in said.items() if there)
    if isinstance(s, Map):
        for tile in (n for n in s.expression.walk() if isinstance(n, Tile)):
            yield from ("tile.window",) if tile.windows else ()
            yield from ("tile.part",) if tile.shifted else ()


@pytest.mark.parametrize(("name", "expected"), [("npu", ON_TILES), ("h200", ON_GPU)])
def test_every_form_of_a_loop_nest_occurs(name, expected):
    machine, found = target(name), set()
    for case in language_cases().values():
        if served(case, machine):
            for launch in case.nest(machine).launches:
                found |= set(forms(launch))
    assert expected - found == set()


def nodes() -> list[object]:
    specs = [case.workload.spec for case in language_cases().values()]
    return [n for spec in specs for e in spec.equations for n in e.value.walk()]


def test_every_word_of_the_language_occurs():
    found = nodes()
    assert set(POINTWISE) == {n.function for n in found if isinstance(n, Apply)}
    assert set(REDUCTIONS) == {n.reduction for n in found if isinstance(n, Reduce)}
    flags = {(n.reduction, n.reverse, n.exclusive) for n in found if isinstance(n, Scan)}
    both = (False, True)
    assert flags == {(f, r, e) for f in SCANS.values() for r in both for e in both}
    assert any(isinstance(n, Bucketize) for n in found)
    assert any(isinstance(n, Range) and n.jagged for n in found)
    assert any(isinstance(n, Range) and n.partial for n in found)
    assert {n.pad for n in found if isinstance(n, Read)} >= {None, 0.0, float("-inf"), 1.5}


def test_every_dtype_is_held_and_cast_to():
    specs = [case.workload.spec for case in language_cases().values()]
    kept = set(DTYPES) - set(INNER)
    assert {t.dtype for spec in specs for t in spec.inputs} == kept
    made = kept - set(GIVEN)
    assert {t.dtype for spec in specs for t in spec.outputs} == made
    assert {n.dtype for n in nodes() if isinstance(n, Cast)} >= made - {"b8"}
