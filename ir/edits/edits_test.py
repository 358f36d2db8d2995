"""Edits: single changes to a schedule, and the difference of two."""

import dataclasses
import random

import pytest

from ir.autoschedule.autoschedule import autoschedule, plain
from ir.edits.edits import Edit, difference, neighbours
from ir.edits.stages import STAGES, pipeline
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import VERBS, canonical
from ir.machine import NOTED, Rendering
from ir.parse.schedule import parse_schedule
from ir.schedule import Decision, Schedule
from testing.samples.samples import (
    KERNELS,
    SMALL,
    WITH_TF32,
    WITH_THREADS,
    decisions,
    spec_of,
    workload,
)

SIZES = {"M": 64, "K": 128}
FURTHER = 3  # edits after the first one
SOFTMAX = workload("softmax").spec


def texts(name: str, *lines: str) -> set[str]:
    w = workload(name)
    return {str(e) for e in neighbours(w.spec, decisions(w.spec, *lines), SMALL, w.checks[-1])}


@pytest.mark.parametrize("name", KERNELS)
def test_neighbours_are_different_and_come_in_the_same_order_each_time(name):
    w = workload(name)
    sizes = w.checks[-1]
    start = autoschedule(w.spec, SMALL, sizes)
    found = neighbours(w.spec, start, SMALL, sizes)
    assert found == neighbours(w.spec, parse_schedule(str(start)), SMALL, sizes)
    assert len(set(found)) == len(found)
    assert {(e.new or e.old).verb for e in found} <= VERBS.keys()


@pytest.mark.parametrize("name", KERNELS)
def test_every_neighbour_is_another_canonical_schedule_that_reads_back(name):
    w = workload(name)
    sizes = w.checks[1]
    start = plain(w.spec, SMALL, sizes)
    for edit in neighbours(w.spec, start, SMALL, sizes):
        changed = edit.apply(start)
        assert changed != start, edit
        assert canonical(changed) == changed
        assert parse_schedule(str(changed)) == changed


@pytest.mark.parametrize("name", KERNELS)
def test_lowering_accepts_a_neighbour_or_says_why_not(name):
    w = workload(name)
    sizes = w.checks[1]
    start = autoschedule(w.spec, SMALL, sizes)
    legal = 0
    for edit in neighbours(w.spec, start, SMALL, sizes)[::3]:
        try:
            lower(w.spec, edit.apply(start), SMALL, sizes)
        except KernelError as fault:
            assert fault.what
        else:
            legal += 1
    assert legal


def test_tiles_are_powers_of_two_up_to_what_covers_the_index():
    found = {t for t in texts("softmax") if t.startswith("+ tile(m")}
    assert found == {f"+ tile(m, size={s})" for s in (1, 2, 4, 8, 16, 32, 64)}


def test_a_tile_is_changed_or_dropped():
    found = texts("softmax", "tile(m, size=4)")
    assert "tile(m, size=4) -> tile(m, size=8)" in found
    assert "- tile(m, size=4)" in found
    assert "+ tile(m, size=8)" not in found


def test_the_tile_of_a_jagged_range_is_not_dropped():
    assert "- tile(l, size=4)" not in texts("embedding_bag", "tile(l, size=4)")


def test_only_what_is_not_reduced_is_placed_on_the_grid():
    found = texts("softmax", "tile(m, size=4)", "tile(k, size=8)")
    assert {t for t in found if "place" in t} == {
        "+ place(m.outer, level=grid)",
        "+ place(m.outer, level=loop)",
        "+ place(k.outer, level=loop)",
    }


def test_a_placed_loop_can_be_moved_to_the_front():
    spec = workload("matmul_bias_gelu").spec
    lines = (
        "tile(m, size=4)",
        "tile(n, size=4)",
        "place(m.outer, level=grid)",
        "place(n.outer, level=grid)",
    )
    start = decisions(spec, *lines)
    (front,) = [
        e
        for e in neighbours(spec, start, SMALL, {"M": 8, "K": 8, "N": 8})
        if str(e).endswith(" first")
    ]
    found = front.apply(start)
    assert [d.subject for d in found.of("place")] == ["n.outer", "m.outer"]
    assert set(found.decisions) == set(start.decisions)


def test_every_number_of_stages_is_offered_and_in_loops_a_load_at_the_grid():
    found = texts("softmax", "tile(k, size=8)", "pipeline(y, stages=3)")
    assert {f"+ pipeline(x, stages={n})" for n in STAGES} <= found
    assert {"- pipeline(y, stages=3)", "+ load(x, at=grid)"} <= found
    assert "+ pipeline(x, stages=1)" not in found


