"""The same for all forms on all targets, in all dtypes; half an hour."""

import pytest

from backends.registry import target
from tests.forms import TEXTS, built, form, narrowed, require_right, scheduled

TARGETS = ("npu", "npu_small", "h200", "mi300")
WIDE = [name for name, text in TEXTS.items() if " f32[" in text.split("\n", 1)[0]]


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_form_is_built_without_spills_and_right(name, machine, tmp_path):
    chip = target(machine)
    nest = scheduled(form(name), chip)
    made = built(nest, chip, tmp_path)
    assert not made.figures.get("spills"), nest.schedule
    require_right(made, nest, chip)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("name", WIDE)
def test_a_form_is_right_in_narrow_dtypes(name, machine, dtype, tmp_path):
    chip = target(machine)
    nest = scheduled(narrowed(name, dtype), chip)
    require_right(built(nest, chip, tmp_path), nest, chip)
