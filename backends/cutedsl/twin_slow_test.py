"""All sorts of kernels run thread by thread, which takes minutes."""

import pytest

from backends.cutedsl.testing.samples import QUICK, SIZES
from backends.cutedsl.testing.twin import require_right

CASES = [(name, sizes) for name in SIZES if name not in QUICK for sizes in SIZES[name]]


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=[f"{n}-{s}" for n, s in CASES])
def test_a_text_is_right_thread_by_thread(name, sizes):
    require_right(name, sizes)
