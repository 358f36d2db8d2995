"""One test for each check on a decision by itself."""

import dataclasses

import pytest

from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import RANK, VERBS, canonical
from ir.machine import Rendering, Unit
from ir.parse.schedule import parse_schedule
from testing.samples.samples import SMALL, decisions, lowered, spec_of, workload

SOFTMAX = workload("softmax").spec


def fault(*lines: str, kernel: str = "softmax", machine=SMALL) -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered(kernel, *lines, machine=machine)
    return caught.value


def test_a_schedule_is_for_its_own_kernel():
    with pytest.raises(KernelError, match="is for `relu`, the spec is `softmax`") as caught:
        lower(SOFTMAX, parse_schedule("schedule(relu)\n"), SMALL, {"M": 1, "K": 1})
    assert "schedule(softmax)" in caught.value.hint


def test_nothing_is_decided_twice():
    found = fault("tile(m, size=1)", "tile(m, size=2)")
    assert "`tile(m, ...)` is decided twice" in str(found)
    assert found.place.line == 3


def test_an_unknown_verb_is_named_with_those_there_are():
    found = fault("splice(m)")
    assert "unknown decision `splice`" in str(found)
    assert found.allowed == ", ".join(VERBS)


def test_an_unknown_option_is_named_with_those_there_are():
    found = fault("tile(m, size=1, order=2)")
    assert "`tile` has no option `order`" in str(found)
    assert found.allowed == "size"


def test_a_verb_without_options_says_none():
    assert fault("kernel(mx, now=1)").allowed == "none"


def test_a_missing_option_is_named_with_its_form():
    found = fault("tile(m)")
    assert "`tile` needs `size=`" in str(found)
    assert "tile(m, size=...)" in found.hint


@pytest.mark.parametrize("size", ["0", "-4", "1.5", "m"])
def test_a_tile_has_a_positive_whole_size(size):
    assert f"`size={size}` is not a positive integer" in str(fault(f"tile(m, size={size})"))


def test_a_pipeline_has_two_stages_or_more():
    assert "`stages=0` is not a positive integer" in str(fault("pipeline(x, stages=0)"))
    found = fault("pipeline(x, stages=1)")
    assert "`stages=1` is no pipeline" in str(found)
    assert (found.allowed, found.hint) == ("2 or more", "drop pipeline(x, ...)")


@pytest.mark.parametrize(
    "line, needed",
    [("load(x)", "at"), ("pipeline(x)", "stages"), ("copy(x)", "by")],
)
def test_how_a_tensor_moves_is_said_in_full(line, needed):
    assert f"needs `{needed}=`" in str(fault(line))
    assert "has no option `space`" in str(fault(f"{line[:-1]}, space=local)"))


def test_an_unknown_index_is_named_with_those_there_are():
    found = fault("tile(q, size=4)")
    assert "`q` is no index here" in str(found)
    assert found.allowed == "m, k"


def test_only_what_is_tiled_has_a_loop_to_place():
    found = fault("place(m.outer, level=grid)")
    assert "`m.outer` is no loop here" in str(found)
    assert (found.allowed, found.hint) == ("none", "tile its index first")


def test_an_unknown_level_is_named_with_those_there_are():
    found = fault("tile(m, size=1)", "place(m.outer, level=warp)")
    assert "`warp` is no level here" in str(found)
    assert found.allowed == "grid, loop"


def test_an_unknown_unit_is_named_with_those_of_the_machine():
    found = fault("compute(acc, unit=tensor)", kernel="matmul_bias_gelu")
    assert "`tensor` is no unit here" in str(found)
    assert found.allowed == "matrix, vector, special"


def test_an_unknown_tensor_is_named_with_those_there_are():
    found = fault("pipeline(w, stages=2)")
    assert "`w` is no tensor here" in str(found)
    assert found.allowed == "x, mx, e, s, y"


def test_a_verb_that_the_backend_does_not_render_is_refused_with_those_it_does():
    machine = dataclasses.replace(SMALL, rendering=Rendering("other", ("multicast",)))
    with pytest.raises(KernelError) as caught:
        lower(SOFTMAX, decisions(SOFTMAX, "pipeline(x, stages=2)"), machine, {"M": 2, "K": 5})
    assert "backend `other` of" in str(caught.value)
    assert "does not render `pipeline`" in str(caught.value)
    assert caught.value.allowed == "beside what every backend renders: multicast"
    assert caught.value.hint == "drop pipeline(x, stages=2)"
    assert caught.value.place


def test_an_accumulator_that_lowering_would_not_use_is_refused():
    found = fault("compute(s, unit=vector, acc=f16)")
    assert "`s` is accumulated in f32, not f16" in str(found)
    assert found.allowed == "f32"


def test_a_tensor_is_loaded_at_the_grid_or_at_a_loop():
    found = fault("load(x, at=k.outer)")
    assert "`k.outer` is no place here" in str(found)
    assert (found.allowed, found.hint) == ("grid", "tile its index first")


def test_only_reductions_are_fused():
    found = fault("fuse(e, into=s)")
    assert "`e` is no reduction here" in str(found)
    assert found.allowed == "mx, s"


def test_a_maximum_is_no_sum_of_products():
    found = fault("compute(mx, unit=matrix)")
    assert "`mx` is not a sum of products that the matrix unit takes" in str(found)
    assert found.hint == "compute(mx, unit=vector)"


def test_operands_are_rounded_to_a_dtype_of_the_inputs_only():
    found = fault("precision(acc, dtype=f16)", kernel="matmul_bias_gelu")
    assert "may not be rounded to f16, which no input has" in str(found)
    assert found.allowed == "bf16, f32"


def test_an_unknown_dtype_is_named_with_those_there_are():
    assert "`f8` is no dtype here" in str(fault("precision(mx, dtype=f8)"))


def test_a_matrix_unit_takes_only_operands_of_its_dtypes():
    units = {**SMALL.units, "matrix": Unit({"f16": 1e9}, (4, 4, 4))}
    half = dataclasses.replace(SMALL, units=units)
    found = fault("compute(acc, unit=matrix)", kernel="matmul_bias_gelu", machine=half)
    assert "the matrix unit of `small` takes no bf16 operands, which `acc` has" in str(found)
    assert (found.allowed, found.hint) == ("f16", "compute(acc, unit=vector)")


def test_only_a_maximum_is_online():
    spec = spec_of(
        "a[m] = sum(x[m, k], k)",
        "b[m] = sum(x[m, k] ** 2, k)",
        "y[m] = a[m] + b[m]",
        result="f32[M]",
    )
    with pytest.raises(KernelError):
        lower(
            spec, decisions(spec, "tile(k, size=2)", "online(a, into=b)"), SMALL, {"M": 2, "K": 5}
        )


def test_the_canonical_order_is_that_of_the_verbs_and_keeps_places_in_theirs():
    given = decisions(
        SOFTMAX,
        "pipeline(x, stages=2)",
        "place(m.outer, level=grid)",
        "place(k.outer, level=loop)",
        "tile(k, size=2)",
        "tile(m, size=4)",
        "kernel(mx)",
    )
    found = canonical(given)
    assert [RANK[d.verb] for d in found.decisions] == sorted(RANK[d.verb] for d in given.decisions)
    assert [d.subject for d in found.of("place")] == ["m.outer", "k.outer"]
    assert canonical(found) == found
    assert set(found.decisions) == set(given.decisions)


def test_every_verb_says_what_it_turns_into_what():
    for verb in VERBS.values():
        assert " -> " in verb.doc
