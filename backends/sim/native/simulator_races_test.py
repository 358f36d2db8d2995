"""Races between processing elements in global memory, and stores to inputs."""

import numpy as np
import pytest

from backends.sim.native.kernel_fixture import run
from backends.sim.native.load import load

# by the second access: the program of every processing element, and the message
_RACES = {
    "load": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{N, 8}});
        if (pe.id() == 0) co_await pe.store(args.tensor(0), {{5}, {0, N, 8}}, a.tile());
        co_await pe.load(a.tile(), args.tensor(0), {{5}, {0, N, 8}});""",
        r"element 4\d of 'x', which another PE has (stored|loaded); a barrier or the end of a launch",
    ),
    "store": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{N, 8}});
        co_await pe.store(args.tensor(0), {{2}, {0, N, 8}}, a.tile());""",
        r"PE \d at cycle \d+: store of 'a': it stores element 16 of 'x', which another PE has stored",
    ),
    "add": (
        """auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
        co_await pe.fill(a.tile(), 0, {{N, 8}});
        if (pe.id() == 0) co_await pe.store(args.tensor(0), {{2}, {0, N, 8}}, a.tile());
        if (pe.id() == 1) co_await pe.add(args.tensor(0), {{2}, {0, N, 8}}, a.tile());""",
        r"it stores element 16 of 'x', which another PE has stored",
    ),
}


@pytest.mark.parametrize("name", _RACES)
def test_a_race_is_named(name):
    body, words = _RACES[name]
    with pytest.raises(load().SimulationError, match=words):
        run(f"KERNEL(k) {{\n{body}\n}}", {"x": np.ones((8, 8), np.float32)})


def test_a_store_to_an_input_is_refused():
    source = """KERNEL(k) {
    auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
    co_await pe.fill(a.tile(), 0, {{N, 8}});
    co_await pe.store(args.tensor(0), {{0}, {0, N, 8}}, a.tile());
    }"""
    words = "store of 'a': 'x' is an input; a kernel does not change it"
    with pytest.raises(load().SimulationError, match=words):
        run(source, {"x": np.ones((8, 8), np.float32)}, inputs=["x"])


def test_sums_and_stores_of_one_pe_are_no_races() -> None:
    """All add to one row; each stores a row and adds to it; stored data is loaded later."""
    source = """KERNEL(k) {
    auto a = pe.buffer("a", Dtype::f32, {{N, 8}}, 1);
    co_await pe.fill(a.tile(), 1, {{N, 8}});
    co_await pe.add(args.tensor(0), {{7}, {0, N, 8}}, a.tile());
    co_await pe.store(args.tensor(0), {{pe.id()}, {0, N, 8}}, a.tile());
    co_await pe.add(args.tensor(0), {{pe.id()}, {0, N, 8}}, a.tile());
    co_await pe.barrier();
    co_await pe.load(a.tile(), args.tensor(0), {{7}, {0, N, 8}});
    co_await pe.load(a.tile(), args.tensor(0), {{3 - pe.id()}, {0, N, 8}});
    co_await pe.barrier();
    co_await pe.store(args.tensor(0), {{3 - pe.id()}, {0, N, 8}}, a.tile());
    }"""
    x = np.ones((8, 8), np.float32)
    run(source, {"x": x})
    assert (x[:4] == 2).all() and (x[4:7] == 1).all() and (x[7] == 5).all()
