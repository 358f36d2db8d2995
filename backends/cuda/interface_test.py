"""What a source in CUDA C++ may use is told whole."""

import re

from backends.cuda.admission import ADMISSION, require_admissible
from backends.gpu.source.admission import CALLED, TYPES
from backends.registry import backend, target

TEXT = backend("cuda").interface(target("h200"))


def test_every_function_that_is_admitted_is_declared():
    for name in (ADMISSION.called | CALLED) - TYPES:
        assert re.search(rf"\b{name}\b", TEXT), name
    assert "Registers = elements that are consecutive in memory" in TEXT
    assert "template <int kPending> inline void wait_copies();" in TEXT
    assert "`EvictFirst EvictLast NoHint PastL1`" in TEXT


def test_its_example_is_admitted():
    (example,) = re.findall(r"## An example\n\n```c\+\+\n(.*?)```", TEXT, re.DOTALL)
    require_admissible(example)
