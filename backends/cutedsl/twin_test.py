"""The text of each sort of kernel, run thread by thread, gives what the reference gives."""

import pytest

from backends.backend import BackendError
from backends.cutedsl.testing.samples import QUICK, SIZES, backend, machine_of, nest_of
from backends.cutedsl.testing.twin import require_right
from testing.slow import slow_but

CASES = [(name, sizes) for name in QUICK for sizes in SIZES[name]]


@pytest.mark.parametrize(
    "case",
    slow_but(lambda case: case[1] == SIZES[case[0]][0], CASES),
    ids=lambda c: f"{c[0]}-{c[1]}",
)
def test_a_text_is_right_thread_by_thread(case):
    name, sizes = case
    require_right(name, sizes)


@pytest.mark.parametrize(
    ("name", "before", "after", "fault"),
    [
        ("rows", "shuffle_xor(mx, 1 << distance)", "mx", BackendError),
        ("rows", "store(", "load(", Exception),
        ("staged", "cute.arch.sync_threads()", "cute.arch.cp_async_commit_group()", BackendError),
    ],
)
def test_a_spoiled_text_is_found(name, before, after, fault):
    source = backend().emit(nest_of(name), machine_of("h200"))
    assert before in source
    with pytest.raises(fault):
        require_right(name, SIZES[name][-1], source.replace(before, after))
