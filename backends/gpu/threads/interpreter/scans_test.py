"""Scans over several warps: right at odd sizes, and what goes wrong between their parts."""

from dataclasses import replace

import numpy as np
import pytest

from backends.gpu.layout.layout import Layout
from backends.gpu.plain_rules import RULES
from backends.gpu.threads import thread as to
from backends.gpu.threads.distribution import bits_of
from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.faults import ThreadFault
from backends.gpu.threads.interpreter.interpret import interpret
from backends.gpu.threads.program import thread_program
from testing.samples.samples import WITH_INSTRUCTIONS, lowered, spec_of


def program(equation="cumsum(x[m, k], k)", rows=1, warps=4, k=1024):
    decided = (f"tile(m, size={rows})", "place(m.outer, level=grid)")
    decided += (f"threads(y, count={32 * warps})",)
    spec = spec_of(f"y[m, k] = {equation}")
    nest = lowered(spec, *decided, sizes=dict(M=4, K=k), machine=WITH_INSTRUCTIONS)
    return thread_program(nest, WITH_INSTRUCTIONS, RULES, ())


def run(given, k=1000):
    x = np.random.default_rng(0).normal(size=(5, k)).astype(np.float32)
    tensors = {"x": x, "y": np.full_like(x, np.nan)}
    interpret(given, {"M": 5, "K": k}, tensors, (), 1 << 16)
    return x, tensors["y"]


def changed(given, change):
    """The program with statements of its launch replaced."""
    (launch,) = given.launches
    made = replace(launch, body=tuple(found for s in launch.body for found in change(s)))
    assert made != launch, "nothing was planted"
    return replace(given, groups=((None, (made,)),))


@pytest.mark.parametrize("warps", [2, 4, 8])
@pytest.mark.parametrize("k", [1, 130, 1000, 1024])
def test_a_row_is_scanned_by_all_warps_of_its_block(warps, k):
    given = program(warps=warps)
    scan = next(s for s in given.launches[0].body if isinstance(s, to.Scan))
    axis = given.launches[0].fragment(scan.name).axes[-1]
    assert scan.totals is not None and len(bits_of(axis)) == 4 + warps.bit_length()
    x, y = run(given, k)
    assert np.allclose(y, x.cumsum(axis=1), rtol=1e-4, atol=1e-3)


def test_maxima_begin_with_what_is_less_than_all():
    x, y = run(program("cummax(x[m, k], k)"))
    assert (y == np.maximum.accumulate(x, axis=1)).all()


def test_warps_with_rows_of_their_own_exchange_nothing():
    body = program(rows=4).launches[0].body
    assert not any(isinstance(s, to.ScanAfter | to.Barrier) for s in body)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda s: () if isinstance(s, to.Barrier) else (s,), faults.READ_AFTER_WRITE),
        (lambda s: () if isinstance(s, to.SharedStore) else (s,), faults.UNINITIALISED),
        (
            lambda s: (replace(s, totals=None),) if isinstance(s, to.Scan) else (s,),
            faults.FRAGMENT,
        ),
        (
            lambda s: (to.Guard(to.Thread(), (s,)),) if isinstance(s, to.Scan) else (s,),
            faults.DIVERGENT,
        ),
    ],
    ids=["no barrier", "no totals", "one warp", "divergent"],
)
def test_what_is_planted_is_named(change, kind):
    with pytest.raises(ThreadFault) as fault:
        run(changed(program(), change))
    assert fault.value.kind == kind


def test_parts_in_another_order_are_a_fault():
    given = program()
    (launch,) = given.launches
    after = next(s for s in launch.body if isinstance(s, to.ScanAfter))
    permuted = tuple(
        replace(f, axes=(*f.axes[:-1], replace(f.axes[-1], thread=Layout((64, 2), (0, 1)))))
        if f.name == after.totals
        else f
        for f in launch.fragments
    )
    with pytest.raises(ThreadFault) as fault:
        run(replace(given, groups=((None, (replace(launch, fragments=permuted),)),)))
    assert fault.value.kind in (faults.FRAGMENT, faults.LAYOUT)
