"""What a source in CuTe DSL may use is told whole."""

import re

from backends.cutedsl.admission import CALLED, FUNCTIONS, IMPORTS, MEMBERS, TYPES
from backends.registry import backend, target

TEXT = backend("cutedsl").interface(target("h200"))


def test_every_name_that_is_admitted_is_told():
    members = {name for words in MEMBERS.values() for name in words}
    for name in (*CALLED, *FUNCTIONS, *TYPES, *members):
        assert re.search(rf"\b{name}\b", TEXT), name
    assert all(line in TEXT for line in IMPORTS)


def test_functions_have_their_parameters():
    assert "copy_async(to, pointer, at, inside=True)  # Copies global to shared memory" in TEXT
    assert "fn.maximum(a, b)  # The larger operand; NaN if either is NaN." in TEXT
