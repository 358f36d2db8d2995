"""Loops around each other that are written as one."""

from __future__ import annotations

import re

import pytest

from backends.registry import target
from backends.triton.testing.walks import emitted, wrong
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of

H200 = target("h200")
SPEC = spec_of(
    "y[o, l] = sum(x[l + i, c + 2 * j] * w[i, j, c, o], c, i=3, j=2)",
    inputs="x: f32[L + 2, C + 2], w: f32[3, 2, C, O]",
    result="f32[O, L]",
)
LINES = (
    "tile(c, size=16)",
    "tile(i, size=1)",
    "tile(j, size=1)",
    "place(c.outer, level=loop)",
    "place(i.outer, level=loop)",
    "place(j.outer, level=loop)",
    "compute(y, unit=matrix)",
    "precision(y, dtype=tf32)",
)
AHEAD = ("pipeline(x, stages=3)", "pipeline(w, stages=3)")


def text(tmp_path, *lines, sizes):
    nest = lower(SPEC, decisions(SPEC, *lines), H200, sizes)
    assert wrong(nest, H200, sizes, tmp_path) == ""
    return emitted(nest, H200, tmp_path).file.read_text()


@pytest.mark.parametrize("channels", [16, 37])
def test_what_loads_ahead_does_so_across_all_steps(tmp_path, channels):
    found = text(tmp_path, *LINES, *AHEAD, sizes={"C": channels, "O": 20, "L": 33})
    assert "for j_step in tl.range(0, tl.cdiv(C, 16) * 6, num_stages=3):" in found
    assert "c_at = j_step // 6 * 16\n" in found
    assert "i_at = j_step // 2 % 3\n" in found
    assert "j_at = j_step % 2\n" in found
    assert len(re.findall(r"for \w+ in (?:tl\.)?(?:static_)?range", found)) == 1


def test_what_is_known_is_counted_and_passed(tmp_path):
    lines = (*LINES, *AHEAD, "specialize(y)")
    found = text(tmp_path, *lines, sizes={"C": 37, "O": 20, "L": 33})
    assert "num_stages=3):" in found and "_step in tl.range(" in found


def test_others_stay_apart(tmp_path):
    found = text(tmp_path, *LINES, sizes={"C": 37, "O": 20, "L": 33})
    assert len(re.findall(r"for \w+_at in (?:tl\.)?(?:static_)?range", found)) == 3
