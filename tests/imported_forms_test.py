"""Specs of the shapes that modules of other frameworks come in are scheduled without a search.

All are lowered for all targets here, and some of each sort built and run on one of either kind;
`imported_forms_slow_test.py` takes the rest.
"""

import pytest

from backends.registry import target
from testing.slow import in_turn
from tests.forms import TEXTS, built, form, narrowed, require_right, scheduled

TARGETS = ("npu", "npu_small", "h200", "mi300")
CHOSEN = (
    "pointwise.volume_ones",
    "pointwise.flipped",
    "pointwise.joined",
    "pointwise.reshaped",
    "pointwise.diagonal",
    "reductions.total",
    "reductions.one_to_none",
    "reductions.channels",
    "reductions.lowest_middle",
    "norms.batch_norm",
    "norms.softmax_channels",
    "norms.cross_entropy",
    "contractions.tiny",
    "contractions.mm",
    "contractions.bilinear",
    "windows.conv2d_groups",
    "windows.depthwise_half",
    "windows.conv_transposed2d",
    "windows.max_pool2d",
    "places.gather_middle",
    "places.scatter_same",
    "places.scan_reverse",
    "places.top_k",
)
NARROWED = ("reductions.rows", "norms.layer_norm", "contractions.bmm", "windows.conv1d")


@pytest.mark.parametrize(("name", "machine"), in_turn(TEXTS, TARGETS))
def test_a_form_is_scheduled_and_fits(name, machine):
    assert scheduled(form(name), target(machine)).launches


@pytest.mark.parametrize(("name", "machine"), in_turn(CHOSEN, ["npu", "h200"]))
def test_a_form_is_built_and_right(name, machine, tmp_path):
    chip = target(machine)
    nest = scheduled(form(name), chip)
    require_right(built(nest, chip, tmp_path), nest, chip)


@pytest.mark.parametrize("machine", ["npu", "h200"])
@pytest.mark.parametrize("name", NARROWED)
def test_a_form_is_right_in_a_narrow_dtype(name, machine, tmp_path):
    chip = target(machine)
    nest = scheduled(narrowed(name, "bf16"), chip)
    require_right(built(nest, chip, tmp_path), nest, chip)
