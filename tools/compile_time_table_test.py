"""Tests that the table of compile times has a line for each module."""

from tools.results_table import table

RESULT = {
    "command": "c",
    "date": "d",
    "machine": "a machine",
    "versions": {"torch": "2"},
    "rows": [
        {
            "module": "encoder",
            "limit_s": 20.0,
            "load": 0.5,
            "target": "chip",
            "backend": "tongue",
            "steps": 84,
            "kernels": 7,
            "wall_s": {"start": 6.07, "import": 1.65, "schedule": 3.81, "build": 1.78},
            "cpu_s": {"start": 6.16, "import": 1.66, "schedule": 5.31, "build": 2.92},
            "total_wall_s": 13.31,
            "total_cpu_s": 16.05,
        }
    ],
}


def test_each_module_is_a_line():
    text = table(RESULT)
    assert text.startswith("`c`, d, a machine, torch 2.")
    assert "| `encoder` | chip | 84 | 7 | 6.1 | 1.6 | 3.8 | 1.8 | 13.3 | 20.0 | 16.1 |" in text
