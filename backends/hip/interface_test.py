"""The description of HIP C++ sources is complete."""

import re

from backends.gpu.source.admission import CALLED, TYPES
from backends.hip.admission import ADMISSION
from backends.registry import backend, target

TEXT = backend("hip").interface(target("mi300"))


def test_every_function_that_is_admitted_is_declared():
    for name in (ADMISSION.called | CALLED) - TYPES:
        shape = name.removeprefix("mfma_").removeprefix("scaled_")
        assert re.search(rf"\b{shape}\b", TEXT), name
    assert "inline T shuffle_xor(T x, int distance);" in TEXT


def test_its_example_is_admitted():
    (example,) = re.findall(r"## An example\n\n```c\+\+\n(.*?)```", TEXT, re.DOTALL)
    ADMISSION.require(example)
