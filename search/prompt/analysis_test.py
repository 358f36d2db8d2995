"""The analysis names what bounds a kernel."""

from ir.machine import Machine, Space, Unit
from machines.tiles.tiles import TILES
from search.core.evaluation import Evaluation
from search.prompt.analysis import diagnosis, raw

CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 64},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1000)},
    units={"matrix": Unit({"f32": 1e12}, (8, 8, 8))},
    model=TILES,
)


def text(figures=(), engines=(), us=10.0, edited=False):
    found = Evaluation(us, "simulated", "simulator", (), dict(figures), dict(engines))
    return " ".join(diagnosis(found, 5.0, CHIP, edited))


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
        "It asks memory for 300 B (counted from the loop nest), 3.00 times the compulsory 100 B",
        "2 launches",
        "1.25 waves: the last is not full, and 38% of",
        "25% of the local memory",
        "12 bytes of each thread's registers spill",
        "Occupancy is 25% with 255 registers",
    ):
        assert words in said
    assert "vector" not in said


def test_what_is_well_is_not_said():
    well = {"moved_bytes": 100.0, "least_bytes": 100.0, "launches": 1.0, "tiles": 64.0}
    said = text(well)
    assert "waves" not in said and "launches" not in said and "save traffic" not in said


def test_at_the_compulsory_bytes_no_traffic_is_to_be_saved():
    figures = {"memory_bytes": 100.0, "least_bytes": 100.0, "busy_memory": 0.97}
    said = text(figures, {"dram": 0.97, "vector": 0.6}, us=5.1)
    assert "give that less to do" not in said and "no traffic can be saved" in said
    assert "3% of the time in which dram is not busy" in said and "Little is left" in said
    said = text({**figures, "memory_bytes": 300.0}, {"dram": 0.97})
    assert (
        "bound by dram: give that less to do" in said
        and "moves 300 B (simulated), 3.00 times" in said
    )


def test_a_last_wave_that_is_almost_full_is_not_said():
    assert "waves" not in text({"tiles": 254.0})
    assert "2.05 waves: the last is not full, and 32% of" in text({"tiles": 131.0})


def test_near_the_bound_nothing_is_said_to_lack():
    said = text(engines={"vector": 0.4}, us=5.2)
    assert "it waits" not in said and "some overlap lacks" not in said


def test_bytes_of_the_cache_are_said_by_themselves():
    said = text(
        {"memory_bytes": 100.0, "least_bytes": 100.0, "cache_bytes": 900.0, "mesh_bytes": 50.0}
    )
    assert "Apart from that: 900 B through the cache, 50 B through the mesh." in said


def test_of_an_edited_source_only_what_was_observed_counts():
    nest = {"moved_bytes": 900.0, "least_bytes": 100.0, "tiles": 80.0, "launches": 2.0}
    said = text({**nest, "on_chip_bytes": 250.0, "memory_bytes": 120.0}, edited=True)
    assert "120 B (simulated), 1.20 times" in said
    for word in ("loop nest", "waves", "launches", "local memory"):
        assert word not in said


def test_the_instruction_mix_of_loops_is_said():
    figures = {
        "f_0.mix.matrix": 9.0,
        "f_0.mix.other": 91.0,
        "f_0.loop.matrix": 5.0,
        "f_0.loop.load": 15.0,
    }
    assert "Instructions of `f_0`, 20 in its loops: load 75%, matrix 25%." in text(figures)
    assert "Instructions of `f_0`, 9 in all: matrix 100%." in text({"f_0.mix.matrix": 9.0})


def test_figures_are_given_as_they_are():
    found = Evaluation(
        10.0,
        "simulated",
        "simulator",
        (),
        {"dma_in_stall": 0.25, "cycles": 700.0, "moved_bytes": 123456.0, "memory_bytes": 120.0},
        {"dma_in": 0.5, "matrix": 0.0},
    )
    assert raw(found) == (
        "Engines: dma_in busy 50.0% stalled 25.0%.",
        "Bytes: memory_bytes 120, moved_bytes 123456.",
        "Others: cycles 700.",
    )
    assert raw(found, edited=True)[1] == "Bytes: memory_bytes 120."
