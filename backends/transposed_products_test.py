"""Images with their channels first, in boxes: the language that takes them as the left operand of the large instruction does
so, and all languages compute the same."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from backends.measure import check
from backends.registry import REGISTRY, served_by, target
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule, parse_workload

WORK = parse_workload(
    '''def f(x: f32[B, C, P], w: f32[O, C]) -> f32[B, O, P]:
    """Mix channels."""
    y[b, o, p] = sum(x[b, c, p] * w[o, c], c)
    return y
tune(B=4, C=64, O=128, P=1024)
check(B=2, C=40, O=72, P=136)
check(B=1, C=5, O=3, P=7)
''',
    "f",
)
SPEC = replace(WORK.spec, rounded=("y",))
LINES = (
    *("schedule(f)", "tile(b, size=1)", "tile(o, size=64)", "tile(p, size=64)", "tile(c, size=16)"),
    *(f"place({i}.outer, level=grid)" for i in "bop"),
    *("place(c.outer, level=loop)", "compute(y, unit=matrix)", "precision(y, dtype=tf32)"),
    *("pipeline(x, stages=2)", "pipeline(w, stages=2)", "threads(y, count=128)"),
)
BULK = ("copy(x, by=bulk)", "copy(w, by=bulk)")


def lowered(language, *more, narrower=()):
    machine = served_by(target("h200"), REGISTRY.backend(language))
    lines = [*(t for t in LINES if not t.startswith(tuple(n.split(",")[0] for n in narrower)))]
    text = "\n".join((*lines, *narrower, *more)) + "\n"
    return lower(SPEC, parse_schedule(text), machine, WORK.tune), machine


@pytest.mark.parametrize("language", ["triton", "cuda", "cutedsl"])
def test_such_a_product_is_right(language, tmp_path):
    backend = REGISTRY.backend(language)
    nest, machine = lowered(language, *BULK)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    for sizes in WORK.checks:
        check(backend, built, nest, machine, SPEC, sizes, seed=3)


def sides(*more, narrower=()):
    """The operands of the product, and what becomes of the sum behind its loop."""
    nest, machine = lowered("triton", *more, narrower=narrower)
    source = REGISTRY.backend("triton").emit(nest, machine)
    (product,) = re.findall(r"tl\.dot\((.*?), y,", source)
    return product, "    y = tl.trans(y)\n" in source


def test_pixels_of_boxes_are_rows_and_the_sum_is_transposed_behind_its_loop():
    assert sides(*BULK) == ("tl.trans(y_a), tl.trans(y_b)", True)


@pytest.mark.parametrize(
    ("more", "narrower"),
    [((), ()), (BULK, ("tile(p, size=32)",))],
    ids=["copied by threads", "too few rows"],
)
def test_others_keep_their_sides(more, narrower):
    assert sides(*more, narrower=narrower) == ("y_b, y_a", False)
