"""The same for many schedules, and for random specs; minutes. Every fourth one is compiled too."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends.backend import BackendError
from backends.registry import target
from backends.triton.build import compile as compiler
from backends.triton.testing.walks import NAMES, case, emitted, refused, require_right, walk, wrong
from ir.errors import KernelError
from ir.lower.lower import lower
from testing.samples.random_specs import sizes_for, specs

H200 = target("h200")
SEEDS = range(100, 116)
ALLOWED = ("bytes of shared memory", "registers", "in bulk", "still at it")  # refused then
SMALL = ("conv1d", "conv2d", "pairwise_dot")  # the interpreter takes minutes for larger ones


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_what_lowering_accepts_is_right_whatever_was_decided(name, seed, tmp_path):
    checks = case(name).checks
    sizes = checks[1] if name in SMALL or len(checks) < 3 else checks[1 + seed % 2]
    require_right(name, H200, seed, tmp_path, sizes, sizes)


@pytest.mark.parametrize("target_name", ["h200", "mi300"])
@pytest.mark.parametrize("seed", SEEDS[:4])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_emitted_compiles(name, seed, target_name, tmp_path):
    machine, work = target(target_name), case(name)
    nest = lower(work.spec, walk(work.spec, machine, work.tune, seed), machine, work.tune)
    try:
        text = emitted(nest, machine, tmp_path).file.read_text(encoding="utf-8")
        assert compiler.build(text, nest, machine, tmp_path).figures["registers"] > 0
    except BackendError as error:
        assert any(words in error.reason for words in ALLOWED), f"{nest.schedule}\n{error}"


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(spec=specs(), seed=st.integers(0, 1 << 20), data=st.data())
def test_random_specs_are_right(tmp_path_factory, spec, seed, data):
    sizes = {name: 7 * n - 3 for name, n in data.draw(sizes_for(spec)).items()}
    try:
        schedule = walk(spec, H200, sizes, seed)
    except KernelError:
        return  # nothing is lowered for it
    nest = lower(spec, schedule, H200, sizes)
    try:
        fault = wrong(nest, H200, sizes, tmp_path_factory.mktemp("kernel"), seed % 2)
    except BackendError as error:
        if refused(error):
            return
        raise
    assert not fault, f"{schedule}\n{sizes}\n{fault}"
