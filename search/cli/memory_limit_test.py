"""A search that needs more memory than available is refused with the needed amount."""

from types import SimpleNamespace

import numpy as np
import pytest

from ir.errors import KernelError
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs
from search.cli import memory_limit
from search.cli.memory_limit import (
    are_large,
    available,
    compared_bytes,
    require_memory,
    timed_bytes,
)
from search.core.workload import WeightedShape

TEXT = '''def scale(x: bf16[M, K], g: f32[K]) -> f16[M, K]:
    """Scale the columns of x."""
    y[m, k] = f32(x[m, k]) * g[k]
    return y
'''
SPEC = parse_spec(TEXT)
BIG = {"M": 1024, "K": 1024}
GIB = 2**30


def problem(kind, *shapes, checks=({"M": 3, "K": 5},), here=False):
    settings = SimpleNamespace(
        kernel="scale", spec=TEXT, checks=checks, shapes=[WeightedShape(sizes) for sizes in shapes]
    )
    backend = SimpleNamespace(
        available=lambda _: {"time_kind": kind}, leaves_inputs=lambda machine: here
    )
    served = {"tongue": SimpleNamespace(backend=backend, machine=None)}
    return SimpleNamespace(settings=settings, served=served)


def test_inputs_are_counted_as_they_are_held_and_as_they_are_drawn():
    held = sum(a.nbytes for a in random_inputs(SPEC, BIG, np.random.default_rng(0)).values())
    entries = 1024 * 1024 + 1024
    assert held == 4 * entries
    assert timed_bytes(SPEC, [BIG], BIG) == held + 8 * entries
    assert timed_bytes(SPEC, [BIG, BIG], BIG) == 2 * held + 8 * entries
    results = 1024 * 1024 * (8 + 2)
    assert compared_bytes(SPEC, BIG) == 2 * (held + results) + 8 * entries


@pytest.mark.parametrize("kind", ("measured", "simulated"))
def test_each_worker_has_inputs_of_its_own(kind):
    needed = timed_bytes(SPEC, [BIG], BIG)
    asked = [problem(kind, BIG)]
    require_memory(asked, 2, False, room=2 * needed)
    with pytest.raises(KernelError) as fault:
        require_memory(asked, 3, False, room=2 * needed)
    assert fault.value.where == "--shape" and "--workers=2" in fault.value.hint
    with pytest.raises(KernelError, match=r"M=1024, K=1024: .* of memory are needed .* available"):
        require_memory(asked, 1, False, room=needed - 1)


def test_inputs_of_many_bytes_are_shared_where_times_take_them(monkeypatch):
    monkeypatch.setattr(memory_limit, "LARGE", timed_bytes(SPEC, [BIG], BIG))
    small = {"M": 1024, "K": 1023}
    assert are_large([problem("measured", small), problem("measured", small, BIG)])
    assert not are_large([problem("measured", small)])
    assert not are_large([problem("modelled", BIG)])


def test_inputs_that_a_device_makes_need_no_memory_here():
    large = {"M": 4096, "K": 1025}  # so large that formulas make them
    for here, sizes, room in ((True, BIG, 1), (False, large, 1), (True, large, 0)):
        asked = [problem("measured", sizes, checks=(sizes,), here=here)]
        if room:
            with pytest.raises(KernelError, match="are needed"):
                require_memory(asked, 1, False, room=room)
        else:
            require_memory(asked, 16, False, room=room)
            with pytest.raises(KernelError, match="are needed"):
                require_memory(asked, 1, True, room=room)


def test_a_modelled_time_takes_inputs_only_for_a_timeline():
    asked = [problem("modelled", BIG)]
    require_memory(asked, 4, False, room=1 << 20)
    with pytest.raises(KernelError, match="are needed"):
        require_memory(asked, 4, True, room=1 << 20)


def test_shapes_at_which_results_are_compared_count_too():
    asked = [problem("modelled", {"M": 2, "K": 2}, checks=(BIG,))]
    with pytest.raises(KernelError) as fault:
        require_memory(asked, 1, False, room=1 << 20)
    assert fault.value.where == "kernel `scale`" and "check(" in fault.value.hint


def test_what_is_available_is_the_least_that_the_system_says(tmp_path, monkeypatch):
    free, limit = tmp_path / "meminfo", tmp_path / "max"
    free.write_text("MemTotal: 9 kB\nMemAvailable:    4194304 kB\n")
    monkeypatch.setattr(memory_limit, "MEMORY", free)
    monkeypatch.setattr(memory_limit, "LIMITS", (limit,))
    assert available() == 4 * GIB
    limit.write_text("max\n")
    assert available() == 4 * GIB
    limit.write_text(f"{GIB}\n")
    assert available() == GIB
