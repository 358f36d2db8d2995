"""Tests the text of the oracle's table, and the message without pycute."""

import json
import random
import sys
from types import SimpleNamespace

from tools import cute_table


def test_a_table_is_json_with_a_case_a_line():
    written = cute_table.text({"coalesce": [["(2,2):(1,2)", "4:1"], ["3:1", "3:1"]]})
    assert json.loads(written)["coalesce"][1] == ["3:1", "3:1"]
    assert '\n["3:1","3:1"]\n' in written and "4.2.0.0" in json.loads(written)["oracle"]


def test_without_pycute_the_program_says_where_it_is(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pycute", None)
    assert cute_table.main() == 2
    assert "nvidia-cutlass==4.2.0.0" in capsys.readouterr().err


def test_strides_that_nest_reach_distinct_elements():
    layout = SimpleNamespace(Layout=lambda shape, stride: (shape, stride))
    draw = cute_table._Draw(layout, random.Random(0))
    for _ in range(50):
        shape, stride = draw.spread()
        pairs = zip(cute_table._flat(shape), cute_table._flat(stride))
        found = [0]
        for extent, distance in pairs:
            found = [i * distance + j for i in range(extent) for j in found]
        assert len(set(found)) == len(found)
