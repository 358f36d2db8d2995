"""Which tiles of shared memory overlap, by who reads and writes them when."""

from __future__ import annotations

from backends.gpu.threads import thread as to
from backends.gpu.threads.lifetimes import overlapped
from backends.gpu.tile import Check, Name
from ir.spec import Number

FRAGMENT, STEP = Name("value", "f"), Name("origin", "k")


def tile(stem, size, stages=1):
    name = Name("shared", stem)
    return name, to.Shared(name, "f32", ("k",), (Number(size),), stem, stages)


def written(stem):
    return to.SharedStore(Name("shared", stem), FRAGMENT)


def read(stem):
    return to.SharedLoad(FRAGMENT, Name("shared", stem))


def loop(*body):
    return to.Loop(STEP, Number(0), Number(8), 1, body)


def guard(*body):
    return to.Guard(Check(Number(1)), body)


def homes(*body, once=(), tiles="abc"):
    """The tiles by the regions that they lie in; a is larger than b, and b than c."""
    shared = dict(tile(stem, 100 - n) for n, stem in enumerate(tiles))
    found = overlapped(shared, once, body, lambda t: int(t.extents[0].value))
    regions = {}
    for name, held in found.items():
        regions.setdefault(held.region, []).append(name.stem)
    return sorted("".join(sorted(v)) for v in regions.values())


def test_tiles_one_after_the_other_overlap():
    body = (written("a"), read("a"), written("b"), read("b"), written("c"), read("c"))
    assert homes(*body) == ["abc"]


def test_tiles_that_are_alive_together_do_not():
    assert homes(written("a"), written("b"), read("a"), read("b"), tiles="ab") == ["a", "b"]


def test_what_an_iteration_writes_before_it_reads_is_not_alive_in_the_next():
    assert homes(loop(written("a"), read("a"), written("b"), read("b")), tiles="ab") == ["ab"]


def test_what_an_iteration_reads_first_is_alive_in_all_of_the_loop():
    body = loop(read("a"), written("a"), written("b"), read("b"))
    assert homes(written("a"), body, tiles="ab") == ["a", "b"]


def test_a_tile_from_before_a_loop_is_alive_to_its_end():
    body = (written("a"), loop(read("a"), written("b"), read("b")), written("c"), read("c"))
    assert homes(*body) == ["ac", "b"]


def test_what_only_some_iterations_write_is_alive_in_all():
    body = loop(guard(written("a")), read("a"), written("b"), read("b"))
    assert homes(body, tiles="ab") == ["a", "b"]


def test_a_write_in_a_loop_of_its_own_is_no_guarded_one():
    inner = loop(written("a"))
    assert homes(loop(inner, read("a"), written("b"), read("b")), tiles="ab") == ["ab"]


def test_what_is_made_once_is_alive_in_every_tile():
    body = (read("a"), written("b"), read("b"), written("c"), read("c"))
    assert homes(*body, once=(written("a"),)) == ["a", "bc"]
