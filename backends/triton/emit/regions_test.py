"""Addresses and masks: offsets, padding, steps, rows, and sizes that are sums."""

from __future__ import annotations

import pytest

from backends.registry import target
from backends.triton.testing.walks import emitted, wrong
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of

H200 = target("h200")
SIZES = dict(M=21, K=40)
ROWS = ("tile(m, size=4)", "place(m.outer, level=grid)")


@pytest.fixture
def text(tmp_path):
    """The text of a kernel that gives what the reference gives."""

    def make(*equations, rows=ROWS, sizes=SIZES, **kwargs):
        spec = spec_of(*equations, **kwargs)
        nest = lower(spec, decisions(spec, *rows), H200, sizes)
        assert wrong(nest, H200, sizes, tmp_path) == ""
        return emitted(nest, H200, tmp_path).file.read_text()

    return make


def test_a_plain_region_has_a_mask_for_each_index_that_can_lie_outside(text):
    found = text("y[m, k] = x[m, k] * 2.0")
    assert "x_ptr + offs_m[:, None] * K + offs_k[None, :],\n" in found
    assert "mask=mask_m[:, None] & mask_k[None, :],\n" in found


def test_scalars_come_before_blocks_and_need_no_mask(text):
    found = text("y[m, k] = x[m, k] * 2.0", rows=("tile(m, size=1)", ROWS[1]))
    assert "x_ptr + m_at * K + offs_k, mask=mask_k" in found


def test_an_offset_is_added_once(text):
    found = text("y[m, k] = x[m + 2, k] * 2.0", inputs="x: f32[M + 2, K]")
    assert "x_ptr + 2 * K + offs_m[:, None] * K + offs_k[None, :]" in found


def test_steps_are_multiplied(text):
    found = text("y[m, k] = x[m, 3 * k + 1] * 2.0", inputs="x: f32[M, 3 * K + 1]")
    assert "offs_k[None, :] * 3" in found


def test_positions_outside_a_padded_tensor_are_asked_for_once(text):
    found = text("y[m, k] = pad(x[m, k - 1], 0.5) * 2.0")
    assert found.count("x_dim1 = offs_k[None, :] - 1\n") == 1
    assert "(x_dim1 >= 0) & (x_dim1 < K)" in found
    assert "other=0.5" in found
    assert "x_dim0" not in found, "m cannot lie outside but where its tile does"


def test_a_padded_scalar_position(text):
    found = text("y[m, k] = pad(x[m - 1, k], 1.0) * 2.0", rows=("tile(m, size=1)", ROWS[1]))
    assert "x_dim0 = m_at - 1\n" in found and "(x_dim0 >= 0)" in found


def test_windows_are_read_term_by_term(text):
    lines = ("tile(m, size=4)", "place(m.outer, level=grid)", "tile(i, size=1)")
    text(
        "y[m, k] = sum(pad(x[m, k + i - 1], 0.0) * w[i], i)",
        rows=lines,
        inputs="x: f32[M, K], w: f32[3]",
    )


@pytest.mark.parametrize("size", [1, 4, 16])
def test_rows_are_gathered(text, size):
    found = text(
        "y[m, k] = t[i[m], k] * 2.0",
        inputs="t: f32[V, K], i: i32[M]",
        rows=(f"tile(m, size={size})", ROWS[1]),
        sizes=SIZES | {"V": 9},
    )
    assert ("i_ptr + m_at" in found) == (size == 1)


def test_positions_may_be_arithmetic_of_indices(text):
    found = text("y[m, k] = x[m, (k + 3) % K]")
    assert "x_rows = (offs_k + 3) % K" in found


@pytest.mark.parametrize("tile", [1, 2])
def test_strides_and_grids_of_sizes_that_are_sums(text, tile):
    lines = (
        f"tile(b, size={tile})",
        "tile(k, size=4)",
        "place(b.outer, level=grid)",
        "place(k.outer, level=grid)",
    )
    text(
        "y[b, k, i] = x[b + 1, k, i] - x[b, k, i]",
        inputs="x: f32[B, K, L]",
        rows=lines,
        result="f32[B - 1, K, L]",
        sizes=dict(B=6, K=8, L=3),
    )
    found = text(
        "y[k, i, b] = x[k, i, b + 1] - x[k, i, b]",
        inputs="x: f32[K, L, B]",
        rows=lines,
        result="f32[K, L, B - 1]",
        sizes=dict(B=6, K=8, L=3),
    )
    assert "* (B - 1)" in found


def test_a_result_without_an_index_is_stored_by_one_program(text):
    found = text("y[()] = sum(x[m, k], m, k)", rows=("tile(m, size=4)",), result="f32[()]")
    assert "tl.store(y_ptr, y)" in found
