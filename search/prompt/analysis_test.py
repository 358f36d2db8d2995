"""The analysis names what bounds a kernel."""

from ir.machine import Machine, Space, Unit
from machines.tiles.tiles import TILES
from search.core.evaluation import Evaluation
from search.prompt.analysis import diagnosis

CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 64},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1000)},
    units={"matrix": Unit({"f32": 1e12}, (8, 8, 8))},
    model=TILES,
)


def text(figures=(), engines=(), us=10.0):
    found = Evaluation(us, "simulated", "simulator", (), dict(figures), dict(engines))
    return " ".join(diagnosis(found, 5.0, CHIP))


def test_time_is_said_with_how_it_was_had():
    assert text() == (
        "It takes 10 us (simulated); the machine's bound is 5 us, of which 50% is reached."
    )


def test_a_busy_engine_is_the_bound():
    said = text(engines={"memory": 0.91, "matrix": 0.3})
    assert "bound by memory" in said and "memory 91%, matrix 30%" in said


def test_where_nothing_is_busy_it_waits():
    assert "it waits" in text(engines={"memory": 0.2, "matrix": 0.3})


def test_stalls_traffic_launches_tiles_space_spills_and_occupancy_are_said():
    said = text(
        {
            "matrix_stall": 0.6,
            "vector_stall": 0.1,
            "moved_bytes": 300.0,
            "least_bytes": 100.0,
            "launches": 2.0,
            "tiles": 80.0,
            "on_chip_bytes": 250.0,
            "spills": 12.0,
            "occupancy": 0.25,
            "registers": 255.0,
        }
    )
    for words in (
        "matrix 60%",
        "3 times the bytes",
        "2 launches",
        "1.25 waves",
        "25% of the local memory",
        "12 registers spill",
        "Occupancy is 25% with 255 registers",
    ):
        assert words in said
    assert "vector" not in said


def test_what_is_well_is_not_said():
    well = {"moved_bytes": 100.0, "least_bytes": 100.0, "launches": 1.0, "tiles": 64.0}
    assert len(text(well).split(". ")) == 1
