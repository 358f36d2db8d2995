"""How long reading takes: `pytest ir/parse_bench.py`. A search reads a schedule a step."""

import pathlib

import pytest

from ir.parse import parse_schedule, parse_spec
from ir.print import spec_text
from ir.verify import _facts

LIBRARY = pathlib.Path(__file__).parent / "library"
NAMES = ("softmax", "rmsnorm_matmul", "attention", "pffn", "conv2d")
SCHEDULE = """schedule(rmsnorm_matmul)
tile(m, size=128)
tile(n, size=256)
tile(k, size=64)
place(m.outer, level=grid)
place(n.outer, level=grid)
place(k.outer, level=loop)
fuse(ss, into=acc)
defer(r, into=y)
stage(x, at=k.outer, space=scratch, depth=3)
stage(w, at=k.outer, space=scratch, depth=3)
compute(acc, unit=matrix, acc=f32)
"""


def test_reading_a_schedule(benchmark):
    assert len(benchmark(parse_schedule, SCHEDULE).decisions) == 11


@pytest.mark.parametrize("name", NAMES)
def test_reading_and_verifying_a_spec(benchmark, name):
    text = (LIBRARY / f"{name}.kir").read_text().split("\ntune")[0]

    def read():
        _facts.cache_clear()
        return parse_spec(text)

    assert benchmark(read).name == name


@pytest.mark.parametrize("name", NAMES)
def test_printing_a_spec(benchmark, name):
    text = (LIBRARY / f"{name}.kir").read_text().split("\ntune")[0]
    assert benchmark(spec_text, parse_spec(text)) == text
