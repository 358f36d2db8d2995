"""Clusters: which chips have them, for which blocks they are legal, and what is offered."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ir.errors import KernelError
from ir.machine import NOTED, Rendering
from ir.nest.nest import Cluster
from machines.gpu import clusters
from machines.registry import read
from testing.samples.samples import decisions, lowered, spec_of, workload

TARGETS = Path(__file__).parents[2] / "backends" / "targets"
TILED = (
    *("tile(m, size=64)", "tile(n, size=64)", "tile(k, size=64)"),
    *("place(m.outer, level=grid)", "place(n.outer, level=grid)"),
    *("compute(acc, unit=matrix)", "precision(acc, dtype=bf16)"),
    *("pipeline(x, stages=2)", "pipeline(w, stages=2)"),
)
BULK = ("copy(x, by=bulk)", "copy(w, by=bulk)")
SIZES = {"M": 256, "N": 256, "K": 256}


def chip(name="h200", verbs=NOTED):
    made = read(tomllib.loads((TARGETS / f"{name}.toml").read_text(encoding="utf-8")))
    return replace(made, rendering=Rendering(name, verbs))


def found(*lines, machine=None, kernel="matmul_bias_gelu"):
    return lowered(kernel, *TILED, *lines, sizes=SIZES, machine=machine or chip()).launches


def refused(*lines, machine=None, kernel="matmul_bias_gelu"):
    with pytest.raises(KernelError) as caught:
        found(*lines, machine=machine, kernel=kernel)
    assert caught.value.place.line > 1 and caught.value.allowed and caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize("lines", [BULK, BULK[1:]])
def test_a_launch_has_the_cluster_that_was_decided(lines):
    (launch,) = found(*lines, "cluster(m, size=2)")
    assert launch.cluster == Cluster("m", 2)
    assert found(*lines)[0].cluster is None


@pytest.mark.parametrize(
    ("name", "most"), [("h100", 8), ("h200", 8), ("b200", 8), ("a100", 1), ("mi300", 1)]
)
def test_a_target_says_how_many_blocks_a_cluster_has(name, most):
    assert max(clusters.sizes(chip(name)), default=1) == most
    assert "has no clusters of 16 thread blocks" in refused(
        "cluster(m, size=16)", machine=chip(name)
    )


def test_other_numbers_of_blocks_are_refused():
    for size in (1, 3, 12):
        assert "2, 4, 8" in refused(*BULK, f"cluster(m, size={size})")


def test_a_backend_may_not_render_it():
    fewer = chip(verbs=tuple(v for v in NOTED if v != "cluster"))
    assert "does not render `cluster`" in refused(*BULK, "cluster(m, size=2)", machine=fewer)


def test_blocks_that_copy_nothing_alike_are_refused():
    assert "(nothing), nothing is the same" in refused("cluster(m, size=2)")
    assert "(`x`), nothing is the same for all tiles of `m`" in refused(
        BULK[0], "cluster(m, size=2)"
    )


def test_blocks_that_walk_unlike_loops_are_refused():
    lines = (
        *("tile(h, size=1)", "tile(m, size=64)", "tile(n, size=64)", "place(h.outer, level=grid)"),
        *("place(m.outer, level=grid)", "fuse(l, into=o)", "online(mx, into=o)"),
        *("compute(s, unit=matrix)", "compute(o, unit=matrix)", "causal_bound(n, at=m)"),
        *("copy(k, by=bulk)", "copy(v, by=bulk)", "cluster(m, size=2)"),
    )
    causal = spec_of(
        "s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)",
        "a[h, m, n] = where(n <= m, s[h, m, n], -inf)",
        "mx[h, m] = max(a[h, m, n], n)",
        "p[h, m, n] = exp(a[h, m, n] - mx[h, m])",
        "l[h, m] = sum(p[h, m, n], n)",
        "o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)",
        "y[h, m, d] = o[h, m, d] / l[h, m]",
        inputs="q: bf16[H, M, D], k: bf16[H, N, D], v: bf16[H, N, D]",
        result="bf16[H, M, D]",
    )
    sizes = {"H": 4, "M": 256, "N": 256, "D": 64}
    with pytest.raises(KernelError, match="the loop over `n` is another for each tile of `m`"):
        lowered(causal, *lines, sizes=sizes, machine=chip())


def test_a_cluster_is_along_one_index_of_the_grid():
    assert "no launch has tiles of `k` on its grid" in refused(*BULK, "cluster(k, size=2)")
    assert "along two indices" in refused(*BULK, "cluster(m, size=2)", "cluster(n, size=2)")


def test_groups_of_an_l2_swizzle_are_whole_clusters():
    assert "are not whole clusters of 4" in refused(
        *BULK, "rasterize(m, size=2, over=n)", "cluster(m, size=4)"
    )
    assert found(*BULK, "rasterize(m, size=2, over=n)", "cluster(n, size=4)")


def test_clusters_are_offered_along_what_a_bulk_copy_lacks():
    spec, machine = workload("matmul_bias_gelu").spec, chip()

    def offered(*lines, machine=machine):
        schedule = decisions(spec, *TILED, *lines)
        pairs = clusters.changes(spec, schedule, machine)
        return {(str(old or ""), str(new or "")) for old, new in pairs}

    assert offered() == set()
    assert offered(BULK[0]) == {("", f"cluster(n, size={s})") for s in (2, 4, 8)}
    changed = offered(*BULK, "cluster(m, size=2)")
    assert ("cluster(m, size=2)", "cluster(m, size=4)") in changed
    assert ("cluster(m, size=2)", "") in changed and ("", "cluster(n, size=2)") in changed
    assert not offered(*BULK, machine=chip("a100"))
