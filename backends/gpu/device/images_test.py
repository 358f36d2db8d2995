"""Inputs as they lie in a buffer: those that nobody can change are made once."""

import numpy as np
import pytest
import torch

from backends.gpu.device import arena
from backends.gpu.device.arena import FENCE, Arena, Images
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_spec
from ir.schedule import Schedule

SPEC = parse_spec(
    'def double(x: f32[M]) -> f32[M]:\n    """Twice."""\n    y[m] = 2.0 * x[m]\n    return y\n'
)
M = 8
ARRAY = np.arange(M, dtype=np.float32)
IMAGE = 3 * FENCE  # bytes: a tensor that is shorter than a fence, between two


def fixed(array):
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.fixture
def images(monkeypatch):
    """Of arenas that keep two images."""
    monkeypatch.setattr(arena, "DEVICE", "cpu")
    monkeypatch.setattr(arena, "_IMAGES", kept := Images(2 * IMAGE))
    return kept


def made(array, m=M):
    nest = LoopNest(SPEC, SPEC, Schedule("double"), "", (("M", m),), ())
    return Arena(nest, {"M": m}, {"x": array})


def given(array, m=M):
    return made(array, m).given()["x"]


def test_the_image_of_an_array_that_cannot_be_written_is_kept(images):
    first = given(fixed(ARRAY))
    assert first.tolist() == ARRAY.tolist()
    assert given(fixed(ARRAY)).data_ptr() == first.data_ptr() and images.bytes == IMAGE
    other = given(fixed(ARRAY[::-1]))
    assert other.data_ptr() != first.data_ptr() and other.tolist() == ARRAY[::-1].tolist()


def test_what_can_be_written_is_made_anew(images):
    array = ARRAY.copy()
    assert given(array)[0] == 0.0
    array[0] = 5.0
    assert given(array)[0] == 5.0 and images.bytes == 0


def test_no_more_is_kept_than_the_limit_and_the_first_ones_are(images):
    arrays = [fixed(ARRAY + number) for number in range(3)]
    pointers = [given(a).data_ptr() for a in arrays]
    assert images.bytes == 2 * IMAGE
    assert [given(a).data_ptr() for a in arrays[:2]] == pointers[:2]
    assert given(arrays[2]).tolist() == (ARRAY + 2).tolist()


def test_images_of_other_sizes_take_the_place_of_what_is_kept(images):
    first = given(fixed(ARRAY))
    assert given(fixed(ARRAY[:4]), 4).tolist() == ARRAY[:4].tolist()
    assert images.bytes == IMAGE and torch.equal(first, torch.from_numpy(ARRAY))
