"""Thread programs of this language: tiles pass through registers, transposed where K is not contiguous;
how many wavefronts a SIMD shall hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.gpu.threads import thread as of
from backends.hip.backend import program, spelled
from backends.hip.bounds import waves_per_eu
from backends.hip.testing.samples import machine_of, nest_of
from ir.sizes import bind

MI300 = machine_of("mi300")


def launch(name):
    (found,) = program(spelled(nest_of(name)), MI300).launches
    return found


def k_loop(one):
    kinds = {of.SharedStore, of.Multiply}
    loops = (s for s in of.statements(one.body) if isinstance(s, of.Loop))
    return next(s for s in loops if kinds <= {type(x) for x in of.statements(s.body)})


@pytest.mark.parametrize("name", ["staged", "ring", "streamed"])
def test_nothing_is_copied_past_the_registers(name):
    kinds = {type(s) for s in of.statements(launch(name).body)}
    assert not kinds & {of.Copy, of.Commit, of.Wait, of.WarpgroupMultiply}
    assert {of.SharedStore, of.SharedLoad, of.Multiply} <= kinds


@pytest.mark.parametrize(("name", "buffers", "barriers"), [("staged", 1, 2), ("ring", 2, 1)])
def test_a_pipelined_loop_has_a_buffer_less_than_stages(name, buffers, barriers):
    one = launch(name)
    assert {t.stages for t in one.shared if t.panel} == {buffers}
    assert sum(isinstance(s, of.Barrier) for s in of.statements(k_loop(one).body)) == barriers


def test_a_tile_is_stored_before_the_next_is_loaded_and_multiplied_last():
    order = [
        type(s)
        for s in of.statements(k_loop(launch("staged")).body)
        if isinstance(s, of.SharedStore | of.Load | of.Multiply)
    ]
    first = [order.index(kind) for kind in (of.SharedStore, of.Load, of.Multiply)]
    assert first == sorted(first)


def test_operands_of_16_bits_lie_with_k_contiguous():
    tiles = {t.name.stem: t for t in launch("staged").shared if t.panel}
    assert {stem: t.axes for stem, t in tiles.items()} == {"x": ("m", "k"), "w": ("n", "k")}


def test_wavefronts_of_a_simd_follow_from_lds_and_registers():
    one, sizes = launch("staged"), bind(nest_of("staged").spec, dict(nest_of("staged").sizes))
    given = waves_per_eu(one, sizes, MI300)
    assert given > 1
    least = {**MI300.details["gpu"], "shared_bytes_per_unit": 8192}
    small = replace(MI300, details={**MI300.details, "gpu": least})
    assert waves_per_eu(one, sizes, small) == 1  # only one block fits
    few = {**MI300.details["gpu"], "registers_per_thread": 128}
    assert waves_per_eu(one, sizes, replace(MI300, details={**MI300.details, "gpu": few})) < given


def test_without_a_matmul_the_bound_is_a_block_alone():
    one, nest = launch("rows"), nest_of("rows")
    assert waves_per_eu(one, bind(nest.spec, dict(nest.sizes)), MI300) == 1
