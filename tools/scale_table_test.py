"""Tests that the tables of a model of scale mark the measured figures and the error of the
model."""

from tools.scale_table import scale

ROW = {
    "name": "1 device",
    "kind": "modelled",
    "searches": 2,
    "slots": 4,
    "devices": 1,
    "throughput": 1.234,
    "busy": 0.5,
    "measuring": 0.875,
    "waited": 0.999,
    "losses": 0.0,
    "kernels_an_hour": 12.3,
    "cost": 0.12345,
}
RUN = {
    "workers": 2,
    "throughput": 2.5,
    "busy": 0.9,
    "modelled": {"throughput": 2.6, "busy": 0.95},
    "error": 0.04,
}
RESULT = {
    "scale": "npu",
    "command": "python3 -m benchmarks.scale model",
    "date": "2026-11-27",
    "machine": "AMD, 2 cores",
    "versions": {"simpy": "4.1.2"},
    "prices": {"core_hour": 0.05, "device_hour": 4.0, "kind": "assumed"},
    "rows": [ROW, {**ROW, "devices": 0}],
}


def test_modelled_figures_are_called_so():
    origin, prices, table = scale({**RESULT, "sources": {}})
    assert origin == "`python3 -m benchmarks.scale model`, 2026-11-27, AMD, 2 cores, simpy 4.1.2."
    assert "modelled" in prices and "assumed: 0.05 for an hour of a core, 4 for one" in prices
    assert "| 1 device | 2 | 4 | 1 | 1.23 | 50.0% | 87.5% | 0.99 | 0 | 12 | 0.1235 |" in table
    assert "| 1 device | 2 | 4 | - | 1.23 | 50.0% | - | 0.99 | 0 | 12 | 0.1235 |" in table


def test_real_runs_stand_beside_what_the_model_says():
    searched = {
        "target": "npu",
        "kernel": "softmax",
        "sizes": {"M": 8, "N": 9},
        "evaluations": 64,
    }
    found = scale({**RESULT, "runs": [RUN], "searched": searched, "calibration": {"cores": 2}})
    assert "`softmax` at 8x9 on `npu`, 64 evaluations, on 2 cores" in found[1]
    assert "the largest error is 4.0%" in found[1]
    assert "| 2 | 2.50 | 2.60 | +4.0% | 90.0% | 95.0% |" in found[2]


def test_what_stage_times_are_from_is_said():
    found = scale({**RESULT, "sources": {"build": "measured: x.json"}})
    assert found[1] == "- build: measured: x.json"
