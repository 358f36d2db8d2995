"""An autoschedule is computed once for each variant, machine and sizes."""

from dataclasses import replace

import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.machine import Space
from search.core.testing import CHIP, SIZES, SPEC
from search.warm_start import autoscheduled as module
from search.warm_start.autoscheduled import scheduled


@pytest.fixture
def asked(monkeypatch):
    module._found.cache_clear()
    calls = []

    def counting(*given):
        calls.append(given)
        return autoschedule(*given)

    monkeypatch.setattr(module, "autoschedule", counting)
    yield calls
    module._found.cache_clear()


def test_it_is_the_autoschedule_and_is_found_out_once(asked):
    first = scheduled(SPEC, CHIP, SIZES)
    assert first == autoschedule(SPEC, CHIP, SIZES)
    assert scheduled(SPEC, replace(CHIP), dict(SIZES)) is first
    assert len(asked) == 1


def test_another_machine_or_other_sizes_are_another_case(asked):
    larger = replace(CHIP, spaces={**CHIP.spaces, "local": Space(1 << 20)})
    scheduled(SPEC, CHIP, SIZES)
    scheduled(SPEC, larger, SIZES)
    scheduled(SPEC, CHIP, {**SIZES, "M": 128})
    assert len(asked) == 3


def test_what_cannot_be_lowered_is_refused_each_time(asked):
    tiny = replace(CHIP, spaces={**CHIP.spaces, "local": Space(1)})
    for _ in range(2):
        with pytest.raises(KernelError):
            scheduled(SPEC, tiny, SIZES)
    assert len(asked) == 1