def test_what_a_launch_makes_beside_its_last_tensor_has_stages_too():
    spec = spec_of(
        "h[m, k] = x[m, k] * 2.0",
        "l[m, k] = x[m, k] - h[m, k]",
        "y[m, n] = sum((h[m, k] + l[m, k]) * w[k, n], k)",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    start = decisions(spec, "kernel(l)", "tile(k, size=8)")
    edits = neighbours(spec, start, WITH_THREADS, {"M": 8, "K": 16, "N": 8})
    assert {"h", "l", "x", "w"} <= {
        e.decision.subject for e in edits if e.decision.verb == "pipeline"
    }
    alone = neighbours(
        spec, decisions(spec, "tile(k, size=8)"), WITH_THREADS, {"M": 8, "K": 16, "N": 8}
    )
    assert not {"h", "l"} & {e.decision.subject for e in alone if e.decision.verb == "pipeline"}


def rendered(machine, *verbs, stages_of="tensor"):
    return dataclasses.replace(machine, rendering=Rendering("other", verbs, stages_of))


def test_what_the_backend_does_not_render_is_not_offered():
    spec = workload("matmul_bias_gelu").spec
    start = decisions(spec, "tile(m, size=4)", "tile(n, size=4)", "tile(k, size=4)")
    start = decisions(spec, *map(str, start.decisions), "place(m.outer, level=grid)")
    sizes = {"M": 8, "K": 8, "N": 8}
    for machine in (SMALL, WITH_THREADS):
        found = {e.decision.verb for e in neighbours(spec, start, rendered(machine), sizes)}
        assert found and not found & set(NOTED)
    found = {e.decision.verb for e in neighbours(spec, start, rendered(SMALL, "multicast"), sizes)}
    assert "multicast" in found and "pipeline" not in found


def test_where_loops_have_stages_all_loads_of_one_change_together():
    spec = workload("matmul_bias_gelu").spec
    machine = rendered(WITH_THREADS, "pipeline", stages_of="loop")
    lines = ("tile(m, size=4)", "tile(n, size=4)", "tile(k, size=4)")
    both = decisions(spec, *lines, "pipeline(x, stages=2)", "pipeline(w, stages=2)")
    found = {str(e): e for e in neighbours(spec, both, machine, {"M": 8, "K": 8, "N": 8})}
    more = found["pipeline(x, stages=2) -> pipeline(x, stages=3)"].apply(both)
    assert [str(d) for d in more.of("pipeline")] == [
        "pipeline(x, stages=3)",
        "pipeline(w, stages=3)",
    ]
    assert not found["- pipeline(w, stages=2)"].apply(both).of("pipeline")


def test_a_maximum_streams_and_a_sum_is_fused_with_what_comes_after():
    assert "+ online(mx, into=s)" in texts("softmax")
    assert "+ fuse(ss, into=acc)" in texts("rmsnorm_matmul")
    assert "+ fuse(acc, into=ss)" not in texts("rmsnorm_matmul")
    assert "+ hoist(r, into=y)" in texts("rmsnorm_matmul")


def test_the_place_of_an_extremum_streams_with_it():
    spec = spec_of("y[m] = argmax(x[m, k], k)", result="i32[M]")
    found = neighbours(spec, decisions(spec, "tile(k, size=2)"), SMALL, {"M": 4, "K": 8})
    assert "online(y_top, into=y)" in {str(e.new) for e in found}


def test_products_choose_their_unit_and_precision():
    found = texts("matmul_bias_gelu", "compute(acc, unit=matrix)", "precision(acc, dtype=bf16)")
    assert "compute(acc, unit=matrix) -> compute(acc, unit=vector)" in found
    assert "- precision(acc, dtype=bf16)" in found
    assert not {t for t in texts("softmax") if "compute" in t}


def test_a_launch_ends_after_any_equation_but_the_last():
    found = {t for t in texts("softmax", "kernel(mx)") if "kernel" in t}
    assert found == {"- kernel(mx)", "+ kernel(e)", "+ kernel(s)"}


def test_dropping_a_tile_drops_what_was_decided_on_its_loop():
    start = decisions(
        SOFTMAX,
        "tile(m, size=4)",
        "tile(k, size=8)",
        "place(m.outer, level=grid)",
        "multicast(x, over=m.outer)",
        "load(x, at=k.outer)",
        "pipeline(x, stages=2)",
    )
    without_m = Edit(start.find("tile", "m"), None).apply(start)
    assert [d.verb for d in without_m.decisions] == ["tile", "load", "pipeline"]
    without_k = Edit(start.find("tile", "k"), None).apply(start)
    assert without_k.find("pipeline", "x") == pipeline("x", 2)
    assert without_k.find("load", "x") is None


def test_an_edit_of_a_decision_that_is_gone_adds_the_new_one():
    edit = Edit(Decision("tile", "m", (("size", 2),)), Decision("tile", "m", (("size", 4),)))
    assert str(edit.apply(decisions(SOFTMAX))) == "schedule(softmax)\ntile(m, size=4)\n"


@pytest.mark.parametrize("name", KERNELS)
def test_the_difference_of_two_schedules_leads_from_one_to_the_other(name):
    w = workload(name)
    sizes = w.checks[1]
    a, b = autoschedule(w.spec, SMALL, sizes), plain(w.spec, SMALL, sizes)
    edits = list(difference(a, b))
    random.Random(1).shuffle(edits)
    edits.sort(key=lambda e: (e.new or e.old).verb != "tile")  # loops before what is on them
    found = a
    for edit in edits:
        found = edit.apply(found)
    assert set(found.decisions) == set(b.decisions)


def test_equal_schedules_have_no_difference():
    s = autoschedule(SOFTMAX, SMALL, SIZES)
    assert difference(s, s) == ()
    assert difference(Schedule("softmax"), s) == tuple(Edit(None, d) for d in s.decisions)


@pytest.mark.parametrize("name", ["attention", "conv2d", "softmax"])
def test_where_programs_have_threads_neighbours_are_legal_or_say_why_not(name):
    w = workload(name)
    sizes = w.checks[-1]
    start = autoschedule(w.spec, WITH_THREADS, sizes)
    found = neighbours(w.spec, start, WITH_THREADS, sizes)
    assert len(set(found)) == len(found)
    verbs = {(e.new or e.old).verb for e in found}
    looped = any(not d.option("level") == "grid" for d in start.of("place"))
    assert {"threads", "persistent"} <= verbs and "multicast" not in verbs
    assert ("pipeline" in verbs) >= looped
    legal = 0
    for edit in found[::5]:
        changed = edit.apply(start)
        assert parse_schedule(str(changed)) == changed == canonical(changed) != start
        try:
            lower(w.spec, changed, WITH_THREADS, sizes)
        except KernelError as fault:
            assert fault.what
        else:
            legal += 1
    assert legal


def test_what_two_loops_over_one_index_read_may_be_kept():
    lines = ("tile(m, size=4)", "place(m.outer, level=grid)", "tile(k, size=8)")
    found = texts("layer_norm", *lines)
    assert "+ keep(x, over=k.outer)" in found
    assert not any("keep" in text and "m.outer" in text for text in found)
    found = texts("matmul_bias_gelu", *lines, "tile(n, size=4)")
    assert {text for text in found if "keep" in text} == {
        "+ keep(x, over=k.outer)",
        "+ keep(w, over=k.outer)",
        *(f"+ keep({name}, over=n.outer)" for name in ("w", "b")),
    }


def test_a_kept_tensor_has_no_stages():
    w = workload("layer_norm")
    lines = ("tile(m, size=4)", "tile(k, size=8)", "pipeline(x, stages=2)")
    start = decisions(w.spec, *lines)
    edits = {str(e): e for e in neighbours(w.spec, start, SMALL, w.checks[-1])}
    kept = edits["+ keep(x, over=k.outer)"].apply(start)
    assert not kept.of("pipeline") and kept.of("keep")
    assert not any(
        text.startswith("+ pipeline(x") for text in texts("layer_norm", *map(str, kept.decisions))
    )
    edits = {str(e): e for e in neighbours(w.spec, kept, SMALL, w.checks[-1])}
    assert not edits["- tile(k, size=8)"].apply(kept).of("keep")


def test_tiles_that_share_a_grid_evenly_are_offered_on_the_grid_alone():
    spec, machine = workload("map_id").spec, SMALL
    sizes = {"U": 64, "B": 1000}
    even = {-(-1000 // (machine.parallel * rounds)) for rounds in (1, 2, 3, 4)}

    def offered(chip, *more):
        start = decisions(spec, "tile(b, size=8)", *more)
        edits = neighbours(spec, start, chip, sizes)
        return {e.new.number("size") for e in edits if e.new and e.new.verb == "tile"}

    assert even <= offered(machine, "place(b.outer, level=grid)") | {8}
    assert not any(n & (n - 1) for n in offered(machine))
    assert not any(n & (n - 1) for n in offered(WITH_THREADS, "place(b.outer, level=grid)"))


def test_reassociation_drops_what_was_decided_on_the_tensor_that_it_replaces():
    w = workload("wukong_fm")
    sizes = w.checks[-1]
    lines = ("tile(b, size=1)", "compute(out, unit=matrix)", "threads(out, count=64)")
    start = decisions(
        w.spec, "kernel(t)", "compute(t, unit=matrix)", "threads(t, count=32)", *lines
    )
    lower(w.spec, start, WITH_THREADS, sizes)
    found = neighbours(w.spec, start, WITH_THREADS, sizes)
    (edit,) = (e for e in found if e.decision.verb == "associate")
    changed = edit.apply(start)
    made = {"associate(t)", "compute(t_again, unit=matrix)"}
    assert set(map(str, changed.decisions)) == {*made, *lines}
    lower(w.spec, changed, WITH_THREADS, sizes)
    found = neighbours(w.spec, changed, WITH_THREADS, sizes)
    (back,) = (e for e in found if e.decision.verb == "associate")
    assert set(map(str, back.apply(changed).decisions)) == set(lines)


def test_a_launch_that_ends_within_steps_of_one_block_leaves_neighbours():
    spec = spec_of(
        "a[m, k] = pad(y[m - 1, k], 0.0) * 0.5 + x[m, k]",
        "y[m, k] = exp(a[m, k])",
    )
    start = decisions(spec, "carry(y)")
    ended = Edit(None, Decision("kernel", "a"))
    assert ended in neighbours(spec, start, WITH_THREADS, SIZES)
    found = neighbours(spec, ended.apply(start), WITH_THREADS, SIZES)
    assert Edit(ended.new, None) in found


def test_reassociation_keeps_what_is_hoisted_before_it():
    start = decisions(workload("wukong_fm").spec, "hoist(t, into=out)", "fuse(out, into=t)")
    made = Edit(None, Decision("associate", "t")).apply(start)
    assert {str(d) for d in made.decisions} == {"associate(t)", "hoist(t, into=out)"}


@pytest.mark.parametrize(
    "name, lines",
    [
        ("wukong_fm", ("associate(t)", "kernel(t)")),
        ("wukong_fm", ("kernel(t_again)",)),
        ("ssm", ("carry(h)", "kernel(h)", "kernel(nothing)")),
        ("rmsnorm_matmul", ("kernel(nothing)", "threads(y, count=64)")),
    ],
)
@pytest.mark.parametrize("machine", [SMALL, WITH_TF32, WITH_THREADS], ids=lambda m: m.name)
def test_a_schedule_without_legal_launches_has_neighbours_too(name, lines, machine):
    w = workload(name)
    start = decisions(w.spec, *lines)
    with pytest.raises(KernelError):
        lower(w.spec, start, machine, w.tune)
    found = {str(e) for e in neighbours(w.spec, start, machine, w.tune)}
    assert any(text.startswith("+ tile(") for text in found)
    assert not any("threads" in text for text in found)


@pytest.mark.parametrize("name", [*KERNELS, "ssm"])
@pytest.mark.parametrize("machine", [WITH_TF32, WITH_THREADS], ids=lambda m: m.name)
def test_whatever_was_edited_has_neighbours(name, machine):
    """Operators make several edits before the result is lowered, so schedules between are illegal."""
    w, rng = workload(name), random.Random(name)
    start = plain(w.spec, machine, w.checks[-1])
    for first in _by_kind(neighbours(w.spec, start, machine, w.checks[-1])).values():
        walked = [first[0]]
        schedule = first[0].apply(start)
        for _ in range(FURTHER):
            try:
                found = neighbours(w.spec, schedule, machine, w.checks[-1])
            except KernelError as fault:
                raise AssertionError(f"after {walked}: {fault}") from fault
            walked.append(rng.choice(rng.choice(list(_by_kind(found).values()))))
            schedule = walked[-1].apply(schedule)


def _by_kind(edits: tuple[Edit, ...]) -> dict[tuple[str, str, bool], list[Edit]]:
    kinds: dict[tuple[str, str, bool], list[Edit]] = {}
    for e in edits:
        kinds.setdefault((e.decision.verb, e.decision.subject, e.new is None), []).append(e)
    return kinds
