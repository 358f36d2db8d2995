"""Kernel features mean the same on machines with and without threads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.autoschedule.autoschedule import plain
from ir.errors import KernelError
from ir.estimate.kernel_features import kernel_features
from ir.lower.lower import lower
from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_schedule, parse_spec
from ir.sizes import free_sizes
from machines.gpu.gpu import GPU
from machines.tiles.tiles import TILES as TILES_CLASS
from testing.samples.random_specs import sizes_for, specs

MATMUL = parse_spec(
    '''def scaled_matmul(a: f32[M, K], b: f32[K, N], g: f32[N]) -> f32[M, N]:
    """Multiply, then scale the columns."""
    acc[m, n] = sum(a[m, k] * b[k, n], k)
    y[m, n] = acc[m, n] * g[n]
    return y
'''
)
SOFTMAX = parse_spec(
    '''def softmax(x: f32[M, K]) -> f32[M, K]:
    """Turn each row into probabilities."""
    mx[m] = max(x[m, k], k)
    e[m, k] = exp(x[m, k] - mx[m])
    s[m] = sum(e[m, k], k)
    y[m, k] = e[m, k] / s[m]
    return y
'''
)
DOUBLE = parse_spec(
    '''def double(x: f32[M, K]) -> f32[M, K]:
    """Twice each element."""
    y[m, k] = x[m, k] + x[m, k]
    return y
'''
)
SIZES = {"M": 64, "N": 64, "K": 128}


def chip(**more):
    model = GPU if "register" in more.get("spaces", {}) else TILES_CLASS
    spaces = {"global": Space(1 << 30, 1e11, 64), model.on_chip: Space(1 << 18)}
    return Machine(
        name="chip",
        title="A chip",
        backends=("tongue",),
        levels={"grid": 4, **more.get("levels", {})},
        spaces=spaces | more.get("spaces", {}),
        units={"matrix": Unit({"f32": 1e13}, (8, 8, 8)), "vector": Unit({"f32": 1e12})},
        model=model,
        launch_us=0.1,
    )


TILES = chip()
THREADS = chip(levels={"thread": 256, "warp": 32}, spaces={"register": Space(1 << 18)})


def facts(spec, text, machine=TILES):
    sizes = {name: SIZES[name] for name in free_sizes(spec)}
    schedule = text if not isinstance(text, str) else parse_schedule(text)
    return kernel_features(lower(spec, schedule, machine, sizes), machine, sizes)


def rows(name, *more):
    lines = (f"schedule({name})", "tile(m, size=8)", "place(m.outer, level=grid)", *more)
    return "\n".join(lines)


def test_what_is_loaded_and_used_once_is_neither_reused_nor_ahead():
    found = facts(DOUBLE, rows("double"))
    assert (found["coalesced"], found["reused"], found["ahead"]) == (1.0, 0.0, 0.0)
    assert (found["passes"], found["collectives"], found["carried"]) == (1, 0, 0)
    assert found["operations"] == 64 * 128


def test_a_row_that_is_reduced_and_then_used_is_reused():
    found = facts(SOFTMAX, rows("softmax"))
    assert (found["reused"], found["ahead"]) == (1.0, 0.0)
    assert (found["passes"], found["collectives"]) == (1, 2)


def test_a_second_slot_is_loaded_ahead():
    found = facts(SOFTMAX, rows("softmax", "pipeline(x, stages=2)"))
    assert (found["reused"], found["ahead"]) == (1.0, 1.0)


def test_a_launch_for_each_equation_goes_over_the_data_again():
    found = facts(SOFTMAX, plain(SOFTMAX, TILES, {"M": 64, "K": 128}))
    assert found["passes"] == 3  # e is stored, reduced and divided
    assert found["reused"] == 0


def test_a_loop_over_what_is_reduced_carries_it():
    text = rows("scaled_matmul", "tile(k, size=16)", "place(k.outer, level=loop)")
    found = facts(MATMUL, text)
    assert found["carried"] == 1
    assert found["matrix_share"] == 0


def test_products_on_the_matrix_unit_are_most_of_the_operations():
    found = facts(MATMUL, rows("scaled_matmul", "compute(acc, unit=matrix)"))
    assert found["operations"] == 2 * 64 * 64 * 128 + 64 * 64
    assert found["matrix_share"] == pytest.approx(1 - 64 * 64 / found["operations"])
    assert found["reused"] == pytest.approx(1, abs=0.02)
    assert found["busy_matrix"] > 0


def test_threads_meet_where_operands_lie_in_shared_memory():
    schedule = rows("scaled_matmul", "compute(acc, unit=matrix)")
    assert facts(MATMUL, schedule, THREADS)["barriers"] == 2
    assert facts(MATMUL, schedule, TILES)["barriers"] == 0


def test_programs_meet_where_they_share_a_load():
    text = "\n".join(
        (
            "schedule(scaled_matmul)",
            "tile(m, size=8)",
            "tile(n, size=16)",
            "place(m.outer, level=grid)",
            "place(n.outer, level=grid)",
            "multicast(a, over=n.outer)",
        )
    )
    found = facts(MATMUL, text)
    assert found["barriers"] == 1
    assert found["reused"] > 0


@pytest.mark.parametrize("machine", [TILES, THREADS], ids=["tiles", "threads"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_shares_are_shares_whatever_the_spec(machine, data):
    spec = data.draw(specs())
    sizes = data.draw(sizes_for(spec))
    try:
        nest = lower(spec, plain(spec, machine, sizes), machine, sizes)
    except KernelError:
        return
    found = kernel_features(nest, machine, sizes)
    shares = ("coalesced", "reused", "ahead", "matrix_share")
    for name in (*shares, "busy_memory", "busy_vector", "busy_matrix"):
        assert 0 <= found[name] <= 1, name
    assert found["passes"] >= 1
    assert found["operations"] >= 0
