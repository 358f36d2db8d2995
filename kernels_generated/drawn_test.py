"""Each kernel is evaluated by one of its backends every time, and each target by some kernel."""

from types import SimpleNamespace

import pytest

from ir.errors import KernelError
from kernels_generated import drawn as module
from kernels_generated.drawn import drawn
from search.record.record import RECORD


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A record of which only the backend is read, where there is one."""

    def parsed(text):
        if not text:
            raise KernelError("no record")
        return SimpleNamespace(backend=text)

    def written(place, backend):
        made = tmp_path / place
        made.mkdir(parents=True)
        (made / RECORD).write_text(backend)
        return made

    monkeypatch.setattr(module, "parse_record", parsed)
    return written


def test_one_record_of_each_kernel_is_drawn(record):
    kernels = [f"kernel{n}" for n in range(16)]
    folders = [
        record(f"{kernel}/{target}", backend)
        for kernel in kernels
        for target, backend in (("small", "one"), ("large", "one"), ("other", "two"))
    ]
    found = drawn(folders[::-1])
    assert found == drawn(folders)
    assert sorted(f.parent.name for f in found) == sorted(kernels)
    assert {f.name for f in found} == {"small", "large", "other"}


def test_a_record_alone_is_drawn_also_where_it_cannot_be_read(record):
    for alone in (record("a/small", ""), record("b/small", "one")):
        assert drawn([alone]) == {alone}
    assert len(drawn([record("c/small", ""), record("c/large", "")])) == 1
    assert drawn([]) == set()
