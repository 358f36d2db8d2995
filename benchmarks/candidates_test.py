"""Tests that the candidates of contests lower and that their baselines exist."""

from __future__ import annotations

import pytest

from backends.registry import backend, served_by, target
from benchmarks.baselines import BASELINES
from benchmarks.candidates import CONTESTS, SCHEDULES
from benchmarks.products import work
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule


@pytest.mark.parametrize("name", CONTESTS)
def test_candidates_lower_at_all_sizes_of_their_contest(name):
    one = CONTESTS[name]
    own = one.candidates("h200", "cutedsl")
    assert own, "a contest without candidates"
    machine = served_by(target("h200"), backend("cutedsl"))
    for each in own:
        text = each.schedule("h200", "cutedsl").read_text(encoding="utf-8")
        lower(each.work().spec, parse_schedule(text, each.name), machine, one.sizes)
    assert all(work(row) > 0 for row in one.rows) and one.kernel in BASELINES


def test_every_folder_of_candidates_is_of_a_contest():
    known = {c.name for c in CONTESTS.values()}
    assert {f.name for f in (SCHEDULES / "h200").iterdir() if f.is_dir()} <= known
