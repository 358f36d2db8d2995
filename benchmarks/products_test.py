"""Tests that rows of the races lower with their schedules, and checks options and rates."""

from __future__ import annotations

import pytest

from backends.registry import target
from benchmarks import products, starter
from benchmarks.entrant import ROOT, SCHEDULES, choose
from benchmarks.shapes import Row, rows
from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.workload import Workload
from testing.samples.samples import KERNELS

MACHINE = target("h200")
PRODUCTS = list(products.rows())


@pytest.mark.parametrize("row", PRODUCTS, ids=lambda r: r.key)
def test_a_product_has_a_schedule_that_lowers(row):
    found = choose(row, products.spec_of(row), MACHINE)
    assert found.origin == f"{SCHEDULES}/h200/{row.key}.sched"


def test_every_schedule_is_of_a_row():
    keys = {row.key for row in (*rows(), *PRODUCTS)}
    for file in (ROOT / SCHEDULES).glob("*/*.sched"):
        assert file.stem in keys, f"{file} is for no row of shapes.py or products.py"


@pytest.mark.parametrize("file", sorted((ROOT / SCHEDULES).glob("*/*.sched")), ids=lambda f: f.stem)
def test_every_schedule_lowers(file):
    row = next(r for r in (*rows(), *PRODUCTS) if r.key == file.stem)
    spec = (products if row in PRODUCTS else starter).spec_of(row)
    assert choose(row, spec, target(file.parent.name)).origin.endswith(file.name)


@pytest.mark.parametrize("file", sorted(products.SPECS.glob("*.kir")), ids=lambda f: f.stem)
def test_a_spec_is_a_workload_of_its_own_name(file):
    found = parse_workload(file.read_text(encoding="utf-8"), str(file))
    assert isinstance(found, Workload) and found.spec.name == file.stem and len(found.checks) > 2


def test_the_starter_has_rows_of_every_kernel_of_the_library():
    found = list(rows())
    assert {row.kernel for row in found} == set(KERNELS)
    assert len({row.key for row in found}) == len(found)
    for row in found:
        starter.spec_of(row)


def test_operations_are_counted_as_the_field_does():
    sizes = {"H": 2, "M": 8, "N": 8, "D": 4}
    assert products.work(Row("attention", "bf16", sizes)) == 4 * 2 * 8 * 8 * 4
    assert products.work(Row("attention_causal", "bf16", sizes)) == 2 * 2 * 8 * 8 * 4
    row = Row("matmul_f32", "f32", {"M": 100, "N": 100, "K": 100})
    made = products.rates(row, {"us": 2.0, "baselines_us": {"eager": 1.0, "compile": None}}, 1e13)
    assert made["tflops"] == pytest.approx(1.0) and made["peak_share"] == pytest.approx(0.1)
    assert made["baselines_tflops"] == {"eager": pytest.approx(2.0), "compile": None}


def test_kernels_dtypes_and_baselines_can_be_chosen():
    assert {r.dtype for r in starter.asked_rows("conv1d,softmax", "f16")} == {"f16"}
    assert len(starter.asked_rows("", "")) == len(list(rows()))
    assert starter.asked_baselines("conv1d", "eager") == [
        "eager",
        "eager_conv2d",
        "eager_channels_last",
    ]
    assert starter.asked_baselines("softmax", "none") == []
    with pytest.raises(KernelError, match="no kernel `sofmax`"):
        starter.asked_rows("sofmax", "")
    with pytest.raises(KernelError, match="no baseline `egaer`"):
        starter.asked_baselines("softmax", "egaer")


@pytest.mark.parametrize("command", [starter, products])
def test_wrong_use_is_exit_code_2(command, capsys, tmp_path):
    given = ["--target=h200", f"--out={tmp_path}/r.json", "--kernels=nothing"]
    assert command.main(given) == 2
    assert "nothing" in capsys.readouterr().err
