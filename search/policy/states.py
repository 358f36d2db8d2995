"""States for tests: hypothesis strategies for any state, and a state from a few tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from ir.machine import Machine, Space, Unit
from machines.tiles.tiles import TILES
from search.core.archive import Archive, Elite
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.graph import Graph
from search.core.measures import cell, named
from search.loop.state import State

CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1000)},
    units={"vector": Unit({"f32": 1e9})},
    model=TILES,
)
MEASURES = named(("on_chip", "launches"))


def made(
    lines: Sequence[tuple[str, float | None, str]],
    *,
    tags: Mapping[str, str] | None = None,
    figures: Mapping[str, Mapping[str, float]] | None = None,
    generation: int = 1,
) -> State:
    """A state with candidates (name, us, parents by name, separated by spaces).

    us: None: it failed; 0: unknown yet. A candidate's schedule is its name.
    """
    graph = Graph()
    outcomes: dict[str, Evaluated] = {}
    keys: dict[str, str] = {}
    for name, us, parents in lines:
        origin = Origin(
            "op", tuple(keys[p] for p in parents.split()), "", (tags or {}).get(name, "")
        )
        c = Candidate("spec", name, "chip", "tongue", origin=origin)
        keys[name] = c.key
        graph.add(c)
        if us != 0:
            outcomes[c.key] = outcome(us, (figures or {}).get(name, {}))
    roots = tuple(keys[name] for name, _, parents in lines if not parents)
    return state(generation, graph, outcomes, roots)


def names(given: State, keys: Sequence[str]) -> list[str]:
    """The names of candidates made by `made`."""
    return [given.graph.node(key).schedule for key in keys]


def outcome(us: float | None, figures: Mapping[str, float]) -> Evaluated:
    """An evaluation; a failure if there is no time."""
    if us is None:
        return Failure("check", "wrong", "as it happens")
    return Evaluation(us, "modelled", "emulator", figures=figures)


def state(
    generation: int, graph: Graph, outcomes: Mapping[str, Evaluated], roots: tuple[str, ...]
) -> State:
    """A state with an archive of the measures above."""
    archive = Archive(tuple(len(m.labels) for m in MEASURES))
    for key, found in outcomes.items():
        if isinstance(found, Evaluation):
            where = cell(MEASURES, found.figures, CHIP)
            archive.add(Elite(where, graph.node(key), found, 1 / found.us))
    return State(generation, graph, archive, outcomes, roots, MEASURES, CHIP)


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any state: roots, children of one or two parents, failures, and unknown outcomes."""
    graph = Graph()
    outcomes: dict[str, Evaluated] = {}
    keys: list[str] = []
    roots = draw(st.integers(1, 3))
    tags = st.sampled_from(["", *(f"island {n}" for n in range(6)), "something else"])
    for number in range(roots + draw(st.integers(0, 20))):
        parents: tuple[str, ...] = ()
        if number >= roots:
            parents = tuple(draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2)))
        origin = Origin("op", tuple(dict.fromkeys(parents)), "", draw(tags))
        c = Candidate("spec", str(number), "chip", "tongue", origin=origin)
        graph.add(c)
        keys.append(c.key)
    for key in draw(st.permutations(keys))[: draw(st.integers(0, len(keys)))]:
        us = draw(st.none() | st.sampled_from([1.0, 2.0]) | st.floats(0.1, 1e6))
        figures = {"on_chip_bytes": draw(st.floats(0, 1000)), "launches": draw(st.floats(1, 9))}
        outcomes[key] = outcome(us, figures)
    return state(draw(st.integers(1, 12)), graph, outcomes, tuple(keys[:roots]))
