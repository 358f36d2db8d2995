"""How tiles are stored as decided: from registers, or some columns at a time through shared memory."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.cuda.testing.emulation import emulated, machine_of
from backends.cuda.testing.samples import BULK_CASES, CASES, WIDENED, backend, work_of
from backends.gpu.threads import thread as of
from backends.measure import compare, reference
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule
from testing.slow import slow

WIDE = {"tile(n, size=64)": "tile(n, size=128)", "tile(m, size=64)": "tile(m, size=128)"}
ROWS = "\nwarps(acc, m=8, n=1)"  # each warp has whole rows


def stored(name, machine, more):
    work = work_of(name)
    case = (CASES | BULK_CASES)[name] + WIDENED.get((name, machine), "")
    for old, new in WIDE.items() if name == "produced" else ():
        case = case.replace(old, new)
    case += ROWS if name == "produced" else ""
    schedule = parse_schedule(f"schedule({work.spec.name})\n{case}\n{more}\n")
    return lower(work.spec, schedule, machine_of(machine), work.tune)


def staged_bytes(nest, machine):
    """Elements of each tile through which results are stored."""
    (launch,) = backend().program(backend().spelled(nest), machine).launches
    tiles = [t for t in launch.shared if t.name.stem == "stored"]
    return {tuple(e.value for e in t.extents) for t in tiles}, launch


@pytest.mark.parametrize(
    "name, target, more, extents",
    [
        ("staged", "h200", "epilogue(y, by=registers)", set()),
        ("staged", "h200", "epilogue(y, by=shared, columns=32)", {(64, 32)}),
        slow("staged", "a100", "epilogue(y, by=shared, columns=32)", {(64, 32)}),
        ("produced", "h200", "epilogue(y, by=shared, columns=64)", {(128, 64)}),
        slow("persistent", "h200", "epilogue(y, by=shared)", {(4, 0)}),
    ],
)
def test_a_tile_leaves_as_decided_and_results_are_right(name, target, more, extents, tmp_path):
    machine, nest = machine_of(target), stored(name, target, more)
    source = backend().emit(nest, machine)
    if name != "persistent":  # whose width only the launch knows
        assert staged_bytes(nest, machine)[0] == extents
    assert source != backend().emit(stored(name, target, ""), machine)
    whole = [dict(M=200, K=136, N=264)] if name == "produced" else []
    for sizes in (work_of(name).checks[-1], *whole):
        known = reference(nest.spec, sizes, 7)
        found = emulated(source, nest, machine, sizes, known.inputs, tmp_path)
        for output, array in found.items():
            compare(nest.spec, sizes, output, array, known)
        if target == "h200":
            backend()._interpreted(nest, machine, sizes, known.inputs)


def test_an_engine_stores_parts_of_a_tile():
    nest = stored("produced", "h200", "epilogue(y, by=shared, columns=64)")
    _, launch = staged_bytes(nest, machine_of("h200"))
    loops = [s for s in of.statements(launch.body) if isinstance(s, of.Loop)]
    parts = [s for s in loops if any(isinstance(x, of.BoxStore) for x in s.body)]
    assert len(parts) == 1 and parts[0].unrolled and parts[0].high.value == 2


@pytest.mark.parametrize(
    "name, more, why",
    [
        ("staged", "epilogue(y, by=shared, columns=64)", "a tile with 64 columns is not stored 64"),
        ("staged", "epilogue(y, by=shared, columns=24)", "is not stored 24 at a time"),
        ("staged", "epilogue(y, by=shared, columns=4)", "threads do not hold 4 columns of 64"),
        ("produced", "epilogue(y, by=shared, columns=32)", "32 columns are no panels of 64"),
        ("persistent", "epilogue(y, by=shared, columns=64)", "as its launch says"),
    ],
)
def test_what_threads_do_not_hold_is_refused(name, more, why):
    with pytest.raises(BackendError, match=why):
        backend().emit(stored(name, "h200", more), machine_of("h200"))


@pytest.mark.parametrize(
    "name, more, why",
    [
        ("produced", "epilogue(y, by=registers)", "stored by an engine"),
        ("staged", "epilogue(y, by=registers, columns=32)", "pass through shared memory"),
        ("staged", "epilogue(acc, by=registers)", "`acc` is not stored"),
        ("staged", "epilogue(y, by=engine)", "`engine` is no way"),
    ],
)
def test_what_is_no_epilogue_is_refused(name, more, why):
    with pytest.raises(KernelError, match=why):
        stored(name, "h200", more)
