"""What a source in Triton may use is told whole."""

import re

from backends.registry import backend, target
from backends.triton.build.admission import (
    BUILTINS,
    IMPORTS,
    LANGUAGE,
    OF_VALUES,
    ON_TENSORS,
    TORCH,
    TRITON,
    require_admissible,
)

TEXT = backend("triton").interface(target("h200"))


def test_every_name_that_is_admitted_is_told():
    for name in (*BUILTINS, *LANGUAGE, *OF_VALUES, *ON_TENSORS, *TORCH, *TRITON):
        assert re.search(rf"\b{name}\b", TEXT), name
    assert all(line in TEXT for line in IMPORTS)


def test_functions_have_the_parameters_of_the_installed_triton():
    assert re.search(r"tl\.load\(pointer, mask=None, other=None, .*eviction_policy=", TEXT)
    assert "_semantic" not in TEXT and "tl.program_id(axis)" in TEXT


def test_its_example_is_admitted():
    (example,) = re.findall(r"## An example\n\n```python\n(.*?)```", TEXT, re.DOTALL)
    require_admissible(example)
