"""Inputs as tensors on the host: those that nobody can change are made once."""

import numpy as np

from backends.gpu.device.running import Hosted

ARRAY = np.arange(8, dtype=np.float32)


def fixed(array):
    view = array.view()
    view.flags.writeable = False
    return view


def test_the_tensor_of_an_array_that_cannot_be_written_is_kept():
    hosted = Hosted(1 << 10)
    made = hosted.get(fixed(ARRAY), "f32")
    assert made.tolist() == ARRAY.tolist() and hosted.get(fixed(ARRAY), "f32") is made
    others = [hosted.get(fixed(ARRAY), "bf16"), hosted.get(fixed(ARRAY[:4]), "f32")]
    others.append(hosted.get(fixed(ARRAY[::2]), "f32"))
    assert all(other is not made for other in others)
    assert others[2].tolist() == [0.0, 2.0, 4.0, 6.0]


def test_what_can_be_written_is_made_anew():
    array, hosted = ARRAY.copy(), Hosted(1 << 10)
    assert hosted.get(array, "f32")[0] == 0.0
    array[0] = 5.0
    assert hosted.get(array, "f32")[0] == 5.0


def test_no_more_is_kept_than_the_limit():
    hosted = Hosted(2 * ARRAY.nbytes)
    arrays = [fixed(ARRAY + number) for number in range(3)]
    first = hosted.get(arrays[0], "f32")
    for array in arrays[1:]:
        hosted.get(array, "f32")
    assert hosted.bytes == 2 * ARRAY.nbytes and hosted.get(arrays[0], "f32") is not first
    large = fixed(np.zeros(1000, np.float32))
    assert hosted.get(large, "f32") is not hosted.get(large, "f32")
