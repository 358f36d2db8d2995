"""Tests that the table of our search and Helion's matches its rows."""

from tools.results_table import table

RESULT = {
    "command": "python3 -m benchmarks.autotuners --target=chip --helion=DIR --seconds=60 --out=FILE",
    "date": "2026-11-28",
    "machine": "A chip",
    "driver": "1",
    "versions": {"torch": "2"},
    "rows": [
        {
            "kernel": "layer_norm",
            "dtype": "f16",
            "shape": {"M": 8},
            "reason": "race: no end after 180 s",
        },
        {
            "kernel": "softmax",
            "dtype": "f32",
            "shape": {"M": 4096, "K": 4096},
            "helion": {"one": {"tuning_s": 72.2}, "two": {"tuning_s": 63.7}},
            "helion_version": "1.4.0",
            "helion_settings": {"A": "60"},
            "ours": {"wall_s": 80.7},
            "us": 49.1,
            "helion_us": 50.3,
            "form": "two",
            "speedup": 1.029,
        },
    ],
}


def test_a_kernel_has_both_times_and_how_long_each_side_took():
    made = table(RESULT)
    assert "| softmax | M=4096 K=4096 | f32 | 49.1 | 50.3 | 1.02 | `two` | 81 | 64 |" in made
    assert "A chip, driver 1, torch 2" in made and "Helion 1.4.0, with `A=60`." in made


def test_what_failed_is_named_with_its_reason():
    made = table(RESULT)
    assert "| layer_norm | M=8 | f16 | - | - | - | - | - | - |" in made
    assert "- layer_norm: race: no end after 180 s" in made


def test_where_helion_never_ran_it_is_said():
    assert "Helion did not run." in table({**RESULT, "rows": RESULT["rows"][:1]})
