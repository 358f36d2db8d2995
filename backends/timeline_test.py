"""A timeline is JSON that trace viewers read."""

import json

from backends.timeline import Bar, write_timeline


def test_bars_follow_one_another_unless_they_say_where_they_start(tmp_path):
    bars = (Bar("a", 2.0), Bar("b", 3.0, facts={"b.registers": 32.0}), Bar("c", 1.0, start_us=9.0))
    write_timeline(tmp_path / "t.json", (*bars, Bar("d", 1.0)))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [(e["name"], e["ts"], e["dur"]) for e in events] == [
        ("a", 0.0, 2.0),
        ("b", 2.0, 3.0),
        ("c", 9.0, 1.0),
        ("d", 10.0, 1.0),
    ]
    assert [e.get("args") for e in events] == [None, {"b.registers": 32.0}, None, None]
    assert {e["ph"] for e in events} == {"X"}
